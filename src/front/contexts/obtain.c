/* Get-or-create: obtains the sandbox of a path, for all who ask for it at the same time. context.h
 * has a diagram of the steps. */
#include <string.h>

#include "lib/base/clock.h"
#include "front/contexts/impl.h"
#include "front/core/output_filter.h"
#include "lib/log/log.h"

#define ATTEMPTS_MAX 50 /* for the same waiters: others may end what was made before it is told */
#define WAIT_MS      20
#define WAITS_MAX    (CONTEXT_LEASE_MS / WAIT_MS)

static void claim(struct context *c);

/* ---- answers --------------------------------------------------------------------------------- */

static struct waiter *first_waiter(const struct context *c)
{
    return LIST_FIRST(struct waiter, &c->waiters, in_line);
}

/* Answers one waiter, who is out of the list already, and frees it. Takes f because the context may
 * be gone. */
static void tell_waiter(struct front *f, struct waiter *w, const struct context_answer *a)
{
    if (a->sandbox) /* now that it is attached to its context */
        operation_sandbox(&w->operation, a->sandbox);
    if (a->r == 0)
        span_flag(w->operation.span, KEY_CREATED, a->created);
    if (a->r == 0 && a->sandbox && !a->created && !w->woken)
        w->operation.label = "running";
    operation_end(&w->operation, f, a->sandbox, a->r, a->e, a->replaced ? "replaced" : NULL);
    w->done(w->arg, a);
    sandbox_unref(w->bring);
    free(w);
}

static void over(struct context *c)
{
    c->step = OBTAIN_NONE;
    free(steal_ptr(&c->kept));
    free(steal_ptr(&c->keep));
    c->attempts = c->waits = 0;
    c->replacing = c->kept_lost = false;
}

/* Answers all waiters. They may ask for the same path again at once, which begins anew. So this
 * round is closed before the first of them is called. */
static void answer_all(struct context *c, const struct context_answer *answer)
{
    struct list told = {0};
    struct waiter *w;
    struct context_answer a = *answer;
    struct front *f = c->front;
    json_t *report = steal_ptr(&c->report);
    struct ctx_row row;

    a.report = report;
    if (a.row) {
        row = *a.row;
        a.row = &row;
        if (a.elsewhere)
            a.elsewhere = row.node_url;
    }
    if (a.sandbox)
        sandbox_ref(a.sandbox);
    if (a.created)
        context_tell(f, HAPPENED_CONTEXT_CREATED, a.row, a.replaced ? "replaced" : "new");
    list_move(&c->waiters, &told);
    over(c);
    context_drop_if_idle(c);
    while ((w = LIST_POP(struct waiter, &told, in_line))) {
        tell_waiter(f, w, &a);
        a.created = a.replaced = a.kept_lost = false; /* to the others it was there already */
        a.report = NULL;
    }
    json_decref(report);
    sandbox_unref(a.sandbox);
}

static void fail_all(struct context *c, int r, const struct sg_error *e)
{
    answer_all(c, &(struct context_answer){.r = r, .e = e});
}

static void succeed(struct context *c, bool created)
{
    c->told_ns = clock_ns();
    context_move_deadline(c);
    answer_all(c, &(struct context_answer){.row = &c->row,
                                           .sandbox = c->sandbox,
                                           .created = created,
                                           .replaced = created && c->replacing,
                                           .kept_lost = created && c->kept_lost});
}

/* The first waiter is done with: begins anew for the others. */
static void go_on(struct context *c)
{
    over(c);
    if (list_empty(&c->waiters))
        context_drop_if_idle(c);
    else
        claim(c);
}

/* The row has changed meanwhile: begins again with a claim. */
static void again(struct context *c)
{
    struct sg_error e;

    if (++c->attempts < ATTEMPTS_MAX) {
        claim(c);
        return;
    }
    int r = err_set(&e, SG_ERR_LIMIT, -EAGAIN,
                    "other requests keep changing the context of path '%.64s': try again", c->path);
    fail_all(c, r, &e);
}

