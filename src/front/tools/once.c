/* A program in a sandbox of its own.
 *
 *   read --> sandbox_create --> files written --> program started --> its end --> told --> freed
 *     |          |               |                 |
 *     +----------+---------------+-----------------+--> it cannot be done --> told --> freed
 *
 * The sandbox comes from the tenant pool, has no access to the network, and is always ended: after
 * the program, when an error comes before it, and when nobody waits for the result any more. Should
 * this process die, the warden ends the sandbox at its deadline. Output beyond the limit is dropped
 * inside the sandbox, so that the program goes on. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/signame.h"
#include "lib/channel/wire.h"
#include "lib/uv/handle.h"
#include "front/e2b/create.h"
#include "front/core/operation.h"
#include "front/core/call.h"
#include "front/core/identity.h"
#include "front/core/output_filter.h"
#include "front/core/reply.h"
#include "lib/log/log.h"
#include "front/tools/budget.h"
#include "front/tools/once.h"

#define NS_PER_MS     1000000ull
#define GRACE_MS      60000 /* time for the start, and for the program's end to reach us */
#define TEMPLATE      "base"
#define USER          "user"
#define EXIT_TIMEDOUT 124
#define MESSAGE_MAX   1024
#define DISK_PART     4                     /* the disk gets a fourth of a memory limit */
#define DISK_MIN      (16ull * 1024 * 1024) /* leaves room for the files of a request */

struct once {
    struct front *front;
    struct store_tenant tenant;
    struct once_request request;
    once_done done;
    void *arg;

    struct sandbox *sandbox;
    char sandbox_id[ID_LEN + 1];
    bool creating;  /* sandbox_create runs, and cannot be cancelled */
    bool cancelled; /* ... so its callback frees this struct */
    bool beginning; /* once_begin has not returned */
    struct call files[ONCE_FILES_MAX + 1];
    size_t writing; /* number of files being written */
    struct call program;
    uint64_t began_ns;
    struct strbuf out, err;
    size_t taken; /* the part of the budget that out and err hold */
    enum sanitise_mode sanitise;
    struct output_filter *output_filter; /* NULL without a sandbox, or if nothing is looked for */
    struct strbuf sanitised;
    struct strbuf message;
    struct operation operation;
    struct once_result result;
    uv_timer_t *timer; /* calls `done` in a later turn of the loop */
};

/* ---- end ------------------------------------------------------------------------------------- */

static void end_sandbox(struct once *o)
{
    for (size_t i = 0; i < ARRAY_SIZE(o->files); i++)
        call_cancel(&o->files[i]);
    call_cancel(&o->program);
    if (!o->sandbox)
        return;
    sandbox_kill(o->sandbox, NULL, NULL);
    sandbox_unref(steal_ptr(&o->sandbox));
}

static void once_free(struct once *o)
{
    operation_drop(&o->operation);
    end_sandbox(o);
    alarm_drop(&o->timer);
    json_decref(o->request.body);
    strbuf_done(&o->out);
    strbuf_done(&o->err);
    budget_hold(&o->taken, 0);
    strbuf_done(&o->message);
    strbuf_done(&o->sanitised);
    output_filter_free(o->output_filter);
    free(o);
}

static void tell(struct once *o)
{
    end_sandbox(o);
    o->done(o->arg, &o->result);
    once_free(o);
}

static void on_timer(uv_timer_t *t)
{
    tell(t->data);
}

static void end_operation(struct once *o)
{
    static const char *const types[ONCE_MAX_] = {
        [ONCE_TIMEOUT] = "timeout", [ONCE_EXECUTION_ERROR] = "code", [ONCE_SETUP_ERROR] = "setup"};
    bool ran = o->result.status == 200;

    if (ran) {
        span_number(o->operation.span, KEY_EXIT_CODE, o->result.exit_code);
        operation_content(&o->operation, o->front, KEY_OUTPUT, o->out.buf, o->out.len);
        if (types[o->result.outcome])
            span_fail(o->operation.span, types[o->result.outcome], "the code failed");
    }
    operation_end(&o->operation, o->front, o->sandbox, ran ? 0 : -EIO, &o->result.refusal, NULL);
}

