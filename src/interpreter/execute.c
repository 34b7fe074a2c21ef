/* POST /execute: a cell.
 *
 *   asked --EVENT_EXECUTING--> running --END--> ended --all written--> over
 *
 * The answer starts when it is the cell's turn, so that what is wrong with the request gets its own
 * status; but after two seconds in the queue it starts all the same, for clients that wait for a
 * head with a time limit, and what is wrong then is an error line. While nothing else is written, a
 * keepalive line is, each five seconds.
 *
 * Frames that come while the client does not take more wait in `queue`, unacknowledged, so the
 * agent sends no more than its window. Output that comes in the middle of a result waits in `held`
 * until the line is whole: it is acknowledged, since the end of the result must still find room in
 * the window, and what exceeds HELD_MAX is left out, and said to be.
 *
 * When the client goes away the call is cancelled, and the agent interrupts the cell. */
#include <stdio.h>
#include <string.h>

#include "front/identity.h"
#include "front/reply.h"
#include "interpreter/ending.h"
#include "interpreter/frames.h"
#include "interpreter/request.h"
#include "interpreter/routes.h"

#define KEEPALIVE_MS 5000
#define PATIENCE_MS  2000
#define NOTE_MAX     1024
#define HELD_MAX     (256u * 1024)
/* All that the agent may send unacknowledged, in frames of one byte. */
#define QUEUE_MAX (16u * CHAN_WINDOW)

struct execution {
    struct call call;
    struct http_req *req;
    struct box *box;
    struct execute_request request;
    size_t sent;       /* of the code */
    uv_timer_t *timer; /* freed by its close callback */
    uint64_t wrote_ms; /* uv_now() */
    struct lines lines;
    struct results results;
    struct frames queue, held;
    size_t lost;  /* bytes that `held` had no room for */
    size_t owed;  /* bytes that the client has not taken */
    bool choked;  /* http_write said false */
    bool running; /* EVENT_EXECUTING has come */
    bool ended, over;
    uint32_t number;
    struct ending ending;
    char *message; /* of an ending that failed */
};

static void on_timer_closed(uv_handle_t *h)
{
    free(h);
}

static void stop_timer(struct execution *x)
{
    if (x->timer)
        uv_close((uv_handle_t *)x->timer, on_timer_closed);
    x->timer = NULL;
}

static void on_close(struct http_req *req)
{
    struct execution *x = req->owner;

    if (x->running && !x->over)
        box_log_add(&x->box->log, LOG_INFO, SOURCE_SANDBOX, 0,
                    "Cell %u: its client has gone, it is interrupted", x->number);
    stop_timer(x);
    call_cancel(&x->call);
    results_done(&x->results);
    frames_done(&x->queue);
    frames_done(&x->held);
    json_decref(x->request.body);
    box_unref(x->box);
    free(x->message);
    free(x);
}

/* ---- to the client -------------------------------------------------------------------------- */

static void on_write(void *owner, const char *p, size_t len)
{
    struct execution *x = owner;

    x->wrote_ms = uv_now(x->box->front->loop);
    x->choked |= !http_write(x->req, p, len);
}

static void start_answer(struct execution *x)
{
    if (http_started(x->req))
        return;
    http_add_header(x->req, "Cache-Control", "no-store");
    http_add_header(x->req, "X-Accel-Buffering", "no"); /* a proxy must not wait for more */
    http_start(x->req, 200, "application/x-ndjson", -1);
}

static void on_timer(uv_timer_t *t)
{
    struct execution *x = t->data;
    uint64_t idle = uv_now(t->loop) - x->wrote_ms;

    if (!http_started(x->req)) {
        start_answer(x);
        lines_keepalive(&x->lines);
    } else if (idle >= KEEPALIVE_MS && !x->choked && !results_open(&x->results)) {
        lines_keepalive(&x->lines);
    }
    uv_timer_start(t, on_timer, idle < KEEPALIVE_MS ? KEEPALIVE_MS - idle : KEEPALIVE_MS, 0);
}