/* ---- trying again soon ----------------------------------------------------------------------- */

struct pause {
    uv_timer_t timer;
    struct context *context;
};

static void on_pause_closed(uv_handle_t *h)
{
    free(h->data);
}

static void on_pause_over(uv_timer_t *t)
{
    struct pause *p = t->data;
    struct context *c = p->context;

    uv_close((uv_handle_t *)t, on_pause_closed);
    claim(c);
}

/* Claims again after a short wait, because the row is about to change: a server without a known
 * address is making the sandbox, or our sandbox has ended and the warden has not reported it
 * yet. */
static void look_again_soon(struct context *c)
{
    struct sg_error e;

    if (++c->waits >= WAITS_MAX) {
        int r = err_set(&e, SG_ERR_LIMIT, -EAGAIN,
                        "the sandbox of path '%.64s' is being made or ended: try again", c->path);
        fail_all(c, r, &e);
        return;
    }
    struct pause *p = NEW(struct pause, .context = c);
    p->timer.data = p;
    uv_timer_init(c->front->loop, &p->timer);
    uv_timer_start(&p->timer, on_pause_over, WAIT_MS, 0);
}

/* ---- making a sandbox ------------------------------------------------------------------------ */

static void on_failure_settled(void *arg, const struct ctx_reply *reply)
{
    struct context *c = arg;

    if (reply->r < 0 && reply->r != -ESTALE)
        log_line(
            LEVEL_WARN,
            "a context without a sandbox could not be removed, and will be when it expires: %s",
            reply->e.message);
    go_on(c);
}

/* The sandbox for the first waiter cannot be made: that waiter gets the error. The others may want
 * another kind of sandbox, or have more luck. for_all: the server has no room, so all get the
 * error. */
static void not_made(struct context *c, int r, const struct sg_error *e, const json_t *report,
                     bool for_all)
{
    char id[ID_LEN + 1], message[CTX_ERROR_MAX + 1];
    struct waiter *w = LIST_POP(struct waiter, &c->waiters, in_line);
    struct list others = {0};
    struct context_answer a = {.r = r, .e = e, .report = report};
    struct front *f = c->front;

    if (for_all)
        list_move(&c->waiters, &others);
    memcpy(id, c->row.id, sizeof(id));
    output_filter_stored_message(
        c->front, e->kind == SG_ERR_INTERNAL ? "the sandbox could not be made" : e->message,
        message, sizeof(message));
    ctx_call(c->front->contexts->store, settle, c->tenant, id, c->front->contexts->node, NULL,
             message, NULL, on_failure_settled, c);
    do
        tell_waiter(f, w, &a);
    while ((w = LIST_POP(struct waiter, &others, in_line)));
}

static void on_settled(void *arg, const struct ctx_reply *reply)
{
    struct context *c = arg;

    if (reply->r == 0) {
        c->row = reply->rows[0];
        if (c->sandbox)
            succeed(c, true);
        else
            again(c); /* the sandbox has ended since */
        return;
    }
    /* The row is another's, or its owner is unknown: the sandbox is ended, since none may exist
     * without a row. If the store did settle it and only the answer was lost, the store must hear
     * that the row does not have this sandbox. */
    if (c->sandbox && reply->r != -ESTALE)
        lost_tell(c, c->sandbox);
    context_kill_sandbox(c);
    if (reply->r == -ESTALE)
        again(c);
    else
        fail_all(c, reply->r, &reply->e);
}

static void on_sandbox(void *arg, struct sandbox *b, int r, const struct sg_error *e)
{
    struct context *c = arg;

    if (r < 0) {
        not_made(c, r, e, NULL, true);
        return;
    }
    context_attach(c, b);
    ctx_call(c->front->contexts->store, settle, c->tenant, c->row.id, c->front->contexts->node,
             b->id, NULL, c->keep, on_settled, c);
}

