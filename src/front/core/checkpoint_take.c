/* Takes a checkpoint: the agent holds its cells, the warden copies, the cells go on.
 *
 *   asked --> settled --> held (OP_KERNEL_HOLD) --> ordered --> answered
 *                             |                        |
 *                             +-- a cell runs          +-- something is in the way
 *
 * This goes on even if the client that asked is gone: the order cannot be taken back. The asker
 * must then forget the checkpoint. */
#include <stdio.h>
#include <string.h>

#include "lib/json/values.h"
#include "lib/base/clock.h"
#include "lib/channel/wire.h"
#include "front/core/call.h"
#include "front/core/checkpoint_impl.h"
#include "front/core/operation.h"
#include "front/core/lifecycle.h"
#include "front/core/replay.h"
#include "front/core/warden.h"
#include "front/store/store.h"

struct taking {
    struct sandbox *sandbox;
    struct checkpoint *made; /* the checkpoint that is being taken */
    struct call hold;
    uint64_t wait_ms;
    bool durable, files_only, one;
    bool begun;   /* the sandbox is busy with this */
    bool ordered; /* the order was sent: the warden will answer */
    bool loose;   /* the store has its name on the list of loose snapshots */
    struct operation operation;
    checkpoint_done done;
    void *arg;
};

static void finish(struct taking *t, int r, const struct sg_error *e, const json_t *report)
{
    struct sandbox *b = t->sandbox;

    call_cancel(&t->hold);
    if (b->taking == t)
        b->taking = NULL;
    if (r < 0 && t->loose)
        store_snapshot_gone(b->front->store, t->made->name);
    /* The sandbox is free again before done is called, so that the caller can use it at once. */
    if (t->begun && b->busy == BUSY_CHECKPOINT)
        sandbox_settled(b);
    if (r == 0 && t->made->kind == CHECKPOINT_FORK)
        operation_drop(&t->operation); /* a step of the fork, which is reported itself */
    else
        operation_end(&t->operation, b->front, b, r, e, NULL);
    t->done(t->arg, r < 0 ? NULL : t->made, r, e, report);
    checkpoint_unref(t->made);
    sandbox_unref(b);
    free(t);
}

int checkpoint_no_sandbox(const struct sandbox *b, struct sg_error *e)
{
    if (b->state == SANDBOX_PAUSED || b->busy == BUSY_PAUSING)
        return err_set(e, SG_ERR_GONE, -EBUSY, "Sandbox '%s' is paused; resume it first", b->id);
    return err_set(e, SG_ERR_NOT_FOUND, -ENOENT, "the sandbox has ended");
}

/* ---- the warden's part ----------------------------------------------------------------------- */

static void finish_kept(struct taking *t)
{
    json_t *report = report_kernels(t->made->contexts, NULL);

    finish(t, 0, NULL, report);
    json_decref(report);
}

static void on_saved(void *arg, const struct warden_answer *w)
{
    struct taking *t = arg;

    t->made->disk_bytes = w->a->stats.disk_bytes;
    if (w->r == 0) {
        finish_kept(t);
        return;
    }
    checkpoint_forget(t->made);
    finish(t, w->r, &w->e, NULL);
}

/* Has the warden write the files to disk, while the sandbox runs on. */
static void save(struct taking *t)
{
    struct order o = {.op = ORDER_SAVE};

    memcpy(o.snapshot, t->made->name, sizeof(o.snapshot));
    warden_order(t->sandbox->front, &o, -1, on_saved, t);
}