static void finish(struct once *o)
{
    end_operation(o);
    o->result.out = &o->out;
    o->result.err = &o->err;
    o->result.session = o->request.session;
    if (!o->beginning) {
        tell(o);
        return;
    }
    o->timer = alarm_new(o->front->loop, o);
    uv_timer_start(o->timer, on_timer, 0, 0);
}

/* Ends the run with an error: no sandbox could be had. */
static void refuse(struct once *o, const struct sg_error *e)
{
    int status = e->code == -E2BIG ? 413 : status_of_error(e);

    o->result.status = status;
    o->result.outcome = ONCE_SETUP_ERROR;
    o->result.refusal = *e;
    if (status == 500) {
        operation_end(&o->operation, o->front, o->sandbox, -EIO, e,
                      NULL); /* operation_end logs the reason */
        err_set(&o->result.refusal, SG_ERR_INTERNAL, -EIO,
                "Internal error: the server's log has the reason");
    }
    finish(o);
}

/* False: the limit is reached, and no more of this stream is kept. */
static bool keep_output(struct once *o, bool err, struct output_filter_text text)
{
    struct strbuf *to = err ? &o->err : &o->out;
    bool *cut = err ? &o->result.err_cut : &o->result.out_cut;

    if (*cut)
        return false;
    strbuf_add(to, text.p, text.len);
    *cut = to->truncated || !budget_hold(&o->taken, o->out.len + o->err.len);
    return !*cut;
}

static void flush_output(struct once *o)
{
    keep_output(o, false, output_filter_flush(o->output_filter, OUTPUT_FILTER_OUT));
    keep_output(o, true, output_filter_flush(o->output_filter, OUTPUT_FILTER_ERR));
}

PRINTF(3, 4)
static void conclude(struct once *o, enum once_outcome outcome, const char *fmt, ...)
{
    char text[MESSAGE_MAX];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    strbuf_init(&o->message, MESSAGE_MAX);
    strbuf_addstr(&o->message, text);
    output_filter_clean(o->output_filter, &o->message);
    flush_output(o);
    o->result.sanitised = result_sanitised(o->output_filter, &o->sanitised);
    o->result.status = 200;
    o->result.outcome = outcome;
    o->result.message = o->message.len > 0 ? o->message.buf : NULL;
    finish(o);
}

/* ---- the program ----------------------------------------------------------------------------- */

/* Tells the agent to read and drop this stream from now on. */
static void discard(struct call *c, uint8_t sub)
{
    AUTO(strbuf_done) struct strbuf which = strbuf_upto(16);

    wire_put_u32(&which, sub);
    call_control(c, CONTROL_DISCARD, which.buf, which.len);
}

static void on_data(struct call *c, uint8_t sub, const void *p, size_t len)
{
    struct once *o = c->owner;
    bool err = sub == CHAN_STDERR;

    if ((sub == CHAN_STDOUT || err) && !(err ? o->result.err_cut : o->result.out_cut) &&
        !keep_output(o, err,
                     output_filter_feed(o->output_filter,
                                        err ? OUTPUT_FILTER_ERR : OUTPUT_FILTER_OUT, p, len)))
        discard(c, sub);
    call_consumed(c, len);
}

