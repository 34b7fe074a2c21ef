/* How a sandbox comes to its client: it is made, or handed out as one that waited. */
#include <stdio.h>
#include <string.h>

#include "front/core/call.h"
#include "front/core/checkpoint.h"
#include "front/core/copies.h"
#include "front/core/egress.h"
#include "front/core/node.h"
#include "front/core/standby.h"
#include "front/core/starting.h"
#include "front/core/transition.h"
#include "front/core/usage.h"
#include "front/core/volumes.h"
#include "front/core/warden.h"
#include "front/store/store.h"
#include "lib/base/clock.h"

#define NS_PER_MS      1000000ull
#define START_LIMIT_MS 60000 /* for a template's ready command, when a sandbox is made */
#define START_EVERY_MS 100

/* ---- making ---------------------------------------------------------------------------------- */

/* Adds the warden's steps to the span. They ran one after the other, within the time that the order
 * took. */
static void tell_steps(struct transition *t, const struct order_steps *s)
{
    struct span *span = t->operation.span;
    const struct {
        enum span_name name;
        uint32_t usec;
    } steps[] = {{SPAN_STEP_TAKE, s->take},
                 {SPAN_STEP_FILES, s->files},
                 {SPAN_STEP_NETWORK, s->network},
                 {SPAN_STEP_KERNELS, s->kernels}};
    uint64_t at = t->ordered_ns;

    t->answered_ns = clock_ns();
    if (s->pooled && strcmp(t->operation.label, "template") == 0)
        t->operation.label = "pool";
    if (!span)
        return;
    span_step(span, SPAN_STEP_POLICY, t->operation.began_ns, t->ordered_ns);
    span_step(span, SPAN_STEP_ORDER, t->ordered_ns, t->answered_ns);
    for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
        uint64_t end = at + steps[i].usec * 1000ull;

        if (steps[i].usec == 0 || end > t->answered_ns)
            continue;
        span_step(span, steps[i].name, at, end);
        at = end;
    }
    span_flag(span, KEY_POOLED, s->pooled != 0);
}

/* The template's start command runs, and is ready. A sandbox where it does not become ready is of
 * no use. */
static void on_started(void *arg, int r, const struct sg_error *e)
{
    struct transition *t = arg;
    struct sg_error failed = {0};

    if (r < 0 && t->sandbox->state != SANDBOX_ENDED) {
        failed = *e;
        err_wrap(&failed, r, "the sandbox was ended");
        sandbox_kill(t->sandbox, NULL, NULL);
    }
    transition_end(t, false, r, failed.kind ? &failed : e);
}

static void start_template(struct transition *t)
{
    struct starting_plan plan = {
        .limit_ms = START_LIMIT_MS, .every_ms = START_EVERY_MS, .done = on_started, .arg = t};

    starting_begin(t->sandbox, &plan);
}

/* The certificate is installed. The sandbox may have ended meanwhile: whoever uses it will find
 * out. */
static void on_installed(void *arg)
{
    struct transition *t = arg;

    span_step(t->operation.span, SPAN_STEP_READY, t->answered_ns, clock_ns());
    if (t->starts && t->sandbox->state == SANDBOX_RUNNING)
        start_template(t);
    else
        transition_end(t, false, 0, NULL);
}

static void create_again(void *arg);

static void on_created(void *arg, const struct warden_answer *w)
{
    struct transition *t = arg;
    struct sandbox *b = t->sandbox;
    struct sg_error e = w->e;
    int r = w->r;

    if (r == 0 && *w->fd < 0)
        r = err_set(&e, SG_ERR_INTERNAL, -EPROTO, "the warden sent no channel");
    if (r < 0 && !b->spec.standby && transition_make_room(t, &e, create_again))
        return;
    if (r < 0) {
        sandbox_now_ended(b);
    } else {
        b->link = link_new(b, steal_fd(w->fd));
        b->state = SANDBOX_RUNNING;
        b->has_copies = (w->a->flags & TELL_KERNELS) != 0;
        tell_steps(t, &w->a->steps);
        if (!b->spec.standby)
            usage_made(b);
        if (!t->memory) /* otherwise checkpoint_use.c has more urgent requests */
            sandbox_greet(b);
        sandbox_log_add(&b->log, LOG_INFO, FAULT_SANDBOX, 0, "Sandbox created from template %s",
                        b->spec.template_id);
    }
    if (r < 0)
        transition_end(t, false, r, &e);
    else
        egress_install(b, on_installed, t);
}

/* What comes with the order: the note, and the policy if there is one. */
static int describe(struct front *f, const char *id, const struct sandbox_spec *spec, bool closed,
                    int ret[2], struct sg_error *e)
{
    int document = -1, note = -1, r = closed ? 0 : egress_document(f, id, spec, &document, e);

    if (r == 0)
        r = note = sandbox_spec_save(spec, e);
    if (r < 0) {
        close_p(&document);
        return r;
    }
    ret[0] = note;
    ret[1] = document;
    return 0;
}

