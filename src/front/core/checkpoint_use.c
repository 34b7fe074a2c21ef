/* Uses a checkpoint: makes new sandboxes from it, or rewinds a sandbox to it.
 *
 *   new sandbox:  ORDER_CREATE with ORDER_STATE --> channel --> adopt --> (replay, policy) --> done
 *   rewind:       ORDER_REWIND --> adopt --> done
 */
#include <stdio.h>
#include <string.h>

#include "front/core/call.h"
#include "front/core/checkpoint_impl.h"
#include "front/core/operation.h"
#include "front/core/egress.h"
#include "front/core/identity.h"
#include "front/core/lifecycle.h"
#include "front/core/replay.h"
#include "front/core/warden.h"
#include "front/core/warm.h"

#define FINISH_EVERY_MS 20
#define FINISH_TRIES    500

int checkpoint_say_lost(const struct checkpoint *c, struct sg_error *e)
{
    if (c->kind == CHECKPOINT_FORK)
        return err_set(e, SG_ERR_GONE, -EOWNERDEAD,
                       "the copied kernels ended before the new sandbox was ready: try again");
    return err_set(
        e, SG_ERR_GONE, -EOWNERDEAD,
        "the variables of checkpoint %s are gone: their memory was needed, or the broker that kept "
        "them failed. Its files are left: \"accept\": \"files\" takes the files alone",
        c->name);
}

/* Whether kernels did not come along that the caller counts on. */
static bool misses_kernels(const struct checkpoint *c, const char *gone, bool files_do)
{
    return gone && !files_do && checkpoint_had_kernels(c);
}

/* ---- a sandbox from a checkpoint ------------------------------------------------------------- */

struct making {
    struct checkpoint *from;
    struct sandbox *sandbox;
    struct fork_ask ask;
    json_t *report;
    bool *failed_at_once; /* set to true if ordering fails; NULL once ordered */
    fork_done done;
    void *arg;
};

static void made(struct making *m, int r, const struct sg_error *e)
{
    struct sandbox *b = m->sandbox;
    struct sg_error lost;

    if (r == -EOWNERDEAD) {
        checkpoint_say_lost(m->from, &lost);
        e = &lost;
    }
    /* "Not found" would tell the client that the sandbox it named is gone, but this is about the
     * new sandbox or the checkpoint. So the error becomes -EBUSY. */
    if (r < 0 && r != -EOWNERDEAD && r != -EBUSY &&
        (e->kind == SG_ERR_NOT_FOUND || e->kind == SG_ERR_GONE)) {
        r = err_set(&lost, SG_ERR_GONE, -EBUSY, "%s: %s",
                    b ? "the new sandbox was paused or has ended before it was ready"
                      : "the source of the new sandbox has ended",
                    e->message);
        e = &lost;
    }
    m->from->uses--;
    if (m->failed_at_once)
        *m->failed_at_once = true;
    if (r < 0 && b)
        sandbox_kill(b, NULL, NULL);
    if (r == 0) {
        b->spec.unfinished = false;
        sandbox_note_changed(b);
    }
    m->done(m->arg, r < 0 ? NULL : b, r, e, m->report);
    json_decref(m->report);
    checkpoint_unref(m->from);
    sandbox_unref(b);
    free(m);
}

static void on_time(void *arg, struct sandbox *b UNUSED, int r, const struct sg_error *e)
{
    made(arg, r, e);
}

/* The replay is over and the policy in force: the sandbox's time begins now. */
static void on_policy(void *arg, struct sandbox *b, int r, const struct sg_error *e)
{
    struct making *m = arg;

    if (r < 0)
        made(m, r, e);
    else
        sandbox_set_timeout(b, m->ask.timeout_ms, false, on_time, m);
}

static void on_replayed(void *arg, int r, const struct sg_error *e)
{
    struct making *m = arg;

    if (r < 0) {
        made(m, r, e);
        return;
    }
    m->sandbox->closed = false;
    sandbox_apply_network(m->sandbox, on_policy, m);
}

static void on_adopted(void *arg, int r, const struct sg_error *e, const char *gone)
{
    struct making *m = arg;

    if (r == 0 && misses_kernels(m->from, gone, m->ask.files_do))
        r = -EOWNERDEAD;
    if (r < 0) {
        made(m, r, e);
        return;
    }
    /* Nobody waits for these files; later requests find them written. They come only now because
     * the copies had more urgent work before. */
    identity_write(m->sandbox);
    m->report = report_kernels(m->from->contexts, gone);
    if (m->sandbox->spec.interpreter && (gone || !m->sandbox->has_copies))
        sandbox_warm_kernel(m->sandbox);
    if (m->ask.replay)
        replay_run(m->sandbox, m->from, m->report, on_replayed, m);
    else
        made(m, 0, NULL);
}

