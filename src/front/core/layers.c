/* Snapshots of a sandbox's files. The store lists a snapshot as loose from before it is made until
 * something names it or it is gone. So a snapshot whose front was killed meanwhile is found
 * again. */
#include <stdio.h>
#include <string.h>

#include "front/core/checkpoint.h"
#include "front/core/operation.h"
#include "front/core/lifecycle.h"
#include "front/core/warden.h"
#include "front/store/store.h"

struct saving {
    struct sandbox *sandbox;
    char snapshot[ID_LEN + 1];
    bool durable;
    struct operation operation;
    sandbox_saved done;
    void *arg;
};

static void on_saved(void *arg, const struct warden_answer *w)
{
    struct saving *s = arg;

    if (w->r < 0)
        store_snapshot_gone(s->sandbox->front->store, s->snapshot);
    operation_end(&s->operation, s->sandbox->front, s->sandbox, w->r, &w->e, NULL);
    s->done(s->arg, w->r, &w->e, w->a->stats.disk_bytes);
    sandbox_settled(s->sandbox);
    sandbox_unref(s->sandbox);
    free(s);
}

static void save_again(void *arg, struct sandbox *b, int r UNUSED, const struct sg_error *e UNUSED)
{
    AUTO(free_p) struct saving *s = arg;

    AUTO(operation_leave) struct trace_ref before UNUSED = operation_enter(&s->operation.trace);
    sandbox_snapshot(b, s->snapshot, s->durable, s->done, s->arg);
    sandbox_unref(b);
}

/* A checkpoint that is being taken is waited for: it is quick, unless its client wanted it to wait
 * for a cell. Other transitions are answered with -EBUSY. */
void sandbox_snapshot(struct sandbox *b, const char *snapshot, bool durable, sandbox_saved done,
                      void *arg)
{
    struct sg_error e = {0};
    int r = 0;

    if (b->busy == BUSY_CHECKPOINT) {
        struct saving *s = NEW(struct saving, .sandbox = sandbox_ref(b), .durable = durable,
                               .done = done, .arg = arg, .operation.trace = operation_current());
        snprintf(s->snapshot, sizeof(s->snapshot), "%s", snapshot);
        sandbox_when_settled(b, save_again, s);
        return;
    }
    if (b->busy != BUSY_NO || b->state == SANDBOX_ENDED)
        r = err_set(&e, SG_ERR_GONE, -EBUSY,
                    "Sandbox %s is being paused, resumed or snapshotted: try again", b->id);
    if (r == 0)
        r = store_snapshot_loose(b->front->store, snapshot, &e);
    if (r < 0) {
        done(arg, r, &e, 0);
        return;
    }
    struct saving *s = NEW(struct saving, .sandbox = sandbox_ref(b), .done = done, .arg = arg);
    b->busy = BUSY_SNAPSHOT;
    operation_begin(&s->operation, OPERATION_SNAPSHOT);
    operation_sandbox(&s->operation, b);
    struct order o = sandbox_order(b, ORDER_SNAPSHOT);
    o.flags = durable ? ORDER_DURABLE : 0;
    snprintf(o.snapshot, sizeof(o.snapshot), "%s", snapshot);
    memcpy(s->snapshot, o.snapshot, sizeof(s->snapshot));
    warden_order(b->front, &o, -1, on_saved, s);
}

struct forgetting {
    struct front *front;
    char snapshot[ID_LEN + 1];
};

static void on_forgotten(void *arg, const struct warden_answer *w)
{
    struct forgetting *g = arg;

    if (w->r == 0 || w->r == -ENOENT)
        store_snapshot_gone(g->front->store, g->snapshot);
    free(g);
}

void sandbox_forget_snapshot(struct front *f, const char *snapshot)
{
    if (store_layer_named(f->store, snapshot)) { /* a snapshot, or a template that was made of it */
        store_snapshot_gone(f->store, snapshot);
        return;
    }
    struct forgetting *g = NEW(struct forgetting, .front = f);
    struct order o = {.op = ORDER_FORGET};

    checkpoint_snapshot_forgotten(f, snapshot);
    snprintf(o.snapshot, sizeof(o.snapshot), "%s", snapshot);
    memcpy(g->snapshot, o.snapshot, sizeof(g->snapshot));
    warden_order(f, &o, -1, on_forgotten, g);
}

static void forget_one(const char *id, void *arg)
{
    sandbox_forget_snapshot(arg, id);
}

int sandboxes_forget_loose_snapshots(struct front *f, struct sg_error *e)
{
    return store_loose_snapshots_each(f->store, forget_one, f, e);
}
