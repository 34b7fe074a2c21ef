#include "lib/http/work.h"

#include "lib/base/clock.h"

struct work_party {
    uint64_t id;
    TAILQ_HEAD(, work) works; /* never empty */
    TAILQ_ENTRY(work_party) next;
};

struct works {
    uv_idle_t idle; /* runs while work waits, so that the loop does not sleep */
    uint64_t turn_ns;
    TAILQ_HEAD(party_list, work_party) parties;
};

static struct work_party *find_party(struct works *q, uint64_t id)
{
    struct work_party *p;

    TAILQ_FOREACH(p, &q->parties, next)
    {
        if (p->id == id)
            return p;
    }
    p = xcalloc(1, sizeof(*p));
    p->id = id;
    TAILQ_INIT(&p->works);
    TAILQ_INSERT_TAIL(&q->parties, p, next);
    return p;
}

void work_drop(struct works *q, struct work *w)
{
    struct work_party *p = w->party;

    if (!p)
        return;
    w->party = NULL;
    TAILQ_REMOVE(&p->works, w, next);
    if (!TAILQ_EMPTY(&p->works))
        return;
    TAILQ_REMOVE(&q->parties, p, next);
    free(p);
}

/* Runs the first work of the first party, and moves the party to the end of the row. */
static void run_one(struct works *q)
{
    struct work_party *p = TAILQ_FIRST(&q->parties);
    struct work *w = TAILQ_FIRST(&p->works);

    TAILQ_REMOVE(&q->parties, p, next);
    TAILQ_INSERT_TAIL(&q->parties, p, next);
    work_drop(q, w);
    w->run(w);
}

static void on_idle(uv_idle_t *idle)
{
    struct works *q = idle->data;
    uint64_t end = clock_ns() + q->turn_ns;

    while (!TAILQ_EMPTY(&q->parties)) {
        run_one(q);
        if (clock_ns() >= end)
            break;
    }
    if (TAILQ_EMPTY(&q->parties))
        uv_idle_stop(idle);
}

void work_post(struct works *q, struct work *w, uint64_t party)
{
    if (w->party)
        return;
    w->party = find_party(q, party);
    TAILQ_INSERT_TAIL(&w->party->works, w, next);
    uv_idle_start(&q->idle, on_idle); /* does nothing if it runs already */
}

struct works *works_new(uv_loop_t *loop, uint64_t turn_ns)
{
    struct works *q = xcalloc(1, sizeof(*q));

    TAILQ_INIT(&q->parties);
    q->turn_ns = turn_ns;
    uv_idle_init(loop, &q->idle);
    q->idle.data = q;
    return q;
}

static void on_freed(uv_handle_t *handle)
{
    free(handle->data);
}

void works_free(struct works *q)
{
    if (!q)
        return;
    while (!TAILQ_EMPTY(&q->parties))
        work_drop(q, TAILQ_FIRST(&TAILQ_FIRST(&q->parties)->works));
    uv_close((uv_handle_t *)&q->idle, on_freed);
}

uint64_t work_party_of(const char *name)
{
    uint64_t h = 0xcbf29ce484222325u; /* FNV-1a */

    for (; *name; name++)
        h = (h ^ (unsigned char)*name) * 0x100000001b3u;
    return h;
}
