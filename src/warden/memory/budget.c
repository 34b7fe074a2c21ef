#include "warden/memory/budget.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB (1ull << 20)
#define GIB (1ull << 30)

/* Figures of the sandboxes that one tenant made from one template. */
struct budget_class {
    struct map_node node;
    char tenant[ID_LEN + 1], template[ID_LEN + 1];
    uint64_t samples[BUDGET_SAMPLES];
    uint32_t n, at;
    uint32_t users;
    uint64_t expected, last_use;
};

/* A tenant that has shares. */
struct budget_tenant {
    struct map_node node;
    char name[ID_LEN + 1];
    uint64_t reserved, used;
    uint32_t users;
};

uint64_t budget_of_machine(uint64_t there)
{
    uint64_t most = there - there / 10, least = there / 4;

    return most > GIB && most - GIB > least ? most - GIB : least;
}

/* ---- what is known of templates -------------------------------------------------------------- */

static uint64_t class_hash(const char *tenant, const char *template)
{
    return hash_text(hash_text(0, tenant), template);
}

static struct budget_class *class_find(const struct budget *b, const char *tenant,
                                       const char *template)
{
    return MAP_FIND(struct budget_class, c, &b->classes, class_hash(tenant, template), node,
                    strcmp(c->tenant, tenant) == 0 && strcmp(c->template, template) == 0);
}

/* Forgets the template that was not used for the longest time, unless all are in use. */
static void forget_oldest(struct budget *b)
{
    struct budget_class *oldest = NULL;

    MAP_EACH(struct budget_class, c, &b->classes, node)
        if (c->users == 0 && (!oldest || c->last_use < oldest->last_use))
            oldest = c;
    if (oldest)
        map_remove(&b->classes, &oldest->node);
    free(oldest);
}

static struct budget_class *class_get(struct budget *b, const char *tenant, const char *template)
{
    struct budget_class *c = class_find(b, tenant, template);

    if (c)
        return c;
    if (b->classes.n >= BUDGET_CLASSES)
        forget_oldest(b);
    c = xcalloc(1, sizeof(*c));
    c->expected = BUDGET_NEW;
    snprintf(c->tenant, sizeof(c->tenant), "%s", tenant);
    snprintf(c->template, sizeof(c->template), "%s", template);
    map_add(&b->classes, &c->node, class_hash(tenant, template));
    return c;
}

static int by_size(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

static void learn(struct budget_class *c, uint64_t peak)
{
    uint64_t sorted[BUDGET_SAMPLES];

    c->samples[c->at] = peak;
    c->at = (c->at + 1) % BUDGET_SAMPLES;
    c->n += c->n < BUDGET_SAMPLES;
    if (c->n < BUDGET_KNOWN)
        return;
    memcpy(sorted, c->samples, c->n * sizeof(sorted[0]));
    qsort(sorted, c->n, sizeof(sorted[0]), by_size);
    c->expected = sorted[(c->n * 95 + 99) / 100 - 1];
    if (c->expected < MIB)
        c->expected = MIB;
}

/* ---- shares ---------------------------------------------------------------------------------- */

static struct budget_tenant *tenant_find(const struct budget *b, const char *name)
{
    return MAP_FIND(struct budget_tenant, t, &b->tenants, hash_text(0, name), node,
                    strcmp(t->name, name) == 0);
}

static struct budget_tenant *tenant_get(struct budget *b, const char *name)
{
    struct budget_tenant *t = tenant_find(b, name);

    if (!t) {
        t = xcalloc(1, sizeof(*t));
        snprintf(t->name, sizeof(t->name), "%s", name);
        map_add(&b->tenants, &t->node, hash_text(0, t->name));
    }
    return t;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

bool budget_has_room(const struct budget *b, uint64_t bytes)
{
    return !b->closed && larger(b->reserved, b->used) + bytes <= b->limit;
}

static int check(struct budget *b, const char *tenant, uint64_t bytes, struct sg_error *e)
{
    const struct budget_tenant *t = tenant_find(b, tenant);

    if (b->tenant_limit && t && larger(t->reserved, t->used) + bytes > b->tenant_limit)
        return err_set(e, SG_ERR_LIMIT, -EDQUOT,
                       "the tenant's sandboxes use all the memory that a tenant may have (%llu "
                       "MiB): end one first",
                       (unsigned long long)(b->tenant_limit / MIB));
    if (!budget_has_room(b, bytes))
        return err_set(e, SG_ERR_LIMIT, -EAGAIN,
                       "the machine has no memory left for another sandbox: try again");
    return 0;
}

int budget_take(struct budget *b, const char *tenant, const char *template,
                struct budget_share *ret, struct sg_error *e)
{
    uint64_t bytes = budget_expects(b, tenant, template);
    int r = check(b, tenant, bytes, e);

    if (r < 0) {
        b->refused++;
        return r;
    }
    *ret = (struct budget_share){
        .class = class_get(b, tenant, template), .tenant = tenant_get(b, tenant), .bytes = bytes};
    ret->class->users++;
    ret->class->last_use = ++b->clock;
    ret->tenant->users++;
    ret->tenant->reserved += bytes;
    b->reserved += bytes;
    return 0;
}

void budget_give_back(struct budget *b, struct budget_share *share, uint64_t peak)
{
    struct budget_tenant *t = share->tenant;

    if (!share->class)
        return;
    b->reserved -= share->bytes;
    t->reserved -= share->bytes;
    share->class->users--;
    if (peak > 0)
        learn(share->class, peak);
    if (--t->users == 0) {
        map_remove(&b->tenants, &t->node);
        free(t);
    }
    *share = (struct budget_share){0};
}

uint64_t budget_expects(const struct budget *b, const char *tenant, const char *template)
{
    const struct budget_class *c = class_find(b, tenant, template);

    return c ? c->expected : BUDGET_NEW;
}

void budget_tenant_uses(struct budget *b, const char *tenant, uint64_t bytes)
{
    struct budget_tenant *t = tenant_find(b, tenant);

    if (t)
        t->used = bytes;
}

void budget_done(struct budget *b)
{
    MAP_EACH(struct budget_class, c, &b->classes, node) {
        map_remove(&b->classes, &c->node);
        free(c);
    }
    MAP_EACH(struct budget_tenant, t, &b->tenants, node) {
        map_remove(&b->tenants, &t->node);
        free(t);
    }
}
