#include "lib/http/work.h"

#include "lib/base/clock.h"
#include "lib/base/hash.h"

struct work_party {
    uint64_t id;
    struct list works; /* never empty */
    struct list link;
};

struct works {
    uv_idle_t idle; /* runs while work waits, so that the loop does not sleep */
    uint64_t turn_ns;
    struct list parties;
};

static struct work_party *find_party(struct works *q, uint64_t id)
{
    struct work_party *p = LIST_FIND(struct work_party, at, &q->parties, link, at->id == id);

    if (!p) {
        p = NEW(struct work_party, .id = id);
        list_append(&q->parties, &p->link);
    }
    return p;
}

void work_drop(struct work *w)
{
    struct work_party *p = w->party;

    if (!p)
        return;
    w->party = NULL;
    list_remove(&w->link);
    if (!list_empty(&p->works))
        return;
    list_remove(&p->link);
    free(p);
}

static struct work *first_work(struct works *q)
{
    struct work_party *p = LIST_FIRST(struct work_party, &q->parties, link);

    return LIST_FIRST(struct work, &p->works, link);
}

/* Runs the first work of the first party, and moves the party to the end of the row. */
static void run_one(struct works *q)
{
    struct work *w = first_work(q);

    list_remove(&w->party->link);
    list_append(&q->parties, &w->party->link);
    work_drop(w);
    w->run(w);
}

static void on_idle(uv_idle_t *idle)
{
    struct works *q = idle->data;
    uint64_t end = clock_ns() + q->turn_ns;

    while (!list_empty(&q->parties)) {
        run_one(q);
        if (clock_ns() >= end)
            break;
    }
    if (list_empty(&q->parties))
        uv_idle_stop(idle);
}

void work_post(struct works *q, struct work *w, uint64_t party)
{
    if (w->party)
        return;
    w->party = find_party(q, party);
    list_append(&w->party->works, &w->link);
    uv_idle_start(&q->idle, on_idle); /* does nothing if it runs already */
}

struct works *works_new(uv_loop_t *loop, uint64_t turn_ns)
{
    struct works *q = NEW(struct works, .turn_ns = turn_ns);

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
    while (!list_empty(&q->parties))
        work_drop(first_work(q));
    uv_close((uv_handle_t *)&q->idle, on_freed);
}

uint64_t work_party_of(const char *name)
{
    return hash_text(0, name);
}
