#include "front/core/copies.h"

#include <stdio.h>
#include <string.h>

#include "front/core/checkpoint.h"
#include "front/core/warden.h"
#include "front/store/templates.h"
#include "lib/base/clock.h"
#include "lib/base/list.h"
#include "lib/log/log.h"
#include "lib/uv/handle.h"

#define TIDY_MS     600000
#define IDLE_MS     86400000ll
#define TENANT_MOST 2u /* are copied for a tenant at a time */

/* A copy that is being made. */
struct copy {
    struct list link;
    struct front *front;
    char tenant[ID_LEN + 1], source[ID_LEN + 1], id[ID_LEN + 1];
    struct list users;
};

struct user {
    struct list link;
    copies_done done;
    void *arg;
};

static struct list under_way;

bool copies_are_needed(struct front *f, const char *tenant, const char *snapshot)
{
    return store_layer_owner(f->store, tenant, snapshot) != LAYER_OWN;
}

/* ---- room ------------------------------------------------------------------------------------ */

/* What the tenant's own templates leave of tenant_build_size. */
static uint64_t room_for_all(struct front *f, const char *tenant)
{
    uint64_t most = f->settings.tenant_build_size;
    uint64_t named = store_build_layers_named(f->store, tenant);

    return most > named ? most - named : 0;
}

/* Removes copies until those that are left take no more than this. */
static int trim(struct front *f, const char *tenant, uint64_t most, struct sg_error *e)
{
    char layer[ID_LEN + 1];
    int r = 1;

    while (r > 0 && store_copies_bytes(f->store, tenant) > most) {
        r = store_copy_trim(f->store, tenant, layer, e);
        if (r > 0)
            sandbox_forget_snapshot(f, layer);
    }
    return r < 0 ? r : 0;
}

static int make_room(struct front *f, const char *tenant, uint64_t bytes, struct sg_error *e)
{
    uint64_t room = room_for_all(f, tenant);

    if (bytes > room)
        return err_set(e, SG_ERR_LIMIT, -EDQUOT,
                       "a copy of this public template has %llu MiB, and your own templates leave "
                       "%llu MiB (tenant_build_size): delete some",
                       (unsigned long long)(bytes >> 20), (unsigned long long)(room >> 20));
    return trim(f, tenant, room - bytes, e);
}

void copies_fit(struct front *f, const char *tenant)
{
    struct sg_error e;

    if (trim(f, tenant, room_for_all(f, tenant), &e) < 0)
        log_line(LEVEL_WARN, "copies of public templates could not be removed: %s", e.message);
}

static int check_share(const char *tenant, struct sg_error *e)
{
    unsigned n = 0;

    LIST_EACH(const struct copy, c, &under_way, link)
        n += strcmp(c->tenant, tenant) == 0;
    return n < TENANT_MOST ? 0
                           : err_set(e, SG_ERR_LIMIT, -EDQUOT,
                                     "%u public templates are copied for you: try again when one "
                                     "is there",
                                     n);
}

/* ---- copying --------------------------------------------------------------------------------- */

static int not_found(struct sg_error *e)
{
    return err_set(e, SG_ERR_NOT_FOUND, -ENOENT,
                   "the template is not public any more, or has just been built anew: try again");
}

static void finish(struct copy *c, int r, const char *snapshot, const struct sg_error *e)
{
    struct user *u;

    list_remove(&c->link);
    while ((u = LIST_POP(struct user, &c->users, link))) {
        u->done(u->arg, r, snapshot, e);
        free(u);
    }
    free(c);
}

/* Its template may have been deleted, or be private, by now. */
static int keep(const struct copy *c, uint64_t bytes, struct sg_error *e)
{
    struct store *s = c->front->store;
    int r = store_layer_owner(s, c->tenant, c->source) == LAYER_PUBLIC ? 0 : not_found(e);

    if (r == 0)
        r = store_copy_add(s, c->tenant, c->source, c->id, bytes, e);
    if (r < 0)
        sandbox_forget_snapshot(c->front, c->id);
    return r;
}

static void on_copied(void *arg, const struct warden_answer *w)
{
    struct copy *c = arg;
    struct sg_error e = w->e;
    int r = w->r;

    if (r < 0)
        store_snapshot_gone(c->front->store, c->id);
    if (r == -EALREADY) { /* a world */
        finish(c, 0, c->source, NULL);
        return;
    }
    if (r == -ENOENT)
        not_found(&e);
    if (r == 0)
        r = keep(c, w->a->stats.disk_bytes, &e);
    finish(c, r, c->id, &e);
}

static struct copy *begin(struct front *f, const char *tenant, const char *source,
                          struct sg_error *e)
{
    uint64_t bytes = store_build_layer_bytes(f->store, source);
    struct order o = {.op = ORDER_COPY};
    struct copy *c;

    id_random(o.snapshot);
    if (check_share(tenant, e) < 0 || make_room(f, tenant, bytes, e) < 0 ||
        store_snapshot_loose(f->store, o.snapshot, e) < 0)
        return NULL;
    c = NEW(struct copy, .front = f);
    snprintf(c->tenant, sizeof(c->tenant), "%s", tenant);
    snprintf(c->source, sizeof(c->source), "%s", source);
    memcpy(c->id, o.snapshot, sizeof(c->id));
    memcpy(o.against, c->source, sizeof(o.against));
    o.limits.disk_bytes = room_for_all(f, tenant);
    list_append(&under_way, &c->link);
    warden_order(f, &o, -1, on_copied, c);
    return c;
}

void copies_want(struct front *f, const char *tenant, const char *snapshot, copies_done done,
                 void *arg)
{
    char id[ID_LEN + 1];
    struct sg_error e = {0};
    int r = store_layer_owner(f->store, tenant, snapshot) == LAYER_PUBLIC ? 0 : not_found(&e);

    if (r == 0)
        r = store_copy_get(f->store, tenant, snapshot, id, &e);
    if (r != -ENOENT || e.kind) {
        done(arg, r, id, &e);
        return;
    }
    struct copy *c =
        LIST_FIND(struct copy, at, &under_way, link,
                  strcmp(at->tenant, tenant) == 0 && strcmp(at->source, snapshot) == 0);
    if (!c)
        c = begin(f, tenant, snapshot, &e);
    if (c) {
        struct user *u = NEW(struct user, .done = done, .arg = arg);

        list_append(&c->users, &u->link);
    } else {
        done(arg, e.code, NULL, &e);
    }
}

/* ---- those that are of no use ---------------------------------------------------------------- */

void copies_tidy(struct front *f)
{
    char layer[ID_LEN + 1];
    struct sg_error e;
    int r;

    while ((r = store_copy_expire(f->store, clock_wall_ms() - IDLE_MS, layer, &e)) > 0)
        sandbox_forget_snapshot(f, layer);
    if (r < 0)
        log_line(LEVEL_WARN, "copies of public templates could not be removed: %s", e.message);
}

static void on_tidy(uv_timer_t *t)
{
    copies_tidy(t->data);
}

void copies_start(struct front *f)
{
    static uv_timer_t timer;

    copies_tidy(f);
    timer_every(f->loop, &timer, TIDY_MS, on_tidy, f);
}
