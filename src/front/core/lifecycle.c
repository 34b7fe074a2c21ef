/* The transitions of a sandbox: orders to the warden, and what follows from the answers. */
#include "front/core/lifecycle.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/clock.h"
#include "front/core/call.h"
#include "front/core/checkpoint.h"
#include "front/core/transition.h"
#include "front/core/identity.h"
#include "front/core/journal.h"
#include "front/core/living.h"
#include "front/core/standby.h"
#include "front/core/warm.h"
#include "front/core/ended_logs.h"
#include "front/core/warden.h"
#include "lib/log/log.h"
#include "front/store/store.h"

#define NS_PER_MS     1000000ull
#define WAKE_LEAST_MS 300000

/* ---- what transitions share ------------------------------------------------------------------ */

/* Somebody who waits for a transition to be over, to begin the next one or to use the sandbox. */
struct settle {
    struct list link;
    sandbox_done again;
    void *arg;
};

struct transition *transition_new(struct sandbox *b, sandbox_done done, void *arg)
{
    return NEW(struct transition, .sandbox = sandbox_ref(b), .done = done, .arg = arg);
}

/* Calls everybody who waited. They may begin the next transition, so the list is detached first. */
void sandbox_settled(struct sandbox *b)
{
    struct list list = {0};

    b->busy = BUSY_NO;
    list_move(&b->waiting, &list);
    for (struct settle *s; (s = LIST_POP(struct settle, &list, link)); free(s))
        s->again(s->arg, b, 0, NULL);
}

void sandbox_when_settled(struct sandbox *b, sandbox_done again, void *arg)
{
    struct settle *s = NEW(struct settle, .again = again, .arg = arg);

    list_append(&b->waiting, &s->link);
}

void transition_end(struct transition *t, bool was_busy, int r, const struct sg_error *e)
{
    struct sandbox *b = t->sandbox;

    operation_end(&t->operation, b->front, b, r, e, NULL);
    if (t->done)
        t->done(t->arg, b, r, e);
    if (was_busy)
        sandbox_settled(b);
    free(t);
    sandbox_unref(b);
}

struct order sandbox_order(const struct sandbox *b, enum order_op op)
{
    struct order o = {.op = op, .limits = b->spec.limits};

    memcpy(o.id, b->id, sizeof(o.id));
    memcpy(o.tenant, b->spec.tenant, sizeof(o.tenant));
    o.on_expiry = !b->spec.auto_pause         ? EXPIRY_KILL
                  : b->spec.auto_pause_memory ? EXPIRY_PAUSE
                                              : EXPIRY_PAUSE_FILES;
    return o;
}

int transition_gone(struct sg_error *e)
{
    return err_set(e, SG_ERR_NOT_FOUND, -ENOENT, "the sandbox has ended");
}

void sandbox_now_ended(struct sandbox *b)
{
    if (b->state == SANDBOX_ENDED)
        return;
    b->state = SANDBOX_ENDED;
    sandbox_ref(b);
    sandboxes_remove(b);
    link_free(steal_ptr(&b->link));
    if (b->spec.standby)
        standby_ended(b);
    else
        ended_logs_keep(b->spec.tenant, b->id, &b->end, &b->log);
    sandbox_settled(b);
    checkpoints_sandbox_ended(b);
    if (b->front->on_sandbox_ended)
        b->front->on_sandbox_ended(b);
    sandbox_unref(b);
}

/* Sends the first requests to a new agent, in one write. */
void sandbox_greet(struct sandbox *b)
{
    sandbox_cork(b);
    identity_write(b);
    if (b->spec.interpreter)
        sandbox_warm_kernel(b);
    sandbox_uncork(b);
}

/* Sandboxes that wait have the room that one needs which was asked for. True: they go, and then it is
 * ordered once more. */
bool transition_make_room(struct transition *t, const struct sg_error *e, void (*order)(void *t))
{
    const char *tenant = e->code == -EDQUOT ? t->sandbox->spec.tenant : NULL;
    bool first = !t->again && !(t->flags & ORDER_LAST);

    t->again = true;
    return e->kind == SG_ERR_LIMIT && standby_give_way(tenant, first ? order : NULL, t);
}