static void on_forked(void *arg, struct sandbox *b, int r, const struct sg_error *e,
                      const json_t *report)
{
    struct context *c = arg;

    /* Only this waiter asked for this copy, so the others do not get its error. */
    if (r < 0) {
        not_made(c, r, e, report, false);
        return;
    }
    json_decref(c->report);
    c->report = report ? json_deep_copy(report) : NULL;
    on_sandbox(c, b, 0, NULL);
}

static void create_from(struct context *c, struct sandbox_spec *spec)
{
    const struct waiter *w = first_waiter(c);
    struct checkpoint *from = checkpoint_find(c->front, c->tenant, w->checkpoint);
    struct fork_ask ask = {.timeout_ms = context_life_ms(c),
                           .last = w->last,
                           .replay = w->replay,
                           .files_do = w->files_do};
    struct sg_error e;

    if (from) {
        operation_place(c->conversation, c->path);
        sandbox_create_from(c->front, spec, from, &ask, on_forked, c);
        return;
    }
    sandbox_spec_done(spec);
    err_set(&e, SG_ERR_GONE, -ESTALE, "checkpoint %s is gone: it was thinned out", w->checkpoint);
    not_made(c, -ESTALE, &e, NULL, false);
}

/* Puts the sandbox that the waiter brings in its place if it still runs; if not, the old sandbox
 * stays. */
static void bring(struct context *c)
{
    struct sandbox *b = first_waiter(c)->bring;
    struct sg_error e;

    if (b->state != SANDBOX_RUNNING)
        b = c->sandbox;
    if (b && strcmp(b->spec.context, c->row.id) == 0) {
        on_sandbox(c, b, 0, NULL);
        return;
    }
    err_set(&e, SG_ERR_NOT_FOUND, -ENOENT, "the context has ended");
    not_made(c, -ENOENT, &e, NULL, false);
}

/* Applies the kept settings of the context, except where this call sets its own. The result of both
 * is kept. */
static int apply_kept(struct context *c, struct sandbox_spec *spec, struct sg_error *e)
{
    const struct vault_key *key = c->front->contexts->key;
    bool said = true;

    c->kept_lost = c->kept && kept_apply(key, c->tenant, c->row.id, c->kept, spec, &said, e) < 0;
    if (c->kept_lost)
        log_with(LEVEL_WARN,
                 &(struct log_about){.fault = FAULT_INFRASTRUCTURE, .tenant = c->tenant},
                 "context %s gets a sandbox without its metadata, variables and network: %s",
                 c->row.id, e->message);
    free(steal_ptr(&c->keep));
    return said ? kept_seal(key, c->tenant, c->row.id, spec, &c->keep, e) : 0;
}

/* Makes the sandbox that the first waiter asks for. */
static void create_for(struct context *c, struct waiter *w)
{
    char snapshot[ID_LEN + 1] = "";
    struct sg_error e = {0};
    struct sandbox_spec spec;

    c->step = OBTAIN_CREATE;
    if (w->bring) {
        bring(c);
        return;
    }
    int r = w->spec(w->arg, c->replacing ? c->row.template_id : NULL, &spec, snapshot, &e);
    if (r == 0 && (r = apply_kept(c, &spec, &e)) < 0)
        sandbox_spec_done(&spec);
    if (r < 0) {
        not_made(c, r, &e, NULL, false);
        return;
    }
    snprintf(spec.context, sizeof(spec.context), "%s", c->row.id);
    if (w->tenant.memory > 0)
        spec.limits.memory_bytes = w->tenant.memory;
    if (w->checkpoint[0]) {
        create_from(c, &spec);
        return;
    }
    operation_place(c->conversation, c->path);
    sandbox_create(c->front, &spec, snapshot[0] ? snapshot : NULL, context_life_ms(c), on_sandbox,
                   c);
}

static void create(struct context *c)
{
    struct waiter *w = first_waiter(c);
    AUTO(operation_leave) struct trace_ref before UNUSED = operation_enter(&w->operation.trace);
    char asked[ID_LEN + 1];

    operation_request(w->operation.request, asked);
    create_for(c, w);
    operation_request(asked, NULL);
}