static void on_made(void *arg, struct sandbox *b, int r, const struct sg_error *e)
{
    struct making *m = arg;

    if (r < 0) {
        made(m, r, e);
        return;
    }
    m->sandbox = sandbox_ref(b);
    checkpoint_adopt(b, m->from, b->has_copies ? NULL : REASON_GONE, on_adopted, m);
}

void sandbox_create_from(struct front *f, struct sandbox_spec *spec, struct checkpoint *c,
                         const struct fork_ask *ask, fork_done done, void *arg)
{
    bool last = ask->last && c->uses == 0, failed = false;
    struct sandbox_make make = {.snapshot = c->name,
                                .timeout_ms = ask->timeout_ms + (ask->replay ? REPLAY_MS : 0),
                                .flags = ORDER_STATE | (last ? ORDER_LAST : 0) |
                                         (ask->files_do ? 0 : ORDER_WHOLE),
                                .came_from = c->kind == CHECKPOINT_FORK ? c->parent : c->name,
                                .closed = ask->replay};
    struct making *m = NEW(struct making, .from = checkpoint_ref(c), .ask = *ask,
                           .failed_at_once = &failed, .done = done, .arg = arg);

    c->uses++;
    checkpoint_ref(c);
    sandbox_make(f, spec, &make, on_made, m);
    if (!failed)
        m->failed_at_once = NULL;
    if (last && !failed)
        checkpoint_drop(c); /* the order itself makes the warden forget it */
    else if (ask->last)
        checkpoint_forget(c); /* others' orders are sent: the warden keeps what they need */
    checkpoint_unref(c);
}

struct warm {
    sandbox_done done;
    void *arg;
};

static void on_warm(void *arg, struct sandbox *b, int r, const struct sg_error *e,
                    const json_t *report UNUSED)
{
    AUTO(free_p) struct warm *w = arg;

    w->done(w->arg, b, r, e);
}

bool sandbox_create_warm(struct front *f, struct sandbox_spec *spec, const char *snapshot,
                         uint64_t timeout_ms, sandbox_done done, void *arg)
{
    struct checkpoint *c = checkpoint_find(f, spec->tenant, snapshot);
    struct fork_ask ask = {.timeout_ms = timeout_ms, .files_do = true};

    if (!c || !checkpoint_had_kernels(c))
        return false;
    sandbox_create_from(f, spec, c, &ask, on_warm, NEW(struct warm, .done = done, .arg = arg));
    return true;
}

/* ---- rewinding ------------------------------------------------------------------------------- */

struct rewinding {
    struct sandbox *sandbox;
    struct checkpoint *to;
    bool begun, files_do;
    struct operation operation;
    json_t *report;
    checkpoint_done done;
    void *arg;
};

/* Notes which checkpoint the sandbox is being rewound to. A front that is killed midway leaves the
 * sandbox without its new kernels; the note makes the next front repeat the rewind. */
static void note_goes_back(struct sandbox *b, const char *name)
{
    if (b->state == SANDBOX_ENDED || strcmp(b->spec.goes_back, name) == 0)
        return;
    snprintf(b->spec.goes_back, sizeof(b->spec.goes_back), "%s", name);
    sandbox_note_changed(b);
}

static void back(struct rewinding *w, int r, const struct sg_error *e)
{
    struct sandbox *b = w->sandbox;

    if (r < 0)
        note_goes_back(b, "");
    if (w->begun && b->busy == BUSY_CHECKPOINT)
        sandbox_settled(b);
    operation_end(&w->operation, b->front, b, r, e, NULL);
    w->done(w->arg, r < 0 ? NULL : w->to, r, e, w->report);
    json_decref(w->report);
    checkpoint_unref(w->to);
    sandbox_unref(b);
    free(w);
}

/* The rewind also reset the server's own files in the sandbox. The certificate is installed again
 * by now. */
static void on_installed(void *arg)
{
    back(arg, 0, NULL);
}

static void on_rewound_adopted(void *arg, int r, const struct sg_error *e, const char *gone)
{
    struct rewinding *w = arg;
    struct sandbox *b = w->sandbox;
    struct sg_error ended;

    if (r < 0) {
        back(w, r, e);
        return;
    }
    w->report = report_kernels(w->to->contexts, gone);
    if (misses_kernels(w->to, gone, w->files_do)) {
        r = err_set(&ended, SG_ERR_GONE, -EOWNERDEAD,
                    "the variables of checkpoint %s were lost: the sandbox has its files, and its "
                    "kernels start afresh",
                    w->to->name);
        back(w, r, &ended);
        return;
    }
    if (b->spec.interpreter && gone)
        sandbox_warm_kernel(b);
    snprintf(b->spec.checkpoint, sizeof(b->spec.checkpoint), "%s", w->to->name);
    b->spec.checkpoint_serial = checkpoints_serial(b->front);
    note_goes_back(b, "");
    replay_forget_all(b);
    if (strcmp(b->id, w->to->sandbox_id) != 0)
        identity_write(b);
    sandbox_log_add(&b->log, LOG_INFO, FAULT_SANDBOX, 0, "Sandbox rewound to checkpoint %s",
                    w->to->name);
    egress_install(b, on_installed, w);
}

