/* A run, from its arguments to its result.
 *
 *   read --> program_load --> context_obtain --> context_mark --> cells --> all over --> told
 *     |       (named types)         |           (if a message      |                        |
 *     |                             |              was named)      |                      freed
 *     +-----------------------------+------------------------------+--> refused --> told ---^
 *
 * Code of an analysis has two cells: the first sets its parameters (analysis.c). Both are sent in
 * one go, and the agent keeps the order, so that no other cell of the kernel comes between them. If
 * the first fails, that is the result, whatever the second did without parameters.
 *
 * The checkpoint before a message waits for the cells that run, as this one will, and for no longer
 * than this one may take. If there can be no checkpoint, the code runs all the same.
 *
 * A long result is parsed and made into an answer on a thread.
 *
 * If the sandbox turns out to be gone before anything has begun, the run asks for it once more, and
 * the context manager makes another. Later, it is an error of the code, since part of it has
 * run. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/uv/handle.h"
#include "front/e2b/create.h"
#include "front/core/operation.h"
#include "front/core/output_filter.h"
#include "front/core/reply.h"
#include "front/interpreter/cell.h"
#include "lib/log/log.h"
#include "front/tools/call.h"
#include "front/tools/gather.h"
#include "front/tools/parsed.h"

#define NS_PER_MS     1000000ull
#define PRELUDE_MS    30000
#define EXIT_FAILED   1
#define EXIT_TIMEDOUT 124
#define LINE_MAX_     2048

struct tool_run {
    struct front *front;
    struct store_tenant tenant;
    enum tool tool;
    struct tool_listener listener;
    struct tool_call call;
    uint64_t began_ns;
    struct operation operation;

    struct sandbox *sandbox; /* a reference, which let_go gives back */
    char context[ID_LEN + 1], sandbox_id[ID_LEN + 1], elsewhere[CTX_URL_MAX + 1];
    bool was_created, replaced, kept_lost;
    char checkpoint[ID_LEN + 1], skipped[sizeof(((struct sg_error *)0)->message)];
    struct cell prelude, cell;
    struct gather before, gather; /* the output of the cells */
    bool prelude_runs, cell_runs;
    bool failed; /* the cell ended with an error */

    bool beginning;  /* tool_begin has not returned */
    bool starting;   /* in cell_begin: a refusal is handled when it returns */
    bool waiting;    /* a callback is pending that cannot be cancelled */
    bool cancelled;  /* ... and then frees this struct */
    bool tried;      /* a sandbox was found gone once already */
    int gone_status; /* status of a refused cell; 0: none was */
    bool lost;       /* the sandbox ended while the code ran */
    struct strbuf gone_message;

    enum sanitise_mode sanitise;
    struct tool_result result;
    struct strbuf results, parsed, value, sanitised;
    struct sg_error parse_error;
    struct http_job making; /* parses the result, and makes the answer */
    bool is_making;         /* on a thread */
    uv_timer_t *timer;      /* runs `next` in the loop's next turn; NULL until it is needed */
    void (*next)(struct tool_run *r);
};

static void obtain(struct tool_run *r);

/* ---- end ------------------------------------------------------------------------------------- */

static void cells_done(struct tool_run *r)
{
    cell_cancel(&r->prelude);
    cell_cancel(&r->cell);
    cell_done(&r->prelude);
    cell_done(&r->cell);
    r->prelude = r->cell = (struct cell){0};
    r->prelude_runs = r->cell_runs = false;
}

static void let_go(struct tool_run *r)
{
    cells_done(r);
    if (!r->sandbox)
        return;
    operation_leave_sandbox(&r->operation);
    context_release(r->sandbox);
    sandbox_unref(steal_ptr(&r->sandbox));
}

static void run_free(struct tool_run *r)
{
    if (r->result.made)
        r->listener.drop(r->result.made);
    operation_drop(&r->operation);
    let_go(r);
    alarm_drop(&r->timer);
    gather_done(&r->before);
    gather_done(&r->gather);
    tool_call_done(&r->call);
    strbuf_done(&r->gone_message);
    strbuf_done(&r->results);
    strbuf_done(&r->parsed);
    strbuf_done(&r->value);
    strbuf_done(&r->sanitised);
    free(r);
}