static void order_create(struct transition *t, const int fds[2])
{
    const struct sandbox *b = t->sandbox;
    struct order o = sandbox_order(b, ORDER_CREATE);

    o.flags = t->flags | (b->spec.interpreter && !t->memory ? ORDER_KERNEL : 0) |
              (fds[1] >= 0 ? ORDER_NETWORK : 0);
    o.deadline_ns = b->deadline_ns;
    volumes_fill_order(b->spec.volumes, &o);
    memcpy(o.snapshot, t->snapshot, sizeof(o.snapshot));
    t->ordered_ns = clock_ns();
    warden_order_two(b->front, &o, fds[0], fds[1], on_created, t);
}

static void create_again(void *arg)
{
    struct transition *t = arg;
    struct sandbox *b = t->sandbox;
    struct sg_error e = {0};
    int fds[2];
    int r = b->state == SANDBOX_STARTING ? describe(b->front, b->id, &b->spec, b->closed, fds, &e)
                                         : transition_gone(&e);

    if (r == 0) {
        order_create(t, fds);
        return;
    }
    sandbox_now_ended(b);
    transition_end(t, false, r, &e);
}

void sandbox_make(struct front *f, struct sandbox_spec *spec, const struct sandbox_make *m,
                  sandbox_done done, void *arg)
{
    struct sg_error e = {0};
    struct operation operation = {.began_ns = 0};
    char id[ID_LEN + 1];
    int fds[2], r = spec->standby ? 0 : node_check_open(f, &e);
    bool with_state = (m->flags & ORDER_STATE) != 0;

    if (r == 0 && !spec->standby)
        r = sandbox_check_room(f, spec->tenant, &e);
    if (r == 0 && spec->auto_pause)
        r = sandboxes_check_paused(f, spec->tenant, 1, &e);
    if (!spec->standby)
        operation_begin(&operation, OPERATION_CREATE);
    operation.label = with_state ? "checkpoint" : m->snapshot ? "snapshot" : "template";

    spec->timeout_ms = m->timeout_ms;
    snprintf(spec->checkpoint, sizeof(spec->checkpoint), "%s", m->came_from ? m->came_from : "");
    spec->checkpoint_serial = m->came_from ? checkpoints_serial(f) : 0;
    spec->unfinished = with_state;
    spec->goes_back[0] = '\0';
    spec->created_ms = spec->started_ms = clock_wall_ms();
    id_random(id);
    if (r == 0)
        r = egress_prepare(f, spec, &e);
    if (r == 0)
        r = describe(f, id, spec, m->closed, fds, &e);
    if (r < 0) {
        operation_context(&operation, spec->tenant, NULL, NULL,
                          spec->context[0] ? spec->context : NULL);
        operation_end(&operation, f, NULL, r, &e, NULL);
        sandbox_spec_done(spec);
        done(arg, NULL, r, &e);
        return;
    }
    struct sandbox *b = sandbox_new(f, id, spec);
    if (!b->spec.standby)
        operation_sandbox(&operation, b);
    b->last_trace = operation.trace;
    b->closed = m->closed;
    b->seen_ns = clock_ns();
    sandbox_set_deadline(b, b->seen_ns + m->timeout_ms * NS_PER_MS);
    sandboxes_add(b);
    struct transition *t = transition_new(b, done, arg);
    t->memory = with_state;
    t->flags = m->flags;
    snprintf(t->snapshot, sizeof(t->snapshot), "%s", m->snapshot ? m->snapshot : "");
    t->starts = !m->came_from && !b->spec.standby && starting_needed(b->spec.defaults);
    t->operation = operation;
    order_create(t, fds);
    sandbox_unref(b);
}

/* ---- handing out one that waited ------------------------------------------------------------- */

static void share_spec(const struct sandbox_spec *from, struct sandbox_spec *ret)
{
    json_t *const all[] = {from->metadata, from->envs,   from->network, from->secrets,
                           from->volumes,  from->agents, from->defaults};

    *ret = *from;
    for (size_t i = 0; i < ARRAY_SIZE(all); i++)
        json_incref(all[i]);
}

/* If it has ended meanwhile, or the warden does not have its note, another is made: the next front
 * would end it, as one that waits. */