/* Whether one more sandbox of the tenant may run. */
int sandbox_check_room(struct front *f, const char *tenant, struct sg_error *e)
{
    uint32_t limit = f->settings.tenant_sandboxes;
    struct store_tenant t;

    if (f->draining)
        return err_set(e, SG_ERR_LIMIT, -EAGAIN, "the server is shutting down");
    if (store_tenant_get(f->store, tenant, &t) == 0 && t.max_sandboxes > 0)
        limit = t.max_sandboxes;
    if (sandboxes_count(f, tenant) >= limit)
        return err_set(e, SG_ERR_LIMIT, -EDQUOT,
                       "you have reached the maximum number of concurrent sandboxes: the limit is "
                       "%u; kill or pause one first",
                       limit);
    return 0;
}

/* ---- kill ------------------------------------------------------------------------------------ */

static void on_killed(void *arg, const struct warden_answer *w)
{
    struct transition *t = arg;
    int r = w->r == -ENOENT ? 0 : w->r; /* its deadline ended it first, which is just as well */

    usage_kill_answered(t->sandbox);
    operation_end(&t->operation, t->sandbox->front, t->sandbox, r, &w->e, "killed");
    transition_end(t, false, r, &w->e);
}

void sandbox_kill(struct sandbox *b, sandbox_done done, void *arg)
{
    struct transition *t = transition_new(b, done, arg);

    if (b->state != SANDBOX_ENDED && !b->spec.standby) { /* else its end was reported already */
        operation_begin(&t->operation, OPERATION_DESTROY);
        operation_sandbox(&t->operation, b);
    }
    struct order o = sandbox_order(b, ORDER_KILL);
    usage_kill_ordered(b);
    warden_order(b->front, &o, -1, on_killed, t);
    /* The sandbox leaves the table now: that it will be gone is certain. */
    sandbox_log_add(&b->log, LOG_INFO, FAULT_SANDBOX, 0, "Sandbox killed");
    sandbox_now_ended(b);
}

/* ---- pause and resume ------------------------------------------------------------------------ */

static void now_paused(struct sandbox *b, const struct order_answer *a)
{
    bool stored = a->state == STATE_STORED;

    sandbox_ref(b); /* dropping its calls may end a sandbox that is being made */
    usage_paused(b, &a->stats);
    b->deadline_ns = 0;
    b->state = SANDBOX_PAUSED;
    b->stored = stored;
    b->held_memory = a->stats.memory_used + a->stats.memory_cache;
    sandbox_log_add(&b->log, LOG_INFO, FAULT_SANDBOX, 0, "Sandbox paused, %s",
                    stored ? "files only" : "memory kept");
    if (stored)
        link_free(steal_ptr(&b->link));
    else
        link_drop_calls(b->link);
    sandbox_unref(b);
}

static void on_paused(void *arg, const struct warden_answer *w)
{
    struct transition *t = arg;

    if (w->r == 0 && t->sandbox->state == SANDBOX_RUNNING)
        now_paused(t->sandbox, w->a);
    transition_end(t, true, w->r, &w->e);
}

static void pause_again(void *arg, struct sandbox *b, int r UNUSED, const struct sg_error *e UNUSED)
{
    struct transition *t = arg;

    AUTO(operation_leave) struct trace_ref before UNUSED = operation_enter(&t->operation.trace);
    sandbox_pause(b, t->memory, t->done, t->arg);
    free(t);
    sandbox_unref(b);
}

void sandbox_pause(struct sandbox *b, bool keep_memory, sandbox_done done, void *arg)
{
    struct sg_error e = {0};

    checkpoint_give_way(b);
    if (b->state == SANDBOX_ENDED || b->state == SANDBOX_PAUSED) {
        int r = b->state == SANDBOX_ENDED
                    ? transition_gone(&e)
                    : err_set(&e, SG_ERR_GONE, -EALREADY,
                              "Error pausing sandbox - sandbox '%s' is already paused", b->id);
        done(arg, b, r, &e);
        return;
    }
    struct transition *t = transition_new(b, done, arg);
    t->memory = keep_memory;
    if (b->busy != BUSY_NO) {
        t->operation.trace = operation_current();
        sandbox_when_settled(b, pause_again, t);
        return;
    }
    int r = b->spec.auto_pause ? 0 : sandboxes_check_paused(b->front, b->spec.tenant, 1, &e);
    if (r == 0 && keep_memory)
        r = sandboxes_check_held(b->front, b->spec.tenant, &e);
    if (r < 0) {
        transition_end(t, false, r, &e);
        return;
    }
    b->busy = BUSY_PAUSING;
    operation_begin(&t->operation, OPERATION_PAUSE);
    t->operation.label = keep_memory ? "memory" : "files";
    operation_sandbox(&t->operation, b);
    struct order o = sandbox_order(b, ORDER_PAUSE);
    o.flags = keep_memory ? 0 : ORDER_FILES_ONLY;
    warden_order(b->front, &o, -1, on_paused, t);
}