/* ---- using a sandbox that exists ------------------------------------------------------------- */

static void limits_of(const struct context *c, struct ctx_limits *ret)
{
    struct context_limits l;

    context_limits(c->front, &first_waiter(c)->tenant, &l);
    *ret = (struct ctx_limits){.tenant = l.tenant, .conversation = l.conversation};
}

static void on_replaced(void *arg, const struct ctx_reply *reply)
{
    struct context *c = arg;

    if (reply->r == -ESTALE) {
        again(c);
    } else if (reply->r < 0) {
        fail_all(c, reply->r, &reply->e);
    } else {
        c->row = reply->rows[0];
        c->replacing = true;
        free(c->kept);
        c->kept = reply->kept ? xstrdup(reply->kept) : NULL;
        create(c);
    }
}

static void replace(struct context *c)
{
    struct ctx_limits limits;

    limits_of(c, &limits);
    c->step = OBTAIN_REPLACE;
    ctx_call(c->front->contexts->store, replace, c->tenant, c->row.id, c->row.sandbox_id,
             c->front->contexts->node, &limits, on_replaced, c);
}

static void on_awake(void *arg, struct sandbox *b, int r, const struct sg_error *e)
{
    struct context *c = arg;

    if (b->state == SANDBOX_ENDED) {
        replace(c);
    } else if (r == 0 || r == -EALREADY) {
        context_attach(c, b);
        succeed(c, false);
    } else {
        fail_all(c, r, e);
    }
}

/* Turns away the first waiter, who brings a sandbox that the row cannot have. The others go on. */
static void turn_away(struct context *c)
{
    struct waiter *w = LIST_POP(struct waiter, &c->waiters, in_line);
    struct front *f = c->front;
    struct sg_error e;

    err_set(&e, SG_ERR_NOT_FOUND, -ENOENT, "the context, or the sandbox for it, has ended");
    go_on(c);
    tell_waiter(f, w, &(struct context_answer){.r = -ENOENT, .e = &e});
}

static void found(struct context *c)
{
    struct waiter *w = first_waiter(c);
    const struct sandbox *brought = w->bring;
    struct context_answer a = {0};
    struct sg_error e;

    if (context_is_elsewhere(c->front, &c->row, &a, &e)) {
        answer_all(c, &a);
        return;
    }
    if (brought &&
        (brought->state != SANDBOX_RUNNING || strcmp(brought->spec.context, c->row.id) != 0)) {
        turn_away(c);
        return;
    }
    struct sandbox *b =
        c->row.sandbox_id[0] ? sandbox_get(c->front, c->tenant, c->row.sandbox_id) : NULL;
    if (!b || strcmp(b->spec.context, c->row.id) != 0) {
        replace(c);
    } else if (brought) {
        context_attach(c, b); /* so that it is ended when the other takes its place */
        replace(c);
    } else if (b->state != SANDBOX_RUNNING || b->busy == BUSY_PAUSING) {
        AUTO(operation_leave) struct trace_ref before UNUSED = operation_enter(&w->operation.trace);
        c->step = OBTAIN_WAKE;
        w->woken = true; /* the resume is reported as an operation of its own */
        sandbox_resume(b, true, context_life_ms(c), on_awake, c);
    } else if (sandbox_is_breaking(b)) {
        look_again_soon(c);
    } else {
        context_attach(c, b);
        succeed(c, false);
    }
}

/* ---- whose is the path? ---------------------------------------------------------------------- */

static void on_busy(struct context *c)
{
    struct context_answer a = {0};
    struct sg_error e;

    if (context_is_elsewhere(c->front, &c->row, &a, &e) && a.elsewhere)
        answer_all(c, &a);
    else
        look_again_soon(c);
}

