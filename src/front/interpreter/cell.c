#include "front/interpreter/cell.h"

#include <stdio.h>
#include <string.h>

#include "lib/channel/wire.h"
#include "lib/uv/handle.h"
#include "front/core/identity.h"

#define KEEPALIVE_MS 5000
#define PATIENCE_MS  2000
#define NOTE_MAX     1024
#define HELD_MAX     (256u * 1024)
/* Room for a window of unacknowledged bytes that come in frames of one byte each. */
#define QUEUE_MAX (16u * CHAN_WINDOW)

/* ---- to the owner ---------------------------------------------------------------------------- */

static void on_line_bytes(void *owner, const char *p, size_t len)
{
    struct cell *c = owner;

    c->wrote_ms = uv_now(c->sandbox->front->loop);
    c->choked |= !c->on_write(c, p, len);
}

static void start(struct cell *c)
{
    if (c->started)
        return;
    c->started = true;
    if (c->on_start)
        c->on_start(c);
}

static void on_timer(uv_timer_t *t)
{
    struct cell *c = t->data;
    uint64_t idle = uv_now(t->loop) - c->wrote_ms;

    if (!c->started) {
        start(c);
        lines_keepalive(&c->lines);
    } else if (idle >= KEEPALIVE_MS && !c->choked && !results_open(&c->results)) {
        lines_keepalive(&c->lines);
    }
    uv_timer_start(t, on_timer, idle < KEEPALIVE_MS ? KEEPALIVE_MS - idle : KEEPALIVE_MS, 0);
}

static enum lines_stream stream_of(uint8_t sub)
{
    return sub == CHAN_STDERR ? LINES_STDERR : LINES_STDOUT;
}

static void put_output(struct cell *c, enum lines_stream stream, struct output_filter_text text)
{
    lines_output(&c->lines, stream, text.p, text.len);
    if (c->operation.span && trace_content_wanted())
        strbuf_add(&c->said, text.p, text.len);
}

static void write_output(struct cell *c, enum lines_stream stream, const void *p, size_t len)
{
    put_output(c, stream,
               output_filter_feed(c->output_filter,
                                  stream == LINES_STDERR ? OUTPUT_FILTER_ERR : OUTPUT_FILTER_OUT, p,
                                  len));
}

/* Writes the output that the output filter held back until it saw what follows it. */
static void flush_output(struct cell *c)
{
    put_output(c, LINES_STDOUT, output_filter_flush(c->output_filter, OUTPUT_FILTER_OUT));
    put_output(c, LINES_STDERR, output_filter_flush(c->output_filter, OUTPUT_FILTER_ERR));
}

static void on_quiet(void *arg)
{
    struct cell *c = arg;

    if (!results_open(&c->results) && !c->over)
        flush_output(c);
}

static void write_held(struct cell *c)
{
    char text[160];
    const void *p;
    uint8_t sub;
    size_t n;

    while (frames_take(&c->held, LINE_TEXT_MAX, &sub, &p, &n))
        write_output(c, stream_of(sub), p, n);
    if (c->lost == 0)
        return;
    flush_output(c);
    snprintf(text, sizeof(text),
             "sandglass: %zu bytes of output were left out: they were written in the middle of a "
             "result\n",
             c->lost);
    lines_output(&c->lines, LINES_STDERR, text, strlen(text));
    c->lost = 0;
}

static bool is_output(uint8_t sub)
{
    return sub == CHAN_STDOUT || sub == CHAN_STDERR;
}

static void write_frame(struct cell *c, uint8_t sub, const void *p, size_t len)
{
    cell_history_add(c->cell_history, sub, p, len);
    if (sub == CHAN_KERNEL) {
        if (!results_open(&c->results))
            flush_output(c);
        results_packet(&c->results, p, len);
        if (!results_open(&c->results))
            write_held(c);
    } else if (!results_open(&c->results)) {
        write_output(c, stream_of(sub), p, len);
    } else if (!frames_add(&c->held, sub, true, p, len)) {
        c->lost += len;
    }
    if (c->choked)
        c->owed += len;
    else
        call_consumed(&c->call, len);
}

/* ---- the end: the owner may free the cell in these callbacks, so nothing follows them -------- */

/* Ends the operation. An error that the code raised is the author's; only trouble that keeps a cell
 * from running is a failure of the server. */