static void order_resume(void *arg);

static void on_resumed(void *arg, const struct warden_answer *w)
{
    struct transition *t = arg;
    struct sandbox *b = t->sandbox;

    if (w->r == 0 && b->state == SANDBOX_PAUSED) {
        bool booted = *w->fd >= 0;
        if (booted) {
            link_free(b->link);
            b->link = link_new(b, steal_fd(w->fd));
            sandbox_greet(b);
        }
        b->state = SANDBOX_RUNNING;
        usage_resumed(b);
        b->stored = false;
        sandbox_set_deadline(b, t->deadline_ns);
        b->spec.timeout_ms = t->timeout_ms;
        b->spec.started_ms = clock_wall_ms();
        sandbox_note_changed(b);
        sandbox_log_add(&b->log, LOG_INFO, FAULT_SANDBOX, 0, "Sandbox resumed%s",
                        booted ? " from its files" : "");
    }
    if (w->r == 0 || !transition_make_room(t, &w->e, order_resume))
        transition_end(t, true, w->r, &w->e);
}

static void order_resume(void *arg)
{
    struct transition *t = arg;
    struct order o = sandbox_order(t->sandbox, ORDER_RESUME);

    o.flags = t->memory ? 0 : ORDER_FILES_ONLY;
    o.deadline_ns = t->deadline_ns;
    warden_order(t->sandbox->front, &o, -1, on_resumed, t);
}

static void resume_again(void *arg, struct sandbox *b, int r UNUSED,
                         const struct sg_error *e UNUSED)
{
    struct transition *t = arg;

    AUTO(operation_leave) struct trace_ref before UNUSED = operation_enter(&t->operation.trace);
    sandbox_resume(b, t->memory, t->timeout_ms, t->done, t->arg);
    free(t);
    sandbox_unref(b);
}

void sandbox_resume(struct sandbox *b, bool use_memory, uint64_t timeout_ms, sandbox_done done,
                    void *arg)
{
    struct sg_error e = {0};

    if (b->state == SANDBOX_ENDED || (b->state == SANDBOX_RUNNING && b->busy != BUSY_PAUSING)) {
        int r = b->state == SANDBOX_ENDED
                    ? transition_gone(&e)
                    : err_set(&e, SG_ERR_GONE, -EALREADY, "Sandbox %s is already running", b->id);
        done(arg, b, r, &e);
        return;
    }
    struct transition *t = transition_new(b, done, arg);
    t->memory = use_memory;
    t->timeout_ms = timeout_ms;
    if (b->busy != BUSY_NO) {
        t->operation.trace = operation_current();
        sandbox_when_settled(b, resume_again, t);
        return;
    }
    int r = sandbox_check_room(b->front, b->spec.tenant, &e);
    if (r < 0) {
        transition_end(t, false, r, &e);
        return;
    }
    b->busy = BUSY_RESUMING;
    operation_begin(&t->operation, OPERATION_RESUME);
    t->operation.label = b->stored ? "stored" : "paused";
    operation_sandbox(&t->operation, b);
    t->deadline_ns = clock_ns() + timeout_ms * NS_PER_MS;
    order_resume(t);
}

static void wake_again(void *arg, struct sandbox *b, int r, const struct sg_error *e UNUSED)
{
    struct transition *t = arg;

    if (r < 0 && r != -EALREADY)
        t->done(t->arg, b, r, e);
    else
        sandbox_wake(b, t->done, t->arg);
    free(t);
    sandbox_unref(b);
}

