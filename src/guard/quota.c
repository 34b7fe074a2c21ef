/* How much of the network a sandbox may use: connections at a time, new ones in a second, bytes. */

#include "lib/base/clock.h"
#include "lib/base/share.h"
#include "guard/flow.h"
#include "guard/policy.h"

#define NS_PER_S 1000000000ull
#define TOLD_NS  (60 * NS_PER_S)

#define SANDBOXES_SHARE 8 /* one pair of descriptors in so many is kept for sandboxes */

/* Puts a limit on record, each once a minute: a flood of connections must not become a flood of
 * records. Returns false. */
static bool tell(struct sandbox *s, bool *told, const char *rule)
{
    uint64_t now = clock_ns();

    if (now - s->quota.told_ns > TOLD_NS) {
        s->quota.told_ns = now;
        s->quota.told_flows = s->quota.told_rate = s->quota.told_bytes = false;
        s->quota.told_guard = false;
    }
    if (!*told)
        RECORD(s, .kind = "quota", .rule = rule);
    *told = true;
    return false;
}

/* Takes a token from a bucket that holds one second's worth. The bucket is kept as the time at
 * which it would be full. */
static bool take_token(struct quota *q, uint32_t rate)
{
    uint64_t now = clock_ns(), one = NS_PER_S / rate;

    if (q->tokens_ns < now)
        q->tokens_ns = now;
    if (q->tokens_ns - now > NS_PER_S)
        return false;
    q->tokens_ns += one;
    return true;
}

/* The account of the sandbox's tenant; NULL: the sandbox has no tenant and shares with nobody. */
static struct account *account_of(struct sandbox *s)
{
    struct account *a = s->account;

    if (a || !s->tenant[0])
        return a;
    a = LIST_FIND(struct account, at, &s->guard->accounts, link,
                  strcmp(at->tenant, s->tenant) == 0);
    if (!a) {
        a = xcalloc(1, sizeof(*a));
        memcpy(a->tenant, s->tenant, sizeof(a->tenant));
        list_push(&s->guard->accounts, &a->link);
    }
    s->account = a;
    return a;
}

/* Connections leave room for new sandboxes: a sandbox without its listeners would have no way out
 * for good, while a connection can be tried again. */
static bool guard_is_full(const struct guard *g)
{
    return g->n_flows + g->n_sandboxes >= g->max_pairs ||
           g->n_flows >= g->max_pairs - g->max_pairs / SANDBOXES_SHARE;
}

bool quota_take_flow(struct sandbox *s)
{
    const struct policy_quota *limit = &s->policy->quota;
    struct account *account = account_of(s);
    const struct guard *g = s->guard;
    struct quota *q = &s->quota;

    if (limit->flows && q->flows >= limit->flows)
        return tell(s, &q->told_flows, "connections at a time");
    if (limit->flow_rate && !take_token(q, limit->flow_rate))
        return tell(s, &q->told_rate, "new connections in a second");
    if (limit->bytes && q->bytes >= limit->bytes)
        return tell(s, &q->told_bytes, "bytes");
    if (guard_is_full(s->guard))
        return tell(s, &q->told_guard, "connections of all sandboxes at a time");
    if (account && !share_has_room(account->flows, g->n_flows + g->n_sandboxes, g->max_pairs))
        return tell(s, &q->told_guard, "connections of the tenant's sandboxes at a time");
    q->flows++;
    s->guard->n_flows++;
    if (account)
        account->flows++;
    return true;
}

void quota_give_flow(struct sandbox *s)
{
    s->quota.flows--;
    s->guard->n_flows--;
    if (s->account)
        s->account->flows--;
}

bool quota_count(struct sandbox *s, uint64_t bytes)
{
    const struct policy_quota *limit = &s->policy->quota;

    s->quota.bytes += bytes;
    if (!limit->bytes || s->quota.bytes <= limit->bytes)
        return true;
    return tell(s, &s->quota.told_bytes, "bytes");
}