static enum lines_stream stream_of(uint8_t sub)
{
    return sub == CHAN_STDERR ? LINES_STDERR : LINES_STDOUT;
}

static void write_held(struct execution *x)
{
    char text[160];
    const void *p;
    uint8_t sub;
    size_t n;

    while (frames_take(&x->held, LINE_TEXT_MAX, &sub, &p, &n))
        lines_output(&x->lines, stream_of(sub), p, n);
    if (x->lost == 0)
        return;
    snprintf(text, sizeof(text),
             "sandglass: %zu bytes of output left out: they came during a result\n", x->lost);
    lines_output(&x->lines, LINES_STDERR, text, strlen(text));
    x->lost = 0;
}

static bool is_output(uint8_t sub)
{
    return sub == CHAN_STDOUT || sub == CHAN_STDERR;
}

static void write_frame(struct execution *x, uint8_t sub, const void *p, size_t len)
{
    if (sub == CHAN_KERNEL) {
        results_packet(&x->results, p, len);
        if (!results_open(&x->results))
            write_held(x);
    } else if (!results_open(&x->results)) {
        lines_output(&x->lines, stream_of(sub), p, len);
    } else if (!frames_add(&x->held, sub, true, p, len)) {
        x->lost += len;
    }
    if (x->choked)
        x->owed += len;
    else
        call_consumed(&x->call, len);
}

/* ---- the end -------------------------------------------------------------------------------- */

static void finish(struct execution *x)
{
    struct results *r = &x->results;

    start_answer(x);
    results_close(r);
    write_held(x);
    lines_output_end(&x->lines);
    bool failed = ending_error(&x->ending, x->message, x->request.timeout_ms, r);
    if (failed)
        lines_error(&x->lines, &r->error[ERROR_NAME], &r->error[ERROR_VALUE],
                    &r->error[ERROR_TRACEBACK]);
    lines_end(&x->lines);
    http_finish(x->req);
    if (x->running)
        box_log_add(&x->box->log, LOG_INFO, SOURCE_SANDBOX, 0, "Cell %u ended%s%.64s", x->number,
                    failed ? ": " : "", failed ? r->error[ERROR_NAME].buf : "");
    x->over = true;
    stop_timer(x);
}

/* Writes what waits, as far as the client takes it, and the end when nothing waits any more. */
static void advance(struct execution *x)
{
    const void *p;
    uint8_t sub;
    size_t n;

    while (!x->choked && frames_take(&x->queue, LINE_TEXT_MAX, &sub, &p, &n))
        write_frame(x, sub, p, n);
    if (x->ended && !x->over && frames_empty(&x->queue))
        finish(x);
}

static void on_writable(struct http_req *req)
{
    struct execution *x = req->owner;

    x->choked = false;
    call_consumed(&x->call, x->owed);
    x->owed = 0;
    advance(x);
}

/* Without an answer, or without the rest of one. */
static void give_up(struct execution *x, int status, const char *message)
{
    x->over = true;
    stop_timer(x);
    call_cancel(&x->call);
    if (http_started(x->req))
        http_abort(x->req);
    else
        refuse_call(x->req, x->box, status, message,
                    x->request.context[0] ? x->request.context : NULL);
}

static void on_end(struct call *call, int status, const char *message, const void *result,
                   size_t len)
{
    struct execution *x = call->owner;

    if (status == CALL_GONE || (status != 0 && !http_started(x->req))) {
        give_up(x, status, message);
        return;
    }
    if (status != 0) {
        x->ending.status = status;
        x->message = xstrdup(message);
    } else if (!ending_read(result, len, &x->ending)) {
        x->ending.status = EPROTO;
        x->message = xstrdup("the sandbox answered something that cannot be read");
    }
    x->ended = true;
    advance(x);
}

/* ---- from the agent ------------------------------------------------------------------------- */