static void end_of_program(struct once *o, uint32_t how, uint32_t code, bool timed_out,
                           uint64_t memory_limit)
{
    const char *signal = how == PROC_KILLED ? signal_name((int)code) : "";
    char text[MEMORY_LIMIT_TEXT];

    if (timed_out) {
        o->result.exit_code = EXIT_TIMEDOUT;
        conclude(o, ONCE_TIMEOUT, "the program was ended after %g s",
                 (double)o->request.timeout_ms / 1000);
    } else if (memory_limit) {
        o->result.exit_code = 128 + SIGKILL;
        conclude(o, ONCE_EXECUTION_ERROR, "%s",
                 memory_limit_text(memory_limit, how == PROC_KILLED ? 0 : code, text));
    } else if (how == PROC_KILLED) {
        o->result.exit_code = 128 + (int)(code & 0x7f);
        conclude(o, ONCE_EXECUTION_ERROR, "the program was killed by SIG%s%s", signal,
                 code == SIGKILL ? ", as when memory runs out" : "");
    } else if (code != 0) {
        o->result.exit_code = (int)(code & 0xff);
        conclude(o, ONCE_EXECUTION_ERROR, "the program ended with exit status %u", code);
    } else {
        conclude(o, ONCE_SUCCESS, "%s", "");
    }
}

static void on_end(struct call *c, int status, const char *message, const void *result, size_t len)
{
    struct once *o = c->owner;
    struct wire_reader r = wire_reader_of(result, len);

    o->result.ms = (clock_ns() - o->began_ns) / NS_PER_MS;
    if (status == CALL_GONE) {
        struct sg_error e;

        sandbox_gone_error(o->sandbox, &e);
        o->result.exit_code = 128 + SIGKILL;
        conclude(o, e.kind == SG_ERR_INTERNAL ? ONCE_SETUP_ERROR : ONCE_EXECUTION_ERROR, "%s",
                 message);
        return;
    }
    if (status != 0) {
        conclude(o, ONCE_SETUP_ERROR, "%s", message);
        return;
    }
    uint32_t how = wire_get_u32(&r), code = wire_get_u32(&r);
    uint64_t user_us = wire_get_u64(&r), system_us = wire_get_u64(&r);
    o->result.memory_bytes = wire_get_u64(&r);
    o->result.disk_bytes = wire_get_u64(&r);
    wire_get_u32(&r); /* disk_full */
    wire_get_u64(&r); /* dropped bytes: `cut` says that there were some */
    wire_get_u64(&r);
    bool timed_out = wire_get_u32(&r) != 0;
    uint64_t memory_limit = wire_get_u64(&r);
    if (!wire_done(&r)) {
        conclude(o, ONCE_SETUP_ERROR, "the sandbox sent a malformed answer");
        return;
    }
    o->result.cpu_us = user_us + system_us;
    end_of_program(o, how, code, timed_out, memory_limit);
}

static void put_command(const struct once_request *q, struct strbuf *request)
{
    uint32_t n = 0;

    while (q->command[n])
        n++;
    wire_put_u32(request, n);
    for (uint32_t i = 0; i < n; i++)
        wire_put_str(request, strcmp(q->command[i], "@") == 0 ? q->path : q->command[i]);
}

static void start_program(struct once *o)
{
    AUTO(strbuf_done) struct strbuf request = strbuf_upto(OPS_OPEN_MAX);
    const struct once_request *q = &o->request;
    struct sg_error e = {0};

    wire_put_str(&request, USER);
    wire_put_str(&request, "");
    wire_put_u32(&request, q->input ? PROC_STDIN : 0);
    wire_put_u32(&request, 0);
    wire_put_u32(&request, 0);
    wire_put_u64(&request, q->timeout_ms);
    wire_put_str(&request, "");
    wire_put_str(&request, "");
    put_command(q, &request);
    identity_put_envs(o->sandbox, &o->operation.trace, q->envs, &request);
    o->program = (struct call){.owner = o, .on_data = on_data, .on_end = on_end};
    o->began_ns = clock_ns();
    if (call_begin(&o->program, o->sandbox, OP_PROCESS_START, &request, &e) < 0)
        conclude(o, ONCE_SETUP_ERROR, "%s", e.message);
    else if (q->input)
        call_pour(&o->program, q->input, q->input_len);
}

/* ---- files ----------------------------------------------------------------------------------- */

static void on_written(struct call *c, int status, const char *message, const void *result UNUSED,
                       size_t len UNUSED)
{
    struct once *o = c->owner;

    if (status != 0) {
        conclude(o, ONCE_SETUP_ERROR, "%.256s: %s", o->request.files[c - o->files].path, message);
        return;
    }
    if (--o->writing == 0)
        start_program(o);
}