static void taken(struct taking *t, const struct order_answer *a, const json_t *broker)
{
    struct checkpoint *c = t->made;
    struct sandbox *b = t->sandbox;
    struct sg_error e = {0};

    c->at_ms = clock_wall_ms();
    c->memory_bytes = a->stats.memory_used;
    c->kernels = report_mark_carried(c->contexts, broker) > 0 && (a->flags & TELL_KERNELS) != 0;
    checkpoint_add(c);
    if (b->state == SANDBOX_ENDED && c->kind != CHECKPOINT_SNAPSHOT) {
        int r = checkpoint_no_sandbox(b, &e);
        checkpoint_forget(c);
        finish(t, r, &e, NULL);
        return;
    }
    sandbox_log_add(&b->log, LOG_INFO, FAULT_SANDBOX, 0, "Checkpoint %s taken, %u us", c->name,
                    a->paused_usec);
    if (c->kind == CHECKPOINT_LABEL)
        checkpoints_thin(b->front, lineage_find(b->front, b->id));
    if (t->durable)
        save(t);
    else
        finish_kept(t);
}

static void on_taken(void *arg, const struct warden_answer *w)
{
    struct taking *t = arg;
    json_t *broker = report_read(*w->fd), *report = NULL;

    call_cancel(&t->hold); /* first of all, cells that waited go on */
    if (w->r == 0) {
        taken(t, w->a, broker);
    } else {
        if (w->r == -EBUSY)
            report = report_in_the_way(broker, w->e.message);
        else if (w->r == -EOPNOTSUPP)
            report = report_kernels(t->made->contexts, w->e.message);
        finish(t, w->r, &w->e, report);
    }
    json_decref(report);
    json_decref(broker);
}

static void name_kernels(const json_t *contexts, struct order *o)
{
    for (size_t i = 0; i < json_array_size(contexts) && o->n_kernels < ORDER_KERNELS_MAX; i++) {
        const json_t *entry = json_array_get(contexts, i);

        if (jr_flag(entry, "carried"))
            o->kernels[o->n_kernels++] = (int32_t)jr_int(entry, "pid");
    }
}

static void order(struct taking *t)
{
    struct checkpoint *c = t->made;
    struct sandbox *b = t->sandbox;
    struct sg_error e = {0};

    if (t->files_only) /* nobody asked for kernels, so the report does not call them lost */
        json_array_clear(c->contexts);
    c->cells = replay_of(b, c->contexts);
    c->serial = checkpoints_next_serial(b->front, b->spec.checkpoint_serial);
    snprintf(c->parent, sizeof(c->parent), "%s", sandbox_came_from(b));
    c->at_ms = clock_wall_ms();
    int note = checkpoint_note_save(c, &e);
    if (note < 0) {
        finish(t, note, &e, NULL);
        return;
    }
    struct order o = sandbox_order(b, ORDER_CHECKPOINT);
    o.flags = c->kind == CHECKPOINT_SNAPSHOT ? ORDER_KEEP
              : c->kind == CHECKPOINT_FORK   ? ORDER_SOON | (t->one ? ORDER_LAST : 0)
                                             : 0;
    memcpy(o.snapshot, c->name, sizeof(o.snapshot));
    name_kernels(c->contexts, &o);
    t->ordered = true;
    b->taking = NULL;
    warden_order(b->front, &o, note, on_taken, t);
}

/* ---- the agent's part ------------------------------------------------------------------------ */

static int nonsense(struct sg_error *e)
{
    return err_set(e, SG_ERR_GONE, -EBUSY, "the sandbox sent a malformed answer");
}

static void on_hold_event(struct call *call, uint8_t what, const void *p, size_t len)
{
    struct taking *t = call->owner;
    struct sg_error e = {0};

    if (t->ordered)
        return;
    if (what == EVENT_HELD) {
        order(t);
        return;
    }
    json_t *entry = what == EVENT_KERNEL ? report_read_context(p, len) : NULL;
    if (entry && json_array_size(t->made->contexts) < KERNELS_MAX) {
        json_array_append_new(t->made->contexts, entry);
        return;
    }
    json_decref(entry);
    finish(t, nonsense(&e), &e, NULL);
}

/* The call ended before the agent held its cells or, if the order was sent, by itself while the
 * warden works: then the warden's answer decides. */