/* As at E2B, nobody who wakes a sandbox by mere traffic finds it paused a moment later. */
static uint64_t wake_timeout(const struct sandbox *b)
{
    uint64_t most = b->front->settings.max_timeout_ms;
    uint64_t least = most < WAKE_LEAST_MS ? most : WAKE_LEAST_MS;

    return b->spec.timeout_ms > least ? b->spec.timeout_ms : least;
}

void sandbox_wake(struct sandbox *b, sandbox_done done, void *arg)
{
    bool may_wake = b->spec.auto_resume && !b->stored;
    struct sg_error e = {0};

    if (b->state == SANDBOX_RUNNING && b->busy != BUSY_PAUSING) {
        done(arg, b, 0, NULL);
    } else if (b->state == SANDBOX_ENDED || b->state == SANDBOX_STARTING ||
               (!may_wake && b->busy != BUSY_RESUMING)) {
        done(arg, b, transition_gone(&e), &e);
    } else {
        struct transition *t = transition_new(b, done, arg);
        if (b->busy != BUSY_NO)
            sandbox_when_settled(b, wake_again, t);
        else
            sandbox_resume(b, true, wake_timeout(b), wake_again, t);
    }
}

/* ---- deadline, note -------------------------------------------------------------------------- */

static void on_deadline_set(void *arg, const struct warden_answer *w)
{
    struct transition *t = arg;

    if (w->r == 0 && t->sandbox->state == SANDBOX_RUNNING) {
        sandbox_set_deadline(t->sandbox, t->deadline_ns);
        t->sandbox->spec.timeout_ms = t->timeout_ms;
        sandbox_note_changed(t->sandbox);
    }
    transition_end(t, false, w->r, &w->e);
}

void sandbox_set_timeout(struct sandbox *b, uint64_t timeout_ms, bool extend_only,
                         sandbox_done done, void *arg)
{
    uint64_t deadline = clock_ns() + timeout_ms * NS_PER_MS;
    struct transition *t = transition_new(b, done, arg);
    struct sg_error e = {0};

    if (b->state != SANDBOX_RUNNING) {
        transition_end(t, false, transition_gone(&e), &e);
        return;
    }
    if (extend_only && deadline <= b->deadline_ns) {
        transition_end(t, false, 0, NULL);
        return;
    }
    t->deadline_ns = deadline;
    t->timeout_ms = timeout_ms;
    struct order o = sandbox_order(b, ORDER_DEADLINE);
    o.deadline_ns = deadline;
    warden_order(b->front, &o, -1, on_deadline_set, t);
}

void sandbox_note_changed(struct sandbox *b)
{
    int note = sandbox_spec_save(&b->spec, NULL);

    if (note < 0)
        return; /* out of memory: its size cannot be the reason, since it was saved before */
    struct order o = sandbox_order(b, ORDER_NOTE);
    warden_order(b->front, &o, note, NULL, NULL);
}

/* ---- messages of the warden ------------------------------------------------------------------ */

void sandbox_told_sandbox(struct front *f, const struct order_answer *a, int note_fd,
                          int channel_fd)
{
    struct sandbox_spec spec;
    struct sg_error e = {0};
    int r = note_fd < 0 ? -EPROTO : sandbox_spec_load(note_fd, &spec, &e);

    close_p(&note_fd);
    if (r < 0 || !id_valid(a->id)) {
        struct order o = {.op = ORDER_KILL};
        log_sandbox(LEVEL_ERROR, FAULT_INFRASTRUCTURE, a->id,
                    "the new front cannot take over the sandbox: %s", e.message);
        close_p(&channel_fd);
        memcpy(o.id, a->id, sizeof(o.id));
        warden_order(f, &o, -1, NULL, NULL);
        return;
    }
    struct sandbox *b = sandbox_new(f, a->id, &spec);
    b->seen_ns = clock_ns();
    journal_give(b->id, &b->log, &b->metrics);
    sandbox_set_deadline(b, a->deadline_ns);
    b->state = a->state == STATE_RUNNING ? SANDBOX_RUNNING : SANDBOX_PAUSED;
    b->stored = a->state == STATE_STORED;
    if (b->state == SANDBOX_PAUSED) {
        b->deadline_ns = 0;
        b->end_ms = b->spec.started_ms + (int64_t)b->spec.timeout_ms;
        b->held_memory = a->stats.memory_used + a->stats.memory_cache;
    }
    if (channel_fd >= 0)
        b->link = link_new(b, channel_fd);
    usage_taken_over(b, &a->stats);
    sandboxes_add(b);
    /* An earlier front was killed while it made this copy, built a template here, or kept it for others. */
    if (b->spec.unfinished || b->spec.build || b->spec.standby)
        sandbox_kill(b, NULL, NULL);
    sandbox_unref(b);
}