static void on_handed_out(void *arg, const struct warden_answer *w)
{
    struct transition *t = arg;
    struct sandbox *b = t->sandbox;
    struct sandbox_make m = {.snapshot = t->snapshot, .timeout_ms = t->timeout_ms};
    struct sandbox_spec spec;

    t->failed = w->r < 0 ? w->r : t->failed;
    if (--t->pending > 0)
        return;
    if (t->failed == 0 && b->state == SANDBOX_RUNNING && !sandbox_is_breaking(b)) {
        usage_made(b);
        transition_end(t, false, 0, NULL);
        return;
    }
    share_spec(&b->spec, &spec);
    operation_drop(&t->operation);
    b->spec.standby = true; /* nobody has it */
    sandbox_kill(b, NULL, NULL);
    sandbox_make(b->front, &spec, &m, t->done, t->arg);
    free(t);
    sandbox_unref(b);
}

/* Gives the sandbox to the client, with the client's spec, which the note says. */
static void hand_out(struct sandbox *b, struct sandbox_spec *spec, int note, const char *snapshot,
                     sandbox_done done, void *arg)
{
    struct transition *t = transition_new(b, done, arg);

    sandbox_spec_done(&b->spec);
    b->spec = *spec;
    sandbox_spec_init(spec);
    t->timeout_ms = b->spec.timeout_ms;
    b->seen_ns = clock_ns();
    snprintf(t->snapshot, sizeof(t->snapshot), "%s", snapshot);
    operation_begin(&t->operation, OPERATION_CREATE);
    t->operation.label = "pool";
    operation_sandbox(&t->operation, b);
    b->last_trace = t->operation.trace;
    sandbox_set_deadline(b, b->seen_ns + t->timeout_ms * NS_PER_MS);
    sandbox_log_add(&b->log, LOG_INFO, FAULT_SANDBOX, 0, "Sandbox created from template %s",
                    b->spec.template_id);
    t->pending = 2;
    struct order named = sandbox_order(b, ORDER_NOTE), o = sandbox_order(b, ORDER_DEADLINE);
    o.deadline_ns = b->deadline_ns;
    warden_order(b->front, &named, note, on_handed_out, t);
    warden_order(b->front, &o, -1, on_handed_out, t);
    sandbox_unref(b);
}

/* Hands out one that waits, unless none does. Its note is written first: one that is too large is
 * refused as for any other sandbox. */
static bool create_waiting(struct front *f, struct sandbox_spec *spec, const struct sandbox_make *m,
                           sandbox_done done, void *arg)
{
    struct sandbox *b = NULL;
    int note;

    if (!m->snapshot || !starting_needed(spec->defaults) || node_check_open(f, NULL) < 0 ||
        sandbox_check_room(f, spec->tenant, NULL) < 0)
        return false;
    spec->timeout_ms = m->timeout_ms;
    spec->created_ms = spec->started_ms = clock_wall_ms();
    note = sandbox_spec_save(spec, NULL);
    if (note >= 0)
        b = standby_take(f, spec, m->snapshot);
    if (b)
        hand_out(b, spec, note, m->snapshot, done, arg);
    else
        close_p(&note);
    return b;
}

static void create(struct front *f, struct sandbox_spec *spec, const char *snapshot,
                   uint64_t timeout_ms, sandbox_done done, void *arg)
{
    struct sandbox_make m = {.snapshot = snapshot, .timeout_ms = timeout_ms};

    /* Those that wait were made of the files alone. */
    if (snapshot && sandbox_create_warm(f, spec, snapshot, timeout_ms, done, arg))
        return;
    if (!create_waiting(f, spec, &m, done, arg))
        sandbox_make(f, spec, &m, done, arg);
}

/* A sandbox that waits until its tenant has a copy of the template. */
struct creating {
    struct front *front;
    struct sandbox_spec spec;
    uint64_t timeout_ms;
    struct trace_ref trace;
    sandbox_done done;
    void *arg;
};

static void on_copy(void *arg, int r, const char *snapshot, const struct sg_error *e)
{
    AUTO(free_p) struct creating *c = arg;

    AUTO(operation_leave) struct trace_ref before UNUSED = operation_enter(&c->trace);
    if (r == 0) {
        create(c->front, &c->spec, snapshot, c->timeout_ms, c->done, c->arg);
        return;
    }
    sandbox_spec_done(&c->spec);
    c->done(c->arg, NULL, r, e);
}

void sandbox_create(struct front *f, struct sandbox_spec *spec, const char *snapshot,
                    uint64_t timeout_ms, sandbox_done done, void *arg)
{
    if (!snapshot || !copies_are_needed(f, spec->tenant, snapshot)) {
        create(f, spec, snapshot, timeout_ms, done, arg);
        return;
    }
    struct creating *c = NEW(struct creating, .front = f, .spec = *spec, .timeout_ms = timeout_ms,
                             .trace = operation_current(), .done = done, .arg = arg);
    sandbox_spec_init(spec);
    copies_want(f, c->spec.tenant, snapshot, on_copy, c);
    operation_place(NULL, NULL); /* if it waits, the next one is another */
}