static void on_hold_end(struct call *call, int status, const char *message,
                        const void *result UNUSED, size_t len UNUSED)
{
    struct taking *t = call->owner;
    struct sg_error e = {0};
    json_t *report = NULL;
    int r;

    if (t->ordered)
        return;
    if (status == CALL_GONE) {
        r = checkpoint_no_sandbox(t->sandbox, &e);
    } else if (status == EBUSY) {
        r = err_set(&e, SG_ERR_GONE, -EBUSY, "a cell runs in the sandbox");
        report = report_cell_in_the_way(message);
    } else if (status == EALREADY) {
        r = err_set(&e, SG_ERR_GONE, -EBUSY, "the sandbox is being copied already: try again");
    } else {
        r = nonsense(&e);
    }
    finish(t, r, &e, report);
    json_decref(report);
}

static void hold(struct taking *t)
{
    AUTO(strbuf_done) struct strbuf q = strbuf_upto(64);
    struct sg_error e = {0};

    wire_put_u64(&q, t->wait_ms);
    t->hold = (struct call){
        .owner = t, .uncounted = true, .on_event = on_hold_event, .on_end = on_hold_end};
    int r = call_begin(&t->hold, t->sandbox, OP_KERNEL_HOLD, &q, &e);
    if (r == -EPIPE)
        r = checkpoint_no_sandbox(t->sandbox, &e);
    if (r < 0)
        finish(t, r, &e, NULL);
}

/* ---- beginning ------------------------------------------------------------------------------- */

static void begin(void *arg, struct sandbox *b, int r, const struct sg_error *unused UNUSED)
{
    struct taking *t = arg;
    struct checkpoint *c = t->made;
    struct sg_error e = {0};

    if (b->state != SANDBOX_RUNNING) {
        finish(t, checkpoint_no_sandbox(b, &e), &e, NULL);
        return;
    }
    if (b->busy != BUSY_NO) {
        sandbox_when_settled(b, begin, t);
        return;
    }
    r = c->kind == CHECKPOINT_FORK ? 0 : checkpoints_make_room(b, &e);
    if (r == 0 && t->durable) {
        r = store_snapshot_loose(b->front->store, c->name, &e);
        t->loose = r == 0;
    }
    if (r < 0) {
        finish(t, r, &e, NULL);
        return;
    }
    b->busy = BUSY_CHECKPOINT;
    b->taking = t;
    t->begun = true;
    hold(t);
}

void checkpoint_give_way(struct sandbox *b)
{
    struct sg_error e = {0};

    if (b->taking && b->taking->wait_ms > 0)
        finish(b->taking,
               err_set(&e, SG_ERR_GONE, -EBUSY,
                       "a cell was running until the sandbox was paused or rewound"),
               &e, NULL);
}

void sandbox_checkpoint(struct sandbox *b, const struct checkpoint_ask *ask, checkpoint_done done,
                        void *arg)
{
    struct checkpoint *c = checkpoint_new(b->front);
    struct sg_error e = {0};
    struct taking *t =
        NEW(struct taking, .sandbox = sandbox_ref(b), .made = c, .wait_ms = ask->wait_ms,
            .durable = ask->durable, .files_only = ask->files_only, .one = ask->one, .done = done,
            .arg = arg);

    operation_begin(&t->operation,
                    ask->kind == CHECKPOINT_SNAPSHOT ? OPERATION_SNAPSHOT : OPERATION_CHECKPOINT);
    operation_sandbox(&t->operation, b);
    c->kind = ask->kind;
    c->contexts = json_array();
    if (ask->name)
        snprintf(c->name, sizeof(c->name), "%s", ask->name);
    else
        id_random(c->name);
    snprintf(c->label, sizeof(c->label), "%s", ask->label ? ask->label : "");
    memcpy(c->tenant, b->spec.tenant, sizeof(c->tenant));
    memcpy(c->sandbox_id, b->id, sizeof(c->sandbox_id));
    if (c->kind == CHECKPOINT_LABEL && !b->front->settings.checkpoints) {
        int r = err_set(&e, SG_ERR_UNSUPPORTED, -EOPNOTSUPP,
                        "checkpoints are switched off on this server (setting checkpoints)");
        finish(t, r, &e, NULL);
        return;
    }
    begin(t, b, 0, NULL);
}
