#include "front/core/usage.h"

#include <string.h>

#include "lib/base/clock.h"
#include "front/core/sandbox.h"

#define NS_PER_MS  1000000ull
#define ENDED_KEPT 1024u

struct entry {
    struct map_node node;
    struct ctx_usage_add add;
};

static struct map ledger;
static struct list killed; /* of struct sandbox */

/* The last sandboxes that ended: the guard may still report their connections. */
static struct ended {
    char id[ID_LEN + 1], tenant[ID_LEN + 1], context[ID_LEN + 1];
} ended[ENDED_KEPT];
static size_t next_ended;

/* ---- the ledger ------------------------------------------------------------------------------ */

static uint64_t hash_of(const char *tenant, const char *context)
{
    return hash_text(hash_text(0, tenant), context);
}

static struct entry *find(const char *tenant, const char *context)
{
    return MAP_FIND(struct entry, n, &ledger, hash_of(tenant, context), node,
                    strcmp(n->add.tenant, tenant) == 0 && strcmp(n->add.context, context) == 0);
}

static void ledger_add(const char *tenant, const char *context, const struct ctx_usage *u)
{
    struct entry *n = find(tenant, context);

    if (!n && ledger.n >= LEDGER_MAX && context[0]) {
        context = "";
        n = find(tenant, context);
    }
    if (!n) {
        n = xcalloc(1, sizeof(*n));
        memcpy(n->add.tenant, tenant, strlen(tenant));
        memcpy(n->add.context, context, strlen(context));
        map_add(&ledger, &n->node, hash_of(tenant, context));
    }
    ctx_usage_sum(&n->add.usage, u);
}

size_t usage_take(struct ctx_usage_add *ret, size_t max)
{
    size_t n = 0;

    while (ledger.n > 0 && n < max) {
        struct entry *first = MAP_FIRST(struct entry, &ledger, node);
        map_remove(&ledger, &first->node);
        ret[n++] = first->add;
        free(first);
    }
    return n;
}

void usage_put_back(const struct ctx_usage_add *adds, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ledger_add(adds[i].tenant, adds[i].context, &adds[i].usage);
}

/* Adds to the ledger what a sandbox has used since it was last added. */
static void enter(struct sandbox *b)
{
    const struct ctx_usage *all = &b->usage.total, *told = &b->usage.told;
    struct ctx_usage more;

#define DIFFERENCE(name) more.name = all->name - told->name;
    CTX_USAGE(DIFFERENCE)
#undef DIFFERENCE
    if (memcmp(&more, &(struct ctx_usage){0}, sizeof(more)) == 0)
        return;
    ledger_add(b->spec.tenant, b->spec.context, &more);
    b->usage.told = *all;
}

void usage_gather(struct front *f)
{
    SANDBOXES_EACH(b, f)
        enter(b);
}

/* ---- a sandbox ------------------------------------------------------------------------------- */

void usage_made(struct sandbox *b)
{
    b->usage.total.sandboxes = 1;
    b->usage.since_ns = clock_ns();
}

void usage_taken_over(struct sandbox *b, const struct order_stats *now)
{
    b->usage.cpu_us = now->cpu_usec;
    b->usage.since_ns = b->state == SANDBOX_RUNNING ? clock_ns() : 0;
}

static void count_memory(struct sandbox_usage *u, uint64_t bytes)
{
    uint64_t now = clock_ns(), mean = u->known ? (u->memory + bytes) / 2 : bytes;

    /* Computed in KiB: in bytes the product might overflow. */
    u->total.memory_mib_ms += mean / 1024 * ((now - u->since_ns) / NS_PER_MS) / 1024;
    u->since_ns = now;
    u->memory = bytes;
    u->known = true;
}

void usage_sampled(struct sandbox *b, const struct order_stats *now)
{
    struct sandbox_usage *u = &b->usage;

    if (b->spec.standby) /* nobody asked for it */
        u->cpu_us = now->cpu_usec;
    if (now->cpu_usec > u->cpu_us) {
        u->total.cpu_us += now->cpu_usec - u->cpu_us;
        u->cpu_us = now->cpu_usec;
    }
    if (u->since_ns)
        count_memory(u, now->memory_used);
}

void usage_paused(struct sandbox *b, const struct order_stats *now)
{
    usage_sampled(b, now);
    b->usage.since_ns = 0;
    b->usage.known = false;
}

void usage_resumed(struct sandbox *b)
{
    b->usage.since_ns = clock_ns();
}

/* ---- the end of a sandbox -------------------------------------------------------------------- */

static struct sandbox *find_killed(const char *id)
{
    return LIST_FIND(struct sandbox, b, &killed, usage.in_killed, strcmp(b->id, id) == 0);
}

void usage_kill_ordered(struct sandbox *b)
{
    if (!list_linked(&b->usage.in_killed))
        list_append(&killed, &b->usage.in_killed);
}

static void note_end(const struct sandbox *b)
{
    struct ended *last = &ended[next_ended++ % ENDED_KEPT];

    memcpy(last->id, b->id, sizeof(last->id));
    memcpy(last->tenant, b->spec.tenant, sizeof(last->tenant));
    memcpy(last->context, b->spec.context, sizeof(last->context));
}

void usage_kill_answered(struct sandbox *b)
{
    if (list_linked(&b->usage.in_killed))
        note_end(b);
    list_remove(&b->usage.in_killed);
    enter(b);
}

void usage_ended(struct sandbox *b, const struct order_answer *a)
{
    /* Not in the table: searched among the killed ones, which end in about the order of the
     * kills. */
    if (!b)
        b = find_killed(a->id);
    if (!b)
        return;
    usage_paused(b, &a->stats);
    note_end(b);
    list_remove(&b->usage.in_killed);
    enter(b);
}

/* ---- connections ----------------------------------------------------------------------------- */

void usage_egress(struct front *f, const char *tenant, const char *id, uint64_t up, uint64_t down)
{
    struct ctx_usage more = {.egress_up = up, .egress_down = down};
    struct sandbox *b = sandbox_find(f, id);

    if (!b)
        b = find_killed(id);
    if ((up == 0 && down == 0) || !id_valid(id))
        return;
    if (b) {
        b->usage.total.egress_up += up;
        b->usage.total.egress_down += down;
        return;
    }
    for (size_t i = 0; i < ENDED_KEPT; i++)
        if (strcmp(ended[i].id, id) == 0) {
            ledger_add(ended[i].tenant, ended[i].context, &more);
            return;
        }
    /* A sandbox of an earlier front: only its tenant is known. */
    if (id_valid(tenant))
        ledger_add(tenant, "", &more);
}