static void tell(struct tool_run *r)
{
    let_go(r);
    r->listener.on_done(r->listener.arg, &r->result);
    r->result.made = NULL;
    run_free(r);
}

static void on_timer(uv_timer_t *t)
{
    struct tool_run *r = t->data;

    r->next(r);
}

static void do_later(struct tool_run *r, void (*next)(struct tool_run *r))
{
    if (!r->timer)
        r->timer = alarm_new(r->front->loop, r);
    r->next = next;
    uv_timer_start(r->timer, on_timer, 0, 0);
}

static void end_operation(struct tool_run *r)
{
    const struct tool_result *x = &r->result;
    bool ran = x->status == 200;

    if (ran) {
        span_number(r->operation.span, KEY_EXIT_CODE, x->exit_code);
        operation_content(&r->operation, r->front, KEY_OUTPUT, r->gather.out.buf,
                          r->gather.out.len);
        if (!x->success)
            span_fail(r->operation.span,
                      r->lost                         ? "gone"
                      : x->exit_code == EXIT_TIMEDOUT ? "timeout"
                                                      : "code",
                      "the code failed");
    }
    operation_end(&r->operation, r->front, r->sandbox, ran ? 0 : -EIO, &x->refusal, NULL);
}

static void finish(struct tool_run *r)
{
    end_operation(r);
    if (r->beginning)
        do_later(r, tell);
    else
        tell(r);
}

/* Ends the run: the code did not run. */
static void refuse(struct tool_run *r, int status, const struct sg_error *e)
{
    r->result.status = status;
    r->result.refusal = *e;
    if (status == 500) {
        operation_end(&r->operation, r->front, r->sandbox, -EIO, e,
                      NULL); /* operation_end logs the reason */
        err_set(&r->result.refusal, SG_ERR_INTERNAL, -EIO,
                "Internal error: the server's log has the reason");
    }
    finish(r);
}

static void refuse_error(struct tool_run *r, const struct sg_error *e)
{
    refuse(r, e->code == -E2BIG ? 413 : status_of_error(e), e);
}

/* ---- the result ------------------------------------------------------------------------------ */

static int exit_code(const struct tool_run *r)
{
    const struct ending *end = &r->cell.ending;

    if (end->status == 0 && end->timed_out)
        return EXIT_TIMEDOUT;
    if (end->status == 0 && end->memory_limit)
        return 128 + SIGKILL;
    int code = (int)ending_code(end);
    return code != 0 ? code : r->failed ? EXIT_FAILED : 0;
}

static void parse(struct tool_run *r)
{
    const char *value;
    size_t len;

    strbuf_init(&r->parsed, PARSED_MAX);
    if (parsed_output(&r->gather, r->call.format, &r->parsed, &r->parse_error) < 0)
        r->result.parse_error = r->parse_error.message;
    else
        r->result.parsed = r->parsed.buf;
    value = parsed_value(&r->gather, &len);
    if (!value)
        return;
    strbuf_init(&r->value, TOOL_RESULTS_MAX);
    strbuf_add(&r->value, value, len);
    r->result.result = r->value.truncated ? NULL : r->value.buf;
}

static void wrap_results(struct tool_run *r)
{
    const struct strbuf *from = &r->gather.results;

    strbuf_init(&r->results, TOOL_RESULTS_MAX + 2);
    strbuf_addch(&r->results, '[');
    strbuf_add(&r->results, from->buf, from->len);
    strbuf_addch(&r->results, ']');
    r->result.results = r->results.truncated ? "[]" : r->results.buf;
}

static void make(struct http_job *job)
{
    struct tool_run *r = CONTAINER_OF(job, struct tool_run, making);

    if (r->tool == TOOL_RUN_ANALYSIS)
        parse(r);
    wrap_results(r);
    strbuf_done(&r->gather.results); /* r->results has it all */
    if (r->listener.make)
        r->result.made = r->listener.make(r->listener.form, r->tool, &r->result);
}

static void on_made(struct http_job *job)
{
    struct tool_run *r = CONTAINER_OF(job, struct tool_run, making);

    r->waiting = false;
    if (r->cancelled)
        run_free(r);
    else
        finish(r);
}

