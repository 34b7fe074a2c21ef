#include "guard/resolver.h"

#include "lib/base/clock.h"
#include "lib/uv/handle.h"
#include "guard/resolver_impl.h"

/* A question of a caller: one flight, or for a lookup one flight for each family. */
struct resolver_query {
    struct waiter waiters[2];
    struct guard *guard;
    unsigned waiting;  /* of a lookup: families that are not answered yet */
    bool starting;     /* being started: the starter reports its end */
    uv_timer_t *grace; /* runs when one family has addresses and the other is still awaited */
    resolver_done done;
    resolver_raw_done raw_done;
    void *arg;
    struct resolved res;
    bool absent; /* an upstream has said that the name does not exist */
    int failed;
};

int resolver_new(struct guard *g, const char *servers, struct resolver **ret, struct sg_error *e)
{
    struct resolver *r = NEW(struct resolver, .guard = g, .cache = resolver_cache_new());
    int result = resolver_servers_read(r, servers, e);

    if (result < 0)
        resolver_free(r);
    else
        *ret = r;
    return result;
}

/* Questions under way go on to their end, and the last one frees the resolver: callers that wait
 * for them notice nothing. */
void resolver_free(struct resolver *r)
{
    if (!r)
        return;
    r->gone = true;
    if (r->n_flights > 0)
        return;
    resolver_cache_free(r->cache);
    free(r);
}

/* ---- addresses ------------------------------------------------------------------------------- */

static void families(const struct guard *g, bool *v4, bool *v6)
{
    *v4 = hosts_has_v4(g->hosts);
    *v6 = hosts_has_v6(g->hosts);
    /* Without a way to the internet there may still be one to internal addresses that the operator
     * has opened. */
    if (!*v4 && !*v6)
        *v4 = *v6 = true;
}

static bool has_address(const struct resolved *res, const struct net_addr *a)
{
    for (size_t i = 0; i < res->n; i++)
        if (net_addr_equal(&res->addrs[i], a))
            return true;
    return false;
}

void resolver_addresses(const struct guard *g, const struct dns_answer *a, struct resolved *res)
{
    uint32_t ttl = resolver_cache_ttl(a);
    bool v4, v6;

    families(g, &v4, &v6);
    if (res->ttl == 0 || ttl < res->ttl)
        res->ttl = ttl;
    for (size_t i = 0; i < a->n; i++) {
        const struct dns_record *r = &a->records[i];
        struct net_addr addr;

        if (r->type == DNS_A)
            net_addr_v4(r->data, 0, &addr);
        else if (r->type == DNS_AAAA)
            net_addr_v6(r->data, 0, &addr);
        else
            continue;
        const char *why = guard_never_dials(g, &addr);
        if (why)
            res->dropped = why;
        else if ((net_addr_is_v4(&addr) ? v4 : v6) && res->n < RESOLVER_ADDRS &&
                 !has_address(res, &addr))
            res->addrs[res->n++] = addr;
    }
}

/* ---- questions ------------------------------------------------------------------------------- */

void resolver_cancel(struct resolver_query *q)
{
    for (size_t i = 0; i < ARRAY_SIZE(q->waiters); i++)
        flight_leave(&q->waiters[i]);
    alarm_drop(&q->grace);
    free(q);
}

static void lookup_end(struct resolver_query *q)
{
    struct resolved res = q->res;
    resolver_done done = q->done;
    void *arg = q->arg;

    if (res.n > 0)
        res.r = 0;
    else if (res.dropped)
        res.r = -EACCES;
    else if (q->absent)
        res.r = -ENOENT;
    else
        res.r = q->failed ? q->failed : -ENODATA;
    if (res.ttl == 0)
        res.ttl = RESOLVER_TTL_MIN;
    resolver_cancel(q);
    done(arg, &res);
}

static void on_grace(uv_timer_t *t)
{
    lookup_end(t->data);
}

/* Goes on waiting for the second family, or ends the lookup. False: it has ended and is freed. */
static bool lookup_go_on(struct resolver_query *q)
{
    if (q->waiting == 0) {
        lookup_end(q);
        return false;
    }
    if (q->res.n > 0) {
        q->grace = alarm_new(q->guard->loop, q);
        alarm_set(q->grace, RESOLVER_GRACE_NS, on_grace);
    }
    return true;
}

static void on_part(struct waiter *w, int r, const struct dns_answer *a)
{
    struct resolver_query *q = w->query;

    q->waiting--;
    if (r < 0)
        q->failed = r;
    else if (a->rcode == DNS_NXDOMAIN)
        q->absent = true;
    else
        resolver_addresses(q->guard, a, &q->res);
    if (!q->starting)
        lookup_go_on(q);
}

static void on_raw(struct waiter *w, int r, const struct dns_answer *a)
{
    struct resolver_query *q = w->query;
    resolver_raw_done done = q->raw_done;
    void *arg = q->arg;

    resolver_cancel(q);
    done(arg, r, a);
}

/* Gets an answer from the cache or from a flight. False: done was called already. */
static bool find_out(struct resolver *r, const char *name, uint16_t type, struct waiter *w)
{
    struct dns_answer a;
    int result;

    if (!resolver_cache_get(r->cache, name, type, clock_ns(), &result, &a)) {
        result = flight_wait(r, name, type, w);
        if (result == 0)
            return true;
    }
    w->done(w, result, result < 0 ? NULL : &a);
    return false;
}

struct resolver_query *resolver_lookup(struct resolver *r, const char *name, resolver_done done,
                                       void *arg)
{
    struct resolver_query *q =
        NEW(struct resolver_query, .guard = r->guard, .done = done, .arg = arg, .starting = true);
    bool v4, v6;

    families(r->guard, &v4, &v6);
    for (size_t i = 0; i < ARRAY_SIZE(q->waiters); i++)
        q->waiters[i] = (struct waiter){.query = q, .done = on_part};
    q->waiting = v4 + v6;
    if (v4)
        find_out(r, name, DNS_A, &q->waiters[0]);
    if (v6)
        find_out(r, name, DNS_AAAA, &q->waiters[1]);
    q->starting = false;
    return lookup_go_on(q) ? q : NULL;
}

struct resolver_query *resolver_ask(struct resolver *r, const char *name, uint16_t type,
                                    resolver_raw_done done, void *arg)
{
    struct resolver_query *q =
        NEW(struct resolver_query, .guard = r->guard, .raw_done = done, .arg = arg);

    q->waiters[0] = (struct waiter){.query = q, .done = on_raw};
    return find_out(r, name, type, &q->waiters[0]) ? q : NULL;
}