static void end_operation(struct cell *c, bool failed)
{
    const char *type = c->ending.timed_out ? "timeout" : c->ending.status ? "kernel" : "code";

    if (failed) {
        span_text(c->operation.span, KEY_FAULT, fault_name(FAULT_CODE));
        span_fail(c->operation.span, type, c->results.error[ERROR_NAME].buf);
    }
    operation_content(&c->operation, c->sandbox->front, KEY_OUTPUT, c->said.buf, c->said.len);
    operation_end(&c->operation, c->sandbox->front, c->sandbox, 0, NULL, NULL);
}

static void finish(struct cell *c)
{
    struct results *r = &c->results;

    start(c);
    results_close(r);
    write_held(c);
    flush_output(c);
    lines_output_end(&c->lines);
    bool failed = ending_error(&c->ending, c->message, c->request.timeout_ms, r);
    for (size_t i = 0; failed && i < ERROR_PARTS_; i++)
        output_filter_clean(c->output_filter, &r->error[i]);
    if (failed)
        lines_error(&c->lines, &r->error[ERROR_NAME], &r->error[ERROR_VALUE],
                    &r->error[ERROR_TRACEBACK]);
    lines_end(&c->lines, ending_code(&c->ending));
    if (c->running)
        sandbox_log_add(&c->sandbox->log, LOG_INFO, FAULT_CODE, 0, "Cell %u ended%s%.64s",
                        c->number, failed ? ": " : "", failed ? r->error[ERROR_NAME].buf : "");
    if (c->ending.status == 0 && c->ending.how == KERNEL_DONE && !c->ending.timed_out)
        cell_history_end(steal_ptr(&c->cell_history), c->output_filter);
    end_operation(c, failed);
    c->over = true;
    alarm_drop(&c->timer);
    c->on_over(c, failed);
}

/* Writes the waiting frames as far as the owner takes them, and the end when none waits any
 * more. */
static void advance(struct cell *c)
{
    const void *p;
    uint8_t sub;
    size_t n;

    while (!c->choked && frames_take(&c->queue, LINE_TEXT_MAX, &sub, &p, &n))
        write_frame(c, sub, p, n);
    if (c->ended && !c->over && frames_empty(&c->queue))
        finish(c);
}

void cell_resume(struct cell *c)
{
    if (!c->choked)
        return;
    c->choked = false;
    call_consumed(&c->call, c->owed);
    c->owed = 0;
    advance(c);
}

/* Ends the cell without lines, or without the rest of them. */
static void give_up(struct cell *c, int status, const char *message)
{
    struct sg_error e;

    if (status == CALL_GONE)
        sandbox_gone_error(c->sandbox, &e);
    else
        err_set(&e, SG_ERR_INVALID, -EIO, "%s", message);
    operation_end(&c->operation, c->sandbox->front, c->sandbox, -EIO, &e, NULL);
    c->over = true;
    alarm_drop(&c->timer);
    call_cancel(&c->call);
    c->on_refused(c, status, message);
}

static void on_end(struct call *call, int status, const char *message, const void *result,
                   size_t len)
{
    struct cell *c = call->owner;

    if (status == CALL_GONE || (status != 0 && !c->started)) {
        give_up(c, status, message);
        return;
    }
    if (status != 0) {
        c->ending.status = status;
        c->message = xstrdup(message);
    } else if (!ending_read(result, len, &c->ending)) {
        c->ending.status = EPROTO;
        c->message = xstrdup("the sandbox sent a malformed answer");
    }
    c->ended = true;
    advance(c);
}

/* ---- from the agent -------------------------------------------------------------------------- */

static void on_event(struct call *call, uint8_t what, const void *p, size_t len)
{
    struct cell *c = call->owner;
    AUTO(strbuf_done) struct strbuf line = strbuf_upto(2 * NOTE_MAX);
    struct wire_reader r = wire_reader_of(p, len);

    uint32_t number = wire_get_u32(&r);
    const char *note = wire_get_str(&r, NOTE_MAX);
    if (what != EVENT_EXECUTING || c->running || !wire_done(&r))
        return;
    c->running = true;
    c->number = number;
    cell_history_running(c->cell_history, number);
    sandbox_log_add(&c->sandbox->log, LOG_INFO, FAULT_CODE, 0, "Cell %u of %s%s started", number,
                    c->request.context[0] ? "context " : "",
                    c->request.context[0]    ? c->request.context
                    : c->request.language[0] ? c->request.language
                                             : "python");
    start(c);
    lines_number(&c->lines, number);
    if (!note[0])
        return;
    strbuf_addf(&line, "sandglass: %s\n", note);
    lines_output(&c->lines, LINES_STDERR, line.buf, line.len);
}