static size_t bytes_to_make(const struct tool_run *r)
{
    const struct gather *g = &r->gather;

    return g->results.len + g->out.len + g->err.len +
           (r->result.error ? strlen(r->result.error) : 0);
}

/* All cells are over: makes the result and ends the run. */
static void complete(struct tool_run *r)
{
    struct gather *g = &r->gather;
    bool no_parameters = r->before.error != NULL;

    r->result.status = 200;
    r->result.ms = (clock_ns() - r->began_ns) / NS_PER_MS;
    r->result.exit_code = exit_code(r);
    if (no_parameters)
        r->result.exit_code = EXIT_FAILED;
    r->result.success = r->result.exit_code == 0;
    r->result.error = no_parameters ? r->before.error : g->error;
    r->result.sandbox_id = r->sandbox_id;
    r->result.context = r->context;
    r->result.was_created = r->was_created;
    r->result.replaced = r->replaced;
    r->result.kept_lost = r->kept_lost;
    if (r->call.message[0]) {
        r->result.message = r->call.message;
        r->result.checkpoint = r->checkpoint[0] ? r->checkpoint : NULL;
        r->result.skipped = r->skipped;
    }
    r->result.out = &g->out;
    r->result.err = &g->err;
    r->result.out_cut = g->out_cut;
    r->result.err_cut = g->err_cut;
    r->result.sanitised = result_sanitised(
        no_parameters ? r->prelude.output_filter : r->cell.output_filter, &r->sanitised);
    r->making = (struct http_job){.run = make, .done = on_made};
    if (bytes_to_make(r) <= WORK_PIECE) {
        make(&r->making);
        finish(r);
    } else {
        r->waiting = r->is_making = true;
        http_job_begin(r->front->http, &r->making, work_party_of(r->tenant.id));
    }
}

/* ---- cells ----------------------------------------------------------------------------------- */

/* A cell never ran, or its sandbox is gone: tries another sandbox, or ends the run. */
static void refused(struct tool_run *r)
{
    int status = r->gone_status;
    bool begun = r->cell.running || r->gather.out.len > 0 || r->gather.err.len > 0;
    struct sg_error e;

    r->gone_status = 0;
    if (begun) {
        gather_error(&r->gather, "SandboxGone", r->gone_message.buf);
        r->failed = true;
        r->lost = status == CALL_GONE;
        complete(r);
        return;
    }
    let_go(r);
    if (status == CALL_GONE && !r->tried) {
        r->tried = true;
        do_later(r, obtain); /* not at once: the sandbox's end may still be under way */
        return;
    }
    err_set(&e, SG_ERR_INTERNAL, -EIO, "%s", r->gone_message.buf);
    refuse(r, status == CALL_GONE ? 503 : status_of_call(status), &e);
}

static void on_refused(struct cell *c, int status, const char *message)
{
    struct tool_run *r = c->owner;

    strbuf_done(&r->gone_message);
    strbuf_init(&r->gone_message, LINE_MAX_);
    strbuf_addstr(&r->gone_message, message);
    r->gone_status = status;
    if (!r->starting)
        refused(r);
}

static void on_over(struct cell *c, bool failed)
{
    struct tool_run *r = c->owner;

    if (c == &r->cell) {
        r->failed = failed;
        r->cell_runs = false;
    } else {
        r->prelude_runs = false;
    }
    if (!r->cell_runs && !r->prelude_runs)
        complete(r);
}

static bool on_write(struct cell *c, const char *p, size_t len)
{
    struct tool_run *r = c->owner;

    return gather_bytes(c == &r->cell ? &r->gather : &r->before, p, len);
}

static bool on_line(void *owner, const char *line, size_t len)
{
    struct tool_run *r = owner;

    return !r->listener.on_line || r->listener.on_line(r->listener.arg, line, len);
}

static void cell_start(struct tool_run *r, struct cell *c, struct execute_request *request)
{
    *c = (struct cell){.sandbox = r->sandbox,
                       .sanitise = r->sanitise,
                       .owner = r,
                       .call.uncounted = c == &r->prelude,
                       .on_write = on_write,
                       .on_over = on_over,
                       .on_refused = on_refused};
    snprintf(request->language, sizeof(request->language), "%s", r->call.kernel);
    cell_begin(c, request);
}

