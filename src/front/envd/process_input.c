/* SendInput, CloseStdin and StreamInput: each is one OP_PROCESS_INPUT.
 *
 * A piece of a stream is read only when the agent has the piece before it, and the agent grants
 * credit as the process reads: a process that does not read stops the client. */
#include "front/envd/messages.h"
#include "front/envd/process.h"

struct input {
    struct task task;
    struct strbuf request; /* selects the process; empty until the stream has named it */
    bool begun, last;
    uint32_t flags;
    json_t *piece; /* a string of bytes, or NULL */
    size_t at;
};

static void release(struct task *t)
{
    struct input *in = CONTAINER_OF(t, struct input, task);

    json_decref(in->piece);
    strbuf_done(&in->request);
}

static void failed(struct task *t, int status, const char *message)
{
    struct input *in = CONTAINER_OF(t, struct input, task);
    const char *what = in->flags & INPUT_PTY ? "tty" : "stdin";

    if (status == EPIPE && (in->flags & INPUT_CLOSE))
        rpc_reply(t->rpc, NULL); /* the input is closed already, as the client wants */
    else if (status == ESRCH)
        service_fail(t->rpc, t->user, status, message);
    else if (in->flags & INPUT_CLOSE)
        rpc_fail(t->rpc, RPC_UNKNOWN, "error closing stdin: %s", message);
    else
        rpc_fail(t->rpc, RPC_INTERNAL, "error writing to %s: %s", what, message);
}

/* Sends as much of the piece as the agent's credit allows. */
static void pump(struct input *in)
{
    size_t left = json_string_length(in->piece) - in->at, n;

    for (; left > 0; left -= n) {
        n = call_credit(&in->task.call);
        if (n == 0)
            return;
        n = n < left ? n : left;
        call_send(&in->task.call, CHAN_STDIN, json_string_value(in->piece) + in->at, n);
        in->at += n;
    }
    json_decref(in->piece);
    in->piece = NULL;
    in->at = 0;
    if (in->last)
        call_eof(&in->task.call);
    else
        rpc_resume(in->task.rpc);
}

static void on_credit(struct call *call)
{
    struct input *in = call->owner;

    if (in->piece)
        pump(in);
}

static struct input *input_new(struct rpc_call *c)
{
    struct input *in = task_new(c, sizeof(*in));

    strbuf_init(&in->request, 4096);
    in->task.release = release;
    in->task.done = task_reply_empty;
    in->task.failed = failed;
    in->task.call.on_credit = on_credit;
    return in;
}

static bool begin(struct input *in, uint32_t flags)
{
    in->begun = true;
    in->flags = flags;
    wire_put_u32(&in->request, flags);
    return task_begin(&in->task, OP_PROCESS_INPUT, &in->request);
}

/* The bytes of a ProcessInput (a new reference), and whether they are for stdin or the terminal.
 * NULL: the call has failed, and its struct input is freed. */
static json_t *bytes_of(struct rpc_call *c, json_t *message, uint32_t *ret_flags)
{
    json_t *input = json_object_get(message, "input");
    json_t *text = json_object_get(input, "stdin"), *pty = json_object_get(input, "pty");

    *ret_flags = pty ? INPUT_PTY : 0;
    if (!text && !pty)
        rpc_fail(c, RPC_INVALID_ARGUMENT, "the input has neither stdin nor pty");
    return json_incref(pty ? pty : text);
}

void process_send_input(struct rpc_call *c, json_t *message)
{
    struct input *in = input_new(c);
    json_t *piece;
    uint32_t flags;

    if (!process_selector(c, message, &in->request))
        return;
    piece = bytes_of(c, message, &flags);
    if (!piece)
        return;
    in->piece = piece;
    in->last = true;
    if (begin(in, flags))
        pump(in);
}

void process_close_stdin(struct rpc_call *c, json_t *message)
{
    struct input *in = input_new(c);

    if (!process_selector(c, message, &in->request))
        return;
    in->last = true;
    if (begin(in, INPUT_CLOSE))
        pump(in);
}

/* ---- StreamInput ----------------------------------------------------------------------------- */

static void stream_piece(struct input *in, json_t *data)
{
    struct rpc_call *c = in->task.rpc;
    uint32_t flags;

    if (in->request.len == 0) {
        rpc_fail(c, RPC_INVALID_ARGUMENT, "the first message must name the process");
        return;
    }
    json_t *piece = bytes_of(c, data, &flags);
    if (!piece)
        return;
    in->piece = piece;
    if (in->begun && flags != in->flags)
        rpc_fail(c, RPC_INVALID_ARGUMENT, "a stream is input for stdin or for a pty, not for both");
    else if (in->begun || begin(in, flags)) {
        rpc_hold(c);
        pump(in);
    }
}

static void stream_end(struct input *in)
{
    if (!in->begun) {
        rpc_reply(in->task.rpc, NULL);
        return;
    }
    in->last = true;
    pump(in);
}

void process_stream_input(struct rpc_call *c, json_t *message)
{
    struct input *in = c->owner ? c->owner : input_new(c);
    json_t *start = json_object_get(message, "start"), *data = json_object_get(message, "data");

    if (!message)
        stream_end(in);
    else if (data)
        stream_piece(in, data);
    else if (start && in->request.len > 0)
        rpc_fail(c, RPC_INVALID_ARGUMENT,
                 "the process was named before: a stream is for one process");
    else if (start)
        process_selector(c, start, &in->request);
    else if (!json_object_get(message, "keepalive"))
        rpc_fail(c, RPC_UNIMPLEMENTED, "a message must be start, data or keepalive");
}