static int write_file(struct once *o, size_t i, struct sg_error *e)
{
    const struct once_file *f = &o->request.files[i];

    o->files[i] = (struct call){.owner = o, .on_end = on_written};
    return call_write_file(&o->files[i], o->sandbox, USER, f->path, 0644, f->content, f->len, e);
}

static void on_created(void *arg, struct sandbox *b, int r, const struct sg_error *e)
{
    struct once *o = arg;
    struct sg_error failed = {0};

    o->creating = false;
    if (r == 0)
        o->sandbox = sandbox_ref(b);
    if (o->cancelled) {
        once_free(o);
        return;
    }
    if (r < 0) {
        refuse(o, e);
        return;
    }
    operation_sandbox(&o->operation, b);
    snprintf(o->sandbox_id, sizeof(o->sandbox_id), "%s", b->id);
    o->result.sandbox_id = o->sandbox_id;
    o->output_filter =
        output_filter_new(o->front, o->sanitise, o->tenant.id, o->sandbox_id, NULL, NULL);
    o->writing = o->request.n_files;
    sandbox_cork(b);
    for (size_t i = 0; r == 0 && i < o->request.n_files; i++)
        r = write_file(o, i, &failed);
    sandbox_uncork(b);
    if (r < 0)
        conclude(o, ONCE_SETUP_ERROR, "%s", failed.message);
}

/* ---- begin and cancel ------------------------------------------------------------------------ */

/* Sets the limits that the request asks for. The disk is memory too, and the program can use what
 * is free of it: so a smaller memory limit makes the disk smaller as well. */
static void limit(struct sg_limits *l, const struct once_request *q)
{
    uint64_t disk = q->memory_bytes / DISK_PART;

    if (q->cpus_milli)
        l->cpus_milli = q->cpus_milli;
    if (!q->memory_bytes)
        return;
    disk = disk < DISK_MIN ? DISK_MIN : disk;
    l->disk_bytes = disk < l->disk_bytes ? disk : l->disk_bytes;
    l->memory_bytes = q->memory_bytes;
}

static int make_plan(struct once *o, struct create_plan *ret, struct sg_error *e)
{
    int r = create_plan(o->front, &o->tenant, NULL, SPEC_OWN, TEMPLATE, ret, e);

    if (r == 0)
        limit(&ret->spec.limits, &o->request);
    return r;
}

struct once *once_begin(struct front *f, const struct store_tenant *tenant, const json_t *arguments,
                        const struct sanitise_level *sanitise, once_done done, void *arg)
{
    struct once *o = xcalloc(1, sizeof(*o));
    struct create_plan plan;
    struct sg_error e;

    o->front = f;
    o->tenant = *tenant;
    o->sanitise = output_filter_mode(f, tenant, true, sanitise, NULL);
    o->done = done;
    o->arg = arg;
    o->beginning = true;
    operation_begin(&o->operation, OPERATION_TOOL);
    span_text(o->operation.span, KEY_TOOL, "execute_code");
    span_text(o->operation.span, KEY_TENANT, tenant->id);
    int r = once_request_read(f, tenant, arguments, &o->request, &e);
    strbuf_init(&o->out, o->request.output_max);
    strbuf_init(&o->err, o->request.output_max);
    if (r == 0)
        r = make_plan(o, &plan, &e);
    if (r < 0) {
        refuse(o, &e);
    } else {
        struct trace_ref before = operation_enter(&o->operation.trace);

        o->creating = true;
        sandbox_create(f, &plan.spec, plan.snapshot[0] ? plan.snapshot : NULL,
                       o->request.timeout_ms + GRACE_MS, on_created, o);
        operation_leave(&before);
    }
    o->beginning = false;
    return o;
}

void once_cancel(struct once *o)
{
    o->cancelled = true;
    if (!o->creating)
        once_free(o);
}