static void on_data(struct call *call, uint8_t sub, const void *p, size_t len)
{
    struct cell *c = call->owner;

    if (!c->running || !(is_output(sub) || sub == CHAN_KERNEL)) {
        call_consumed(call, len);
        return;
    }
    if (!c->choked && frames_empty(&c->queue))
        write_frame(c, sub, p, len);
    else if (!frames_add(&c->queue, sub, is_output(sub), p, len))
        give_up(c, ENOMEM, "the server has no memory for the cell's output");
}

/* The code is sent. The cell may run for long, so the body is freed early. */
static void on_credit(struct call *call)
{
    struct cell *c = call->owner;

    json_decref(steal_ptr(&c->request.body));
}

/* ---- from the owner -------------------------------------------------------------------------- */

static int ask(struct cell *c, struct sg_error *e)
{
    AUTO(strbuf_done) struct strbuf request = strbuf_upto(OPS_OPEN_MAX);

    wire_put_str(&request, c->request.context);
    wire_put_str(&request, c->request.language);
    wire_put_u64(&request, c->request.timeout_ms);
    identity_put_envs(c->sandbox, NULL, NULL, &request);
    envs_put_traced(c->request.envs, &c->operation.trace, &request);
    sandbox_cork(c->sandbox);
    int r = call_begin(&c->call, c->sandbox, OP_KERNEL_EXECUTE, &request, e);
    if (r == 0)
        call_pour(&c->call, c->request.code, c->request.code_len);
    sandbox_uncork(c->sandbox);
    return r;
}

void cell_begin(struct cell *c, struct execute_request *request)
{
    struct sg_error e = {0};

    c->request = *request;
    request->body = NULL;
    strbuf_init(&c->said, SPAN_VALUE_MAX);
    operation_begin(&c->operation, OPERATION_CELL);
    operation_sandbox(&c->operation, c->sandbox);
    span_text(c->operation.span, KEY_LANGUAGE,
              c->request.language[0] ? c->request.language : "python");
    operation_content(&c->operation, c->sandbox->front, KEY_INPUT, c->request.code,
                      c->request.code_len);
    c->call = (struct call){.owner = c,
                            .uncounted = c->call.uncounted,
                            .on_event = on_event,
                            .on_data = on_data,
                            .on_credit = on_credit,
                            .on_end = on_end};
    c->lines = (struct lines){.write = on_line_bytes, .owner = c};
    c->output_filter = output_filter_new(c->sandbox->front, c->sanitise, c->sandbox->spec.tenant,
                                         c->sandbox->id, on_quiet, c);
    c->cell_history = cell_history_new(c->sandbox, c->request.context, c->request.language,
                                       c->request.code, c->request.code_len, c->request.envs);
    results_init(&c->results, &c->lines, c->output_filter);
    frames_init(&c->queue, QUEUE_MAX);
    frames_init(&c->held, HELD_MAX);
    int r = ask(c, &e);
    if (r < 0) {
        give_up(c, r == -EPIPE ? CALL_GONE : -r, e.message);
        return;
    }
    c->timer = alarm_new(c->sandbox->front->loop, c);
    c->wrote_ms = uv_now(c->sandbox->front->loop);
    uv_timer_start(c->timer, on_timer, PATIENCE_MS, 0);
}

void cell_cancel(struct cell *c)
{
    if (c->running && !c->over)
        sandbox_log_add(&c->sandbox->log, LOG_INFO, FAULT_CLIENT, 0,
                        "Cell %u was interrupted: its client has disconnected", c->number);
    if (!c->over)
        span_fail(c->operation.span, "cancelled", "its client has disconnected");
    operation_drop(&c->operation);
    c->over = true;
    alarm_drop(&c->timer);
    call_cancel(&c->call);
}

void cell_done(struct cell *c)
{
    cell_history_free(steal_ptr(&c->cell_history));
    results_done(&c->results);
    frames_done(&c->queue);
    frames_done(&c->held);
    output_filter_free(steal_ptr(&c->output_filter));
    json_decref(c->request.body);
    strbuf_done(&c->said);
    free(c->message);
}