static void on_claimed(void *arg, const struct ctx_reply *reply)
{
    struct context *c = arg;

    if (reply->r < 0) {
        fail_all(c, reply->r, &reply->e);
        return;
    }
    c->row = reply->rows[0];
    switch (reply->claimed) {
    case CLAIM_FOUND:
        found(c);
        break;
    case CLAIM_NEW:
        /* A sandbox that this server still has for the path belongs to an old row. */
        context_kill_sandbox(c);
        c->replacing = false;
        free(steal_ptr(&c->kept));
        create(c);
        break;
    case CLAIM_BUSY:
        on_busy(c);
        break;
    }
}

/* The server is about to end and begins nothing new, but it still points to sandboxes on other
 * servers. */
static void on_looked_up(void *arg, const struct ctx_reply *reply)
{
    struct context *c = arg;
    struct context_answer a = {0};
    struct sg_error e = reply->e;
    int r = reply->r;

    if (r == 0 && reply->n > 0) {
        c->row = reply->rows[0];
        if (context_is_elsewhere(c->front, &c->row, &a, &e)) {
            answer_all(c, &a);
            return;
        }
    }
    if (r == 0)
        r = err_set(&e, SG_ERR_LIMIT, -EAGAIN,
                    "the server is shutting down and takes no new work: try again soon");
    fail_all(c, r, &e);
}

static void look_up(struct context *c)
{
    struct ctx_list q = {.tenant = c->tenant,
                         .conversation = c->conversation,
                         .path = c->path,
                         .statuses = CTX_ACTIVE,
                         .before_id = "",
                         .limit = 1};

    c->step = OBTAIN_CLAIM;
    ctx_call(c->front->contexts->store, list, &q, on_looked_up, c);
}

static void claim(struct context *c)
{
    struct contexts *t = c->front->contexts;
    const struct settings *settings = &c->front->settings;
    const struct waiter *w = first_waiter(c);
    char id[ID_LEN + 1];

    id_random(id);
    c->step = OBTAIN_CLAIM;
    struct ctx_claim q = {.tenant = c->tenant,
                          .conversation = c->conversation,
                          .path = c->path,
                          .id = id,
                          .node = t->node,
                          .template_id =
                              w->template_id[0] ? w->template_id : settings->context_template,
                          .in_use = context_used(c) ? c->sandbox->id : NULL,
                          .ttl_ms = w->ttl_ms,
                          .default_ttl_ms = settings->context_ttl_ms,
                          .lease_ms = CONTEXT_LEASE_MS};
    limits_of(c, &q.limits);
    ctx_call(t->store, claim, &q, on_claimed, c);
}

void context_obtain(struct front *f, const struct context_ask *ask, context_done done, void *arg)
{
    struct sg_error e;

    if (!f->contexts->recovered) {
        const char *why = f->contexts->why.message;
        int r = err_set(&e, SG_ERR_LIMIT, -EAGAIN,
                        "contexts are not available until the database answers%s%.400s",
                        why[0] ? ": " : "", why);
        done(arg, &(struct context_answer){.r = r, .e = &e});
        return;
    }
    struct context *c = contexts_find_or_add(f, ask->tenant->id, ask->conversation, ask->path);
    struct waiter *w =
        NEW(struct waiter, .tenant = *ask->tenant, .ttl_ms = ask->ttl_ms, .spec = ask->spec,
            .last = ask->last, .replay = ask->replay, .files_do = ask->files_do,
            .bring = ask->bring ? sandbox_ref(ask->bring) : NULL, .done = done, .arg = arg);

    if (ask->checkpoint)
        snprintf(w->checkpoint, sizeof(w->checkpoint), "%s", ask->checkpoint);
    operation_begin(&w->operation, OPERATION_CONTEXT_GET);
    operation_context(&w->operation, ask->tenant->id, ask->conversation, ask->path, NULL);
    if (ask->template_id)
        snprintf(w->template_id, sizeof(w->template_id), "%s", ask->template_id);
    list_append(&c->waiters, &w->in_line);
    if (c->step != OBTAIN_NONE)
        return;
    if (f->draining)
        look_up(c);
    else
        claim(c);
}
