/* The table of sandboxes. */
#include <string.h>

#include "lib/base/clock.h"
#include "front/core/call.h"
#include "front/core/lifecycle.h"
#include "front/core/replay.h"
#include "lib/settings/settings.h"
#include "front/store/store.h"

#define BUCKETS 4096u /* a power of two; a server holds thousands at most */

struct boxes {
    struct box *buckets[BUCKETS];
};

struct boxes *boxes_new(void)
{
    return xcalloc(1, sizeof(struct boxes));
}

/* Ids are random: any of their characters will do. */
static struct box **bucket_of(struct boxes *t, const char *id)
{
    uint32_t h = 2166136261u;

    for (const char *p = id; *p; p++)
        h = (h ^ (unsigned char)*p) * 16777619u;
    return &t->buckets[h & (BUCKETS - 1)];
}

void boxes_add(struct box *b)
{
    struct box **bucket = bucket_of(b->front->boxes, b->id);

    b->next_in_bucket = *bucket;
    *bucket = box_ref(b);
}

void boxes_remove(struct box *b)
{
    for (struct box **at = bucket_of(b->front->boxes, b->id); *at; at = &(*at)->next_in_bucket) {
        if (*at != b)
            continue;
        *at = b->next_in_bucket;
        box_unref(b);
        return;
    }
}

struct box *box_find(struct front *f, const char *id)
{
    if (!id_valid(id))
        return NULL;
    for (struct box *b = *bucket_of(f->boxes, id); b; b = b->next_in_bucket)
        if (memcmp(b->id, id, ID_LEN) == 0)
            return b;
    return NULL;
}

struct box *box_get(struct front *f, const char *tenant, const char *id)
{
    struct box *b = box_find(f, id);

    return b && strcmp(b->spec.tenant, tenant) == 0 && b->state != BOX_STARTING ? b : NULL;
}

void boxes_each(struct front *f, bool (*fn)(struct box *b, void *arg), void *arg)
{
    for (size_t i = 0; i < BUCKETS; i++)
        for (struct box *b = f->boxes->buckets[i], *next; b; b = next) {
            next = b->next_in_bucket;
            if (!fn(b, arg))
                return;
        }
}

struct counting {
    const char *tenant;
    size_t n;
};

static bool count_one(struct box *b, void *arg)
{
    struct counting *c = arg;

    c->n += (b->state == BOX_RUNNING || b->state == BOX_STARTING || b->busy == BUSY_RESUMING) &&
            strcmp(b->spec.tenant, c->tenant) == 0;
    return true;
}

size_t boxes_count(struct front *f, const char *tenant)
{
    struct counting c = {.tenant = tenant};

    boxes_each(f, count_one, &c);
    return c.n;
}

/* ---- those that are paused ------------------------------------------------------------------- */

struct held {
    const char *tenant;
    size_t n;
    uint64_t memory;
};

static bool add_held(struct box *b, void *arg)
{
    struct held *h = arg;

    if (strcmp(b->spec.tenant, h->tenant) != 0 || b->state == BOX_ENDED)
        return true;
    h->n += b->state == BOX_PAUSED || b->busy == BUSY_PAUSING || b->spec.auto_pause;
    if (b->state == BOX_PAUSED && !b->stored)
        h->memory += b->held_memory > PAUSED_LEAST ? b->held_memory : PAUSED_LEAST;
    return true;
}

static struct held held_by(struct front *f, const char *tenant)
{
    struct held h = {.tenant = tenant};

    boxes_each(f, add_held, &h);
    return h;
}

int boxes_check_paused(struct front *f, const char *tenant, size_t n, struct sg_error *e)
{
    struct held h = held_by(f, tenant);
    uint32_t limit = f->settings.tenant_paused;
    struct store_tenant t;

    if (store_tenant_get(f->store, tenant, &t) == 0 && t.max_paused > 0)
        limit = t.max_paused;
    if (h.n + n <= limit)
        return 0;
    return err_set(e, SG_ERR_LIMIT, -EDQUOT,
                   "you have reached the maximum number of paused sandboxes: the limit is %u, and "
                   "%zu are paused or will be at their end; kill one first",
                   limit, h.n);
}

int boxes_check_held(struct front *f, const char *tenant, struct sg_error *e)
{
    struct held h = held_by(f, tenant);
    uint64_t limit = f->settings.tenant_paused_memory;
    struct store_tenant t;

    if (store_tenant_get(f->store, tenant, &t) == 0 && t.max_paused_memory > 0)
        limit = t.max_paused_memory;
    if (h.memory < limit)
        return 0;
    return err_set(
        e, SG_ERR_LIMIT, -EDQUOT,
        "your paused sandboxes hold %llu MiB of memory, and the limit is %llu MiB: pause "
        "without memory, or kill or resume one first",
        (unsigned long long)(h.memory >> 20), (unsigned long long)(limit >> 20));
}

/* ---- one ------------------------------------------------------------------------------------- */

struct box *box_new(struct front *f, const char *id, struct box_spec *spec)
{
    struct box *b = xcalloc(1, sizeof *b);

    b->front = f;
    b->refs = 1;
    memcpy(b->id, id, ID_LEN);
    b->spec = *spec;
    box_spec_init(spec); /* its contents are the box's now */
    return b;
}

struct box *box_ref(struct box *b)
{
    b->refs++;
    return b;
}

void box_unref(struct box *b)
{
    if (!b || --b->refs > 0)
        return;
    link_free(b->link);
    if (b->watchers)
        b->watchers_free(b->watchers);
    replay_free(b->replay);
    box_log_done(&b->log);
    box_metrics_done(&b->metrics);
    box_spec_done(&b->spec);
    free(b);
}

void box_set_deadline(struct box *b, uint64_t deadline_ns)
{
    int64_t left_ms = ((int64_t)deadline_ns - (int64_t)clock_ns()) / 1000000;

    b->deadline_ns = deadline_ns;
    b->end_ms = clock_wall_ms() + left_ms;
}