static void start_prelude(struct tool_run *r)
{
    const char *code = parameters_code(&r->call);
    struct execute_request request = {.body = json_incref(r->call.parameters),
                                      .code = code,
                                      .code_len = strlen(code),
                                      .envs = r->call.parameters,
                                      .timeout_ms = PRELUDE_MS};

    r->prelude_runs = true;
    cell_start(r, &r->prelude, &request);
}

static void start_cell(struct tool_run *r)
{
    struct execute_request request = {.body = json_incref(r->call.code),
                                      .code = json_string_value(r->call.code),
                                      .code_len = json_string_length(r->call.code),
                                      .envs = r->call.envs,
                                      .timeout_ms = r->call.timeout_ms};

    r->cell_runs = true;
    cell_start(r, &r->cell, &request);
}

static void start_cells(struct tool_run *r)
{
    struct sandbox *b = r->sandbox;
    struct trace_ref before = operation_enter(&r->operation.trace);

    operation_sandbox(&r->operation, b);
    operation_content(&r->operation, r->front, KEY_INPUT, json_string_value(r->call.code),
                      json_string_length(r->call.code));
    r->starting = true;
    sandbox_cork(b);
    if (r->call.parameters)
        start_prelude(r);
    if (r->gone_status == 0)
        start_cell(r);
    sandbox_uncork(b);
    r->starting = false;
    operation_leave(&before);
    if (r->gone_status != 0)
        refused(r);
}

/* ---- the sandbox ----------------------------------------------------------------------------- */

static int make_spec(void *arg, const char *template_id, struct sandbox_spec *ret,
                     char snapshot[ID_LEN + 1], struct sg_error *e)
{
    struct tool_run *r = arg;
    const char *name = template_id                ? template_id
                       : r->call.template_name[0] ? r->call.template_name
                                                  : r->front->settings.context_template;

    return create_spec(r->front, &r->tenant, NULL, SPEC_OWN, name, ret, snapshot, e);
}

static void tell_context(struct tool_run *r)
{
    AUTO(strbuf_done) struct strbuf line = strbuf_upto(16 * CTX_NAME_MAX);
    struct json j = {.out = &line};

    jw_object_begin(&j);
    jw_string(jw_key(&j, "type"), "context");
    jw_string(jw_key(&j, "contextId"), r->context);
    jw_string(jw_key(&j, "conversationId"), r->call.conversation);
    jw_string(jw_key(&j, "pathId"), r->call.path);
    jw_string(jw_key(&j, "sandboxId"), r->sandbox_id);
    jw_bool(jw_key(&j, "wasCreated"), r->was_created);
    jw_bool(jw_key(&j, "replaced"), r->replaced);
    jw_object_end(&j);
    on_line(r, line.buf, line.len);
}

static void on_marked(void *arg, const char *checkpoint, const char *skipped)
{
    struct tool_run *r = arg;

    r->waiting = false;
    if (r->cancelled) {
        run_free(r);
        return;
    }
    snprintf(r->checkpoint, sizeof(r->checkpoint), "%s", checkpoint ? checkpoint : "");
    snprintf(r->skipped, sizeof(r->skipped), "%s", skipped ? skipped : "");
    start_cells(r);
}

static void enter(struct tool_run *r, struct sandbox *b, const char *context)
{
    r->sandbox = sandbox_ref(b);
    context_hold(r->sandbox);
    snprintf(r->context, sizeof(r->context), "%s", context);
    snprintf(r->sandbox_id, sizeof(r->sandbox_id), "%s", b->id);
    tell_context(r);
    if (!r->call.message[0]) {
        start_cells(r);
        return;
    }
    r->waiting = true;
    struct trace_ref before = operation_enter(&r->operation.trace);
    context_mark(b, r->call.message, r->call.timeout_ms, on_marked, r);
    operation_leave(&before);
}

