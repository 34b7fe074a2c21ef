
#include "lib/base/clock.h"
#include "lib/uv/handle.h"
#include "guard/resolver_impl.h"

struct flight {
    struct resolver *resolver;
    struct map_node by_question;
    struct list waiters;
    uint64_t deadline_ns;
    uv_timer_t *timer;
    struct upstream *tries[RESOLVER_TRIES]; /* NULL: this try has failed */
    size_t servers[RESOLVER_TRIES];         /* which server each try asks */
    unsigned n_tries;
    bool landed;
    uint16_t type;
    char name[POLICY_NAME_MAX + 1];
};

/* Takes a flight off the list, so that nobody joins it, and frees its tries, so that no answer
 * comes. */
static void take_down(struct flight *f)
{
    for (unsigned i = 0; i < f->n_tries; i++) {
        upstream_free(f->tries[i]);
        f->tries[i] = NULL;
    }
    alarm_drop(&f->timer);
    map_remove(&f->resolver->flights, &f->by_question);
    f->landed = true;
}

static void flight_free(struct flight *f)
{
    struct resolver *r = f->resolver;

    free(f);
    r->n_flights--;
    if (r->gone && r->n_flights == 0)
        resolver_free(r);
}

static void unlink_waiter(struct waiter *w)
{
    list_remove(&w->link);
    w->flight = NULL;
}

/* Ends a flight and tells all waiters. Any of them may cancel others, or ask again. */
static void land(struct flight *f, int r, struct dns_answer *a)
{
    if (a) {
        uint32_t ttl = resolver_cache_ttl(a);

        for (size_t i = 0; i < a->n; i++)
            a->records[i].ttl = ttl;
    }
    resolver_cache_put(f->resolver->cache, f->name, f->type, r, a, clock_ns());
    take_down(f);
    struct waiter *w;
    while ((w = LIST_FIRST(struct waiter, &f->waiters, link))) {
        unlink_waiter(w);
        w->done(w, r, a);
    }
    flight_free(f);
}

static bool asks(const struct flight *f)
{
    for (unsigned i = 0; i < f->n_tries; i++)
        if (f->tries[i])
            return true;
    return false;
}

static void on_answer(void *arg, struct upstream *u, int r, struct dns_answer *a);
static void on_late(uv_timer_t *t);

/* Asks the next server, or the one after it if that server cannot be asked. Without `again`, asks
 * only servers that were not asked yet. */
static bool ask_next(struct flight *f, bool again)
{
    struct resolver *r = f->resolver;
    uint64_t now = clock_ns(), left = f->deadline_ns > now ? f->deadline_ns - now : 0;

    while (f->n_tries < RESOLVER_TRIES && (again || f->n_tries < r->n_servers)) {
        unsigned i = f->n_tries++;

        f->servers[i] = (r->preferred + i) % r->n_servers;
        again = false;
        if (upstream_ask(r->guard->loop, &r->servers[f->servers[i]], f->name, f->type, on_answer, f,
                         &f->tries[i]) == 0) {
            alarm_set(f->timer, left < RESOLVER_TRY_NS ? left : RESOLVER_TRY_NS, on_late);
            return true;
        }
    }
    return false;
}

static void on_answer(void *arg, struct upstream *u, int r, struct dns_answer *a)
{
    struct flight *f = arg;

    if (r == 0 && (a->rcode == DNS_NOERROR || a->rcode == DNS_NXDOMAIN)) {
        for (unsigned i = 0; i < f->n_tries; i++)
            if (f->tries[i] == u)
                f->resolver->preferred = f->servers[i];
        land(f, 0, a);
        return;
    }
    for (unsigned i = 0; i < f->n_tries; i++)
        if (f->tries[i] == u)
            f->tries[i] = NULL;
    upstream_free(u);
    if (!ask_next(f, false) && !asks(f))
        land(f, -EIO, NULL);
}

static void on_late(uv_timer_t *t)
{
    struct flight *f = t->data;
    uint64_t now = clock_ns();

    if (now >= f->deadline_ns)
        land(f, -ETIMEDOUT, NULL);
    else if (!ask_next(f, true))
        alarm_set(f->timer, f->deadline_ns - now, on_late);
}

static struct flight *find(struct resolver *r, const char *name, uint16_t type, uint64_t hash)
{
    return MAP_FIND(struct flight, f, &r->flights, hash, by_question,
                    f->type == type && strcmp(f->name, name) == 0);
}

/* Makes the oldest flight end, in the next turn of the loop and not at once: its waiter may be the
 * very caller that is asking now. */
static void give_up_oldest(struct resolver *r)
{
    struct flight *f =
        LIST_FIND(struct flight, at, &r->flights.all, by_question.all, at->deadline_ns != 0);

    if (!f)
        return;
    f->deadline_ns = 0;
    alarm_set(f->timer, 0, on_late);
}

static struct flight *flight_new(struct resolver *r, const char *name, uint16_t type, uint64_t hash)
{
    struct flight *f;

    if (r->n_flights >= RESOLVER_FLIGHTS_MAX)
        return NULL;
    if (r->n_flights >= RESOLVER_FLIGHTS)
        give_up_oldest(r);
    f = NEW(struct flight, .resolver = r, .type = type, .deadline_ns = clock_ns() + RESOLVER_NS);
    f->timer = alarm_new(r->guard->loop, f);
    snprintf(f->name, sizeof(f->name), "%s", name);
    map_add(&r->flights, &f->by_question, hash);
    r->n_flights++;
    if (ask_next(f, false))
        return f;
    take_down(f);
    flight_free(f);
    return NULL;
}

int flight_wait(struct resolver *r, const char *name, uint16_t type, struct waiter *w)
{
    uint64_t hash = hash_text(type, name);
    struct flight *f = find(r, name, type, hash);

    if (!f)
        f = flight_new(r, name, type, hash);
    if (!f)
        return -EIO;
    w->flight = f;
    list_push(&f->waiters, &w->link);
    return 0;
}

void flight_leave(struct waiter *w)
{
    struct flight *f = w->flight;

    if (!f)
        return;
    unlink_waiter(w);
    if (list_empty(&f->waiters) && !f->landed) {
        take_down(f);
        flight_free(f);
    }
}