/* Logs the end of a sandbox; the entry's fault says who caused it. */
static void log_end(struct sandbox_log *log, const struct sandbox_end *end)
{
    const struct end_kind *kind = end_kind(end->why);

    if (end->why != END_KILLED)
        sandbox_log_add(log, kind->wanted ? LOG_INFO : LOG_ERROR, kind->fault, 0,
                        "Sandbox ended: %s", sandbox_end_text(end));
}

/* The end of a sandbox that only an earlier front knew. It is kept, so that users who ask later are
 * told the reason as usual. */
static void told_of_earlier(const struct order_answer *a)
{
    struct sandbox_end end;
    struct sandbox_log log = {0};

    sandbox_end_told(&end, a);
    living_told_end(a);
    if (!id_valid(a->id) || !id_valid(a->tenant) || ended_logs_end(a->tenant, a->id))
        return;
    journal_give(a->id, &log, NULL);
    if (sandbox_end_is_news(&end))
        log_end(&log, &end);
    if (sandbox_log_count(&log) > 0)
        ended_logs_keep(a->tenant, a->id, &end, &log);
    sandbox_log_done(&log);
}

void sandbox_told_ended(struct front *f, const struct order_answer *a)
{
    struct sandbox *b = sandbox_find(f, a->id);

    usage_ended(b, a);
    if (!b && !f->store) /* an earlier front's: no event can be emitted yet */
        told_of_earlier(a);
    if (!b)
        return;
    sandbox_end_told(&b->end, a);
    log_end(&b->log, &b->end);
    if (!b->spec.standby)
        operation_told(f, b, OPERATION_DESTROY, end_kind(b->end.why)->word,
                       sandbox_end_is_news(&b->end) ? sandbox_end_text(&b->end) : NULL);
    sandbox_now_ended(b);
}

static void on_let_go(void *arg, const struct warden_answer *w)
{
    struct transition *t = arg;
    struct sandbox *b = t->sandbox;

    if (w->r == 0 && b->state == SANDBOX_PAUSED) {
        b->stored = true;
        link_free(steal_ptr(&b->link));
    } else if (w->r < 0 && b->state == SANDBOX_PAUSED) {
        sandbox_log_add(&b->log, LOG_WARN, FAULT_INFRASTRUCTURE, 0,
                        "Its memory could not be released: %s", w->e.message);
    }
    transition_end(t, true, w->r, &w->e);
}

/* The sandbox was paused at its deadline, but the tenant's paused sandboxes already hold all the
 * memory that they may. So its memory is released, and its files are kept. */
static void let_memory_go(struct sandbox *b)
{
    struct transition *t = transition_new(b, NULL, NULL);

    b->busy = BUSY_PAUSING;
    sandbox_log_add(&b->log, LOG_WARN, FAULT_SANDBOX, 0,
                    "Its memory was released: paused sandboxes of the tenant hold more than "
                    "tenant_paused_memory");
    struct order o = sandbox_order(b, ORDER_PAUSE);
    o.flags = ORDER_FILES_ONLY;
    warden_order(b->front, &o, -1, on_let_go, t);
}

void sandbox_told_paused(struct front *f, const struct order_answer *a)
{
    struct sandbox *b = sandbox_find(f, a->id);

    if (b && b->state == SANDBOX_RUNNING) {
        bool room = sandboxes_check_held(f, b->spec.tenant, NULL) == 0;

        now_paused(b, a);
        operation_told(f, b, OPERATION_PAUSE, "expired", NULL);
        if (!room && b->state == SANDBOX_PAUSED && !b->stored)
            let_memory_go(b);
    }
}