static void on_obtained(void *arg, const struct context_answer *a)
{
    struct tool_run *r = arg;

    r->waiting = false;
    if (r->cancelled) {
        run_free(r);
        return;
    }
    if (a->r < 0) {
        refuse_error(r, a->e);
        return;
    }
    if (a->elsewhere) {
        snprintf(r->elsewhere, sizeof(r->elsewhere), "%s", a->elsewhere);
        r->result.elsewhere = r->elsewhere;
        err_set(&r->result.refusal, SG_ERR_GONE, -EREMOTE, "another server has this path");
        r->result.status = 307;
        span_drop(&r->operation.span); /* the other server makes the span */
        operation_drop(&r->operation);
        finish(r);
        return;
    }
    r->was_created |= a->created;
    r->replaced |= a->replaced;
    r->kept_lost |= a->kept_lost;
    enter(r, a->sandbox, a->row->id);
}

static void obtain(struct tool_run *r)
{
    struct context_ask ask = {.tenant = &r->tenant,
                              .conversation = r->call.conversation,
                              .path = r->call.path,
                              .template_id =
                                  r->call.template_name[0] ? r->call.template_name : NULL,
                              .spec = make_spec};

    r->waiting = true;
    struct trace_ref before = operation_enter(&r->operation.trace);
    context_obtain(r->front, &ask, on_obtained, r);
    operation_leave(&before);
}

static void on_program(void *arg, int res, json_t *code, const struct sg_error *e)
{
    struct tool_run *r = arg;

    r->waiting = false;
    if (res == 0)
        call_use_program(&r->call, code);
    if (r->cancelled)
        run_free(r);
    else if (res < 0)
        refuse_error(r, e);
    else
        obtain(r);
}

/* ---- begin, resume, cancel ------------------------------------------------------------------- */

static int read_arguments(struct tool_run *r, const json_t *arguments,
                          const struct tool_place *place, struct sg_error *e)
{
    struct context_limits limits;

    if (!json_is_object(arguments))
        return err_invalid(e, "the arguments must be an object");
    context_limits(r->front, &r->tenant, &limits);
    return r->tool == TOOL_RUN_CODE ? code_call_read(&limits, arguments, place, &r->call, e)
                                    : analysis_call_read(&limits, arguments, place, &r->call, e);
}

static struct tool_run *run_new(struct front *f, const struct store_tenant *tenant, enum tool tool,
                                const struct tool_listener *listener)
{
    struct tool_run *r =
        NEW(struct tool_run, .front = f, .tenant = *tenant, .tool = tool, .listener = *listener,
            .sanitise = output_filter_mode(f, tenant, true, &listener->sanitise, NULL),
            .began_ns = clock_ns());

    operation_begin(&r->operation, OPERATION_TOOL);
    span_text(r->operation.span, KEY_TOOL, tool_name(tool));
    span_text(r->operation.span, KEY_TENANT, tenant->id);
    span_flag(r->operation.span, KEY_FORCED, listener->forced);
    gather_init(&r->before);
    gather_init(&r->gather);
    r->gather.owner = r;
    r->gather.on_line = on_line;
    return r;
}

struct tool_run *tool_begin(struct front *f, const struct store_tenant *tenant, enum tool tool,
                            const json_t *arguments, const struct tool_place *place,
                            const struct tool_listener *listener)
{
    struct tool_run *r = run_new(f, tenant, tool, listener);
    struct sg_error e;

    r->beginning = true;
    if (read_arguments(r, arguments, place, &e) < 0) {
        refuse_error(r, &e);
    } else if (r->call.program[0]) {
        r->waiting = true;
        program_load(f, r->call.program, on_program, r);
    } else {
        obtain(r);
    }
    r->beginning = false;
    return r;
}

struct tool_run *tool_begin_in(struct sandbox *b, const struct store_tenant *tenant,
                               const char *context, const json_t *arguments,
                               const struct tool_place *place, const struct tool_listener *listener)
{
    struct tool_run *r = run_new(b->front, tenant, TOOL_RUN_CODE, listener);
    struct sg_error e;

    r->beginning = true;
    r->tried = true; /* a candidate cannot be replaced by another sandbox */
    if (read_arguments(r, arguments, place, &e) < 0)
        refuse_error(r, &e);
    else
        enter(r, b, context);
    r->beginning = false;
    return r;
}

void tool_run_resume(struct tool_run *r)
{
    if (!r->is_making)
        cell_resume(&r->cell);
}

void tool_run_cancel(struct tool_run *r)
{
    r->cancelled = true;
    if (!r->waiting || (r->is_making && http_job_drop(&r->making)))
        run_free(r);
    else
        let_go(r);
}