static void on_rewound(void *arg, const struct warden_answer *answer)
{
    struct rewinding *w = arg;
    struct sg_error e = answer->e;
    int r = answer->r;

    if (r == -EOWNERDEAD)
        checkpoint_say_lost(w->to, &e);
    else if (r == -ENOENT && w->sandbox->state != SANDBOX_ENDED)
        r = err_set(&e, SG_ERR_GONE, -ESTALE, "checkpoint %s no longer exists", w->to->name);
    if (r < 0)
        back(w, r, &e);
    else
        checkpoint_adopt(w->sandbox, w->to, answer->a->flags & TELL_KERNELS ? NULL : REASON_GONE,
                         on_rewound_adopted, w);
}

static void begin(void *arg, struct sandbox *b, int r UNUSED, const struct sg_error *unused UNUSED)
{
    struct rewinding *w = arg;
    struct sg_error e = {0};

    if (!w->to->kernels && !w->files_do && checkpoint_had_kernels(w->to)) {
        back(w, checkpoint_say_lost(w->to, &e), &e);
        return;
    }
    checkpoint_give_way(b);
    if (b->state != SANDBOX_RUNNING) {
        back(w, checkpoint_no_sandbox(b, &e), &e);
        return;
    }
    if (b->busy != BUSY_NO) {
        sandbox_when_settled(b, begin, w);
        return;
    }
    b->busy = BUSY_CHECKPOINT;
    w->begun = true;
    note_goes_back(b, w->to->name);
    struct order o = sandbox_order(b, ORDER_REWIND);
    memcpy(o.snapshot, w->to->name, sizeof(o.snapshot));
    o.flags = w->files_do ? 0 : ORDER_WHOLE;
    warden_order(b->front, &o, -1, on_rewound, w);
}

void sandbox_rewind(struct sandbox *b, struct checkpoint *c, bool files_do, checkpoint_done done,
                    void *arg)
{
    struct rewinding *w = NEW(struct rewinding, .sandbox = sandbox_ref(b), .to = checkpoint_ref(c),
                              .files_do = files_do, .done = done, .arg = arg);

    operation_begin(&w->operation, OPERATION_REWIND);
    operation_sandbox(&w->operation, b);
    begin(w, b, 0, NULL);
}

/* A rewind that an earlier front began. The warden may still be working on it; it refuses a second
 * order until then, so this is tried again. */
struct finishing {
    uv_timer_t timer;
    struct sandbox *sandbox;
    char name[ID_LEN + 1];
    unsigned tries;
};

static void on_timer_closed(uv_handle_t *h)
{
    struct finishing *x = h->data;

    sandbox_unref(x->sandbox);
    free(x);
}

static void on_again(uv_timer_t *t);

static void on_finished(void *arg, struct checkpoint *c UNUSED, int r, const struct sg_error *e,
                        const json_t *report UNUSED)
{
    struct finishing *x = arg;

    if (r == -EALREADY && x->tries++ < FINISH_TRIES) {
        uv_timer_start(&x->timer, on_again, FINISH_EVERY_MS, 0);
        return;
    }
    if (r < 0) {
        note_goes_back(x->sandbox, "");
        sandbox_log_add(&x->sandbox->log, LOG_ERROR, FAULT_INFRASTRUCTURE, 0,
                        "Sandbox was not rewound: %s", e->message);
    }
    uv_close((uv_handle_t *)&x->timer, on_timer_closed);
}

static void on_again(uv_timer_t *t)
{
    struct finishing *x = t->data;
    struct checkpoint *c = checkpoint_find(x->sandbox->front, x->sandbox->spec.tenant, x->name);
    struct sg_error e = {0};

    if (c) /* files alone will do: nobody waits for an error, and all that ran has ended */
        sandbox_rewind(x->sandbox, c, true, on_finished, x);
    else
        on_finished(x, NULL, err_set(&e, SG_ERR_GONE, -ESTALE, "the checkpoint is gone"), &e, NULL);
}

void sandboxes_finish_rewinds(struct front *f)
{
    SANDBOXES_EACH(b, f) {
        if (!b->spec.goes_back[0])
            continue;
        struct finishing *x = NEW(struct finishing, .sandbox = sandbox_ref(b));
        x->timer.data = x;
        memcpy(x->name, b->spec.goes_back, sizeof(x->name));
        uv_timer_init(f->loop, &x->timer);
        on_again(&x->timer);
    }
}
