/* The table of sandboxes. */
#include <string.h>

#include "lib/base/clock.h"
#include "front/core/call.h"
#include "front/core/lifecycle.h"
#include "front/core/replay.h"
#include "lib/settings/settings.h"
#include "front/store/store.h"

void sandboxes_add(struct sandbox *b)
{
    map_add(&b->front->sandboxes, &sandbox_ref(b)->by_id, hash_text(0, b->id));
}

void sandboxes_remove(struct sandbox *b)
{
    if (!list_linked(&b->by_id.all))
        return;
    map_remove(&b->front->sandboxes, &b->by_id);
    sandbox_unref(b);
}

struct sandbox *sandbox_find(struct front *f, const char *id)
{
    if (!id_valid(id))
        return NULL;
    return MAP_FIND(struct sandbox, b, &f->sandboxes, hash_text(0, id), by_id,
                    memcmp(b->id, id, ID_LEN) == 0);
}

struct sandbox *sandbox_get(struct front *f, const char *tenant, const char *id)
{
    struct sandbox *b = sandbox_find(f, id);

    return b && strcmp(b->spec.tenant, tenant) == 0 && b->state != SANDBOX_STARTING &&
                   !b->spec.standby
               ? b
               : NULL;
}

size_t sandboxes_count(struct front *f, const char *tenant)
{
    size_t n = 0;

    SANDBOXES_EACH(b, f)
        n += (b->state == SANDBOX_RUNNING || b->state == SANDBOX_STARTING ||
              b->busy == BUSY_RESUMING) &&
             !b->spec.standby && strcmp(b->spec.tenant, tenant) == 0;
    return n;
}

/* ---- paused sandboxes ------------------------------------------------------------------------ */

struct held {
    size_t n;
    uint64_t memory;
};

static struct held held_by(struct front *f, const char *tenant)
{
    struct held h = {0};

    SANDBOXES_EACH(b, f) {
        if (strcmp(b->spec.tenant, tenant) != 0 || b->state == SANDBOX_ENDED)
            continue;
        h.n += b->state == SANDBOX_PAUSED || b->busy == BUSY_PAUSING || b->spec.auto_pause;
        if (b->state == SANDBOX_PAUSED && !b->stored)
            h.memory += b->held_memory > PAUSED_LEAST ? b->held_memory : PAUSED_LEAST;
    }
    return h;
}

int sandboxes_check_paused(struct front *f, const char *tenant, size_t n, struct sg_error *e)
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

int sandboxes_check_held(struct front *f, const char *tenant, struct sg_error *e)
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

/* ---- one sandbox ----------------------------------------------------------------------------- */

struct sandbox *sandbox_new(struct front *f, const char *id, struct sandbox_spec *spec)
{
    struct sandbox *b = NEW(struct sandbox, .front = f, .refs = 1, .spec = *spec);

    memcpy(b->id, id, ID_LEN);
    memcpy(b->log.id, id, ID_LEN);
    sandbox_spec_init(spec); /* the sandbox owns its contents now */
    return b;
}

struct sandbox *sandbox_ref(struct sandbox *b)
{
    b->refs++;
    return b;
}

void sandbox_unref(struct sandbox *b)
{
    if (!b || --b->refs > 0)
        return;
    link_free(b->link);
    if (b->watchers)
        b->watchers_free(b->watchers);
    replay_free(b->replay);
    sandbox_log_done(&b->log);
    sandbox_metrics_done(&b->metrics);
    sandbox_spec_done(&b->spec);
    free(b);
}

void sandbox_set_deadline(struct sandbox *b, uint64_t deadline_ns)
{
    int64_t left_ms = ((int64_t)deadline_ns - (int64_t)clock_ns()) / 1000000;

    b->deadline_ns = deadline_ns;
    b->end_ms = clock_wall_ms() + left_ms;
}