static void on_event(struct call *call, uint8_t what, const void *p, size_t len)
{
    struct execution *x = call->owner;
    AUTO(strbuf_done) struct strbuf line = {0};
    struct wire_reader r;

    wire_reader_init(&r, p, len);
    uint32_t number = wire_get_u32(&r);
    const char *note = wire_get_str(&r, NOTE_MAX);
    if (what != EVENT_EXECUTING || x->running || !wire_done(&r))
        return;
    x->running = true;
    x->number = number;
    box_log_add(&x->box->log, LOG_INFO, SOURCE_SANDBOX, 0, "Cell %u of %s%s started", number,
                x->request.context[0] ? "context " : "",
                x->request.context[0]    ? x->request.context
                : x->request.language[0] ? x->request.language
                                         : "python");
    start_answer(x);
    lines_number(&x->lines, number);
    if (!note[0])
        return;
    strbuf_init(&line, 2 * NOTE_MAX);
    strbuf_addf(&line, "sandglass: %s\n", note);
    lines_output(&x->lines, LINES_STDERR, line.buf, line.len);
}

static void on_data(struct call *call, uint8_t sub, const void *p, size_t len)
{
    struct execution *x = call->owner;

    if (!x->running || !(is_output(sub) || sub == CHAN_KERNEL)) {
        call_consumed(call, len);
        return;
    }
    if (!x->choked && frames_empty(&x->queue))
        write_frame(x, sub, p, len);
    else if (!frames_add(&x->queue, sub, is_output(sub), p, len))
        give_up(x, ENOMEM, "the sandbox's output cannot be kept");
}

static void send_code(struct execution *x)
{
    struct execute_request *r = &x->request;
    size_t n = call_credit(&x->call), left = r->code_len - x->sent;

    n = n < left ? n : left;
    if (n > 0)
        call_send(&x->call, CHAN_STDIN, r->code + x->sent, n);
    x->sent += n;
    if (n < left)
        return;
    call_eof(&x->call);
    json_decref(steal_ptr(&r->body));
}

static void on_credit(struct call *call)
{
    struct execution *x = call->owner;

    if (x->request.body)
        send_code(x);
}

/* ---- beginning ------------------------------------------------------------------------------ */

static void begin(struct execution *x)
{
    AUTO(strbuf_done) struct strbuf request = {0};
    struct sg_error e = {0};

    strbuf_init(&request, OPS_OPEN_MAX);
    wire_put_str(&request, x->request.context);
    wire_put_str(&request, x->request.language);
    wire_put_u64(&request, x->request.timeout_ms);
    identity_put_envs(x->box, NULL, &request);
    envs_put(x->request.envs, &request);
    box_cork(x->box);
    int r = call_begin(&x->call, x->box, OP_KERNEL_EXECUTE, &request, &e);
    if (r == 0)
        send_code(x);
    box_uncork(x->box);
    if (r < 0) {
        give_up(x, r == -EPIPE ? CALL_GONE : -r, e.message);
        return;
    }
    x->timer = xcalloc(1, sizeof(*x->timer));
    uv_timer_init(x->box->front->loop, x->timer);
    x->timer->data = x;
    x->wrote_ms = uv_now(x->box->front->loop);
    uv_timer_start(x->timer, on_timer, PATIENCE_MS, 0);
}

static void on_body(struct http_req *req, const char *body, size_t len)
{
    struct execution *x = req->owner;

    if (execute_request_parse(req, body, len, &x->request))
        begin(x);
}

void interpreter_execute(struct http_req *req)
{
    struct execution *x = xcalloc(1, sizeof(*x));

    x->req = req;
    x->box = box_ref(req->owner);
    x->call = (struct call){.owner = x,
                            .on_event = on_event,
                            .on_data = on_data,
                            .on_credit = on_credit,
                            .on_end = on_end};
    x->lines = (struct lines){.write = on_write, .owner = x};
    results_init(&x->results, &x->lines);
    frames_init(&x->queue, QUEUE_MAX);
    frames_init(&x->held, HELD_MAX);
    req->owner = x;
    req->on_close = on_close;
    req->on_writable = on_writable;
    http_body_collect(req, EXECUTE_BODY_MAX, on_body);
}
