/* Start and Connect: a process's events as a stream.
 *
 *   began --STARTED--> started --END--> (end event, end of the stream)
 *
 * Output goes on as fast as the client takes it: bytes that wait in the connection are not
 * acknowledged to the agent, which then stops reading from the process.
 *
 * A process outlives the client that started it. The stream of such a process stays, without
 * output, to log how the process ends. */
#include <stdio.h>
#include <string.h>

#include "front/envd/messages.h"
#include "front/envd/process.h"
#include "front/core/defaults.h"
#include "front/core/operation.h"
#include "front/core/identity.h"
#include "front/core/output_filter.h"

#define CHUNK_STD 32768 /* bytes of output in one message */
#define CHUNK_PTY 16384
#define COMMAND   512 /* bytes of a command in logs and errors */
/* The agent ends a process whose time is over. This is how long the agent may take to tell us. */
#define DEADLINE_GRACE_MS 5000

struct stream {
    struct call call;
    struct rpc_call *rpc; /* NULL: the client is gone */
    struct sandbox *sandbox;
    char user[OPS_NAME_MAX + 1];
    bool start; /* a Start, which is logged; a Connect is not */
    bool pty, started, blocked;
    uint32_t pid;
    size_t owed;                         /* bytes that wait for the client */
    char *command, *cwd, *why;           /* why: the reason of a failed start */
    struct output_filter *output_filter; /* NULL: output is not sanitised */
    struct operation operation;          /* of a Start */
};

static void stream_free(struct stream *s)
{
    operation_drop(&s->operation);
    call_cancel(&s->call);
    output_filter_free(s->output_filter);
    sandbox_unref(s->sandbox);
    free(s->command);
    free(s->cwd);
    free(s->why);
    free(s);
}

static void drop_output(struct stream *s, uint32_t channel)
{
    AUTO(strbuf_done) struct strbuf which = strbuf_upto(16);

    wire_put_u32(&which, channel);
    call_control(&s->call, CONTROL_DISCARD, which.buf, which.len);
}

static void on_close(struct rpc_call *c)
{
    struct stream *s = c->owner;

    s->rpc = NULL;
    if (!s->start || !s->started || !s->call.stream) {
        stream_free(s);
        return;
    }
    drop_output(s, CHAN_STDOUT);
    drop_output(s, CHAN_STDERR);
    call_consumed(&s->call, s->owed);
    s->owed = 0;
}

static void on_writable(struct rpc_call *c)
{
    struct stream *s = c->owner;

    s->blocked = false;
    call_consumed(&s->call, s->owed);
    s->owed = 0;
}

/* ---- events ---------------------------------------------------------------------------------- */

static json_t *event(const char *kind, json_t *value)
{
    return json_pack("{s:{s:o}}", "event", kind, value);
}

static void on_event(struct call *call, uint8_t what, const void *p, size_t len)
{
    struct stream *s = call->owner;
    struct wire_reader r = wire_reader_of(p, len);

    uint32_t pid = wire_get_u32(&r), tty = wire_get_u32(&r);
    if (what != EVENT_STARTED || s->started || !s->rpc || !wire_done(&r))
        return;
    s->started = true;
    s->pid = pid;
    s->pty = tty != 0;
    if (s->start)
        sandbox_log_add(&s->sandbox->log, LOG_INFO, FAULT_CODE, pid,
                        "Process with pid %u started: %s", pid, s->command);
    s->blocked = !rpc_send(s->rpc, event("start", json_pack("{s:I}", "pid", (json_int_t)pid)));
    rpc_set_keepalive(s->rpc, event("keepalive", json_object()));
}

static const char *kind_of(const struct stream *s, enum output_filter_stream stream)
{
    return s->pty ? "pty" : stream == OUTPUT_FILTER_ERR ? "stderr" : "stdout";
}

/* Sends output that the output filter has passed. False: the client is gone. */
static bool send_output(struct stream *s, enum output_filter_stream stream,
                        struct output_filter_text text)
{
    const char *kind = kind_of(s, stream);
    size_t most = s->pty ? CHUNK_PTY : CHUNK_STD;
    struct rpc_call *rpc = s->rpc;

    if (s->start && text.len > 0)
        sandbox_log_output(&s->sandbox->log, s->pid, kind, text.p, text.len);
    for (size_t at = 0, n; at < text.len; at += n) {
        n = text.len - at < most ? text.len - at : most;
        json_t *bytes = json_stringn_nocheck(text.p + at, n);
        s->blocked = !rpc_send(rpc, event("data", json_pack("{s:o}", kind, bytes)));
        if (rpc->over)
            return false;
    }
    return true;
}

/* Sends the bytes that the output filter held back until it saw what follows them. */
static bool flush_output(struct stream *s)
{
    return !s->output_filter ||
           (send_output(s, OUTPUT_FILTER_OUT,
                        output_filter_flush(s->output_filter, OUTPUT_FILTER_OUT)) &&
            send_output(s, OUTPUT_FILTER_ERR,
                        output_filter_flush(s->output_filter, OUTPUT_FILTER_ERR)));
}

static void on_quiet(void *arg)
{
    struct stream *s = arg;

    if (s->rpc)
        flush_output(s);
}

static void on_data(struct call *call, uint8_t sub, const void *p, size_t len)
{
    struct stream *s = call->owner;
    struct rpc_call *rpc = s->rpc;
    enum output_filter_stream stream = sub == CHAN_STDERR ? OUTPUT_FILTER_ERR : OUTPUT_FILTER_OUT;

    if (!rpc || !s->started) {
        call_consumed(call, len);
        return;
    }
    s->owed += len;
    if (send_output(s, stream, output_filter_feed(s->output_filter, stream, p, len)) && !s->blocked)
        on_writable(rpc);
}

/* ---- the end --------------------------------------------------------------------------------- */

struct ending {
    bool killed, timed_out;
    uint32_t code;
    uint64_t memory_limit; /* that ended it, or 0 */
};

static bool read_ending(const void *result, size_t len, struct ending *ret)
{
    struct wire_reader r = wire_reader_of(result, len);

    ret->killed = wire_get_u32(&r) == PROC_KILLED;
    ret->code = wire_get_u32(&r);
    for (int i = 0; i < 4; i++)
        wire_get_u64(&r); /* utime, stime, maxrss, disk_used */
    wire_get_u32(&r);     /* disk_full */
    wire_get_u64(&r);
    wire_get_u64(&r); /* dropped */
    ret->timed_out = wire_get_u32(&r) != 0;
    ret->memory_limit = wire_get_u64(&r);
    return wire_done(&r);
}

/* Ends the operation. A bad exit status is the program's own and no failure of the server. */
static void end_operation(struct stream *s, const struct ending *ending)
{
    span_number(s->operation.span, KEY_EXIT_CODE, ending->code);
    if (ending->code != 0 || ending->killed || ending->timed_out) {
        span_text(s->operation.span, KEY_FAULT, fault_name(FAULT_CODE));
        span_fail(s->operation.span,
                  ending->timed_out ? "timeout"
                  : ending->killed  ? "killed"
                                    : "code",
                  "the program failed");
    }
    operation_end(&s->operation, s->sandbox->front, s->sandbox, 0, NULL, NULL);
}

static void ended(struct stream *s, const struct ending *ending)
{
    end_operation(s, ending);
    if (s->rpc && !flush_output(s))
        return;
    json_t *end = process_end_event(ending->killed, ending->code, ending->memory_limit);

    if (s->start)
        sandbox_log_add(&s->sandbox->log, LOG_INFO, FAULT_CODE, s->pid,
                        "Process with pid %u ended: %s%s", s->pid,
                        jr_text(end, ending->memory_limit ? "error" : "status"),
                        ending->timed_out ? " (its timeout expired)" : "");
    if (!s->rpc) {
        json_decref(end);
        stream_free(s);
    } else if (ending->timed_out) {
        json_decref(end);
        rpc_fail(s->rpc, RPC_DEADLINE_EXCEEDED, "the process was killed: its timeout expired");
    } else {
        struct rpc_call *rpc = s->rpc;
        rpc_send(rpc, event("end", end));
        rpc_finish(rpc);
    }
}

/* A start failed with ENOENT, which is about the program or about its directory. This is the answer
 * of a second call that looked whether the directory exists. */
static void cwd_looked_at(struct call *call, int status, const char *message UNUSED,
                          const void *result UNUSED, size_t len UNUSED)
{
    struct stream *s = call->owner;

    if (status == CALL_GONE)
        service_gone(s->rpc);
    else if (status == ENOENT && s->cwd[0] == '\0')
        rpc_fail(s->rpc, RPC_INVALID_ARGUMENT, "the home of user '%s' does not exist: give a cwd",
                 s->user);
    else if (status == ENOENT)
        rpc_fail(s->rpc, RPC_INVALID_ARGUMENT, "cwd '%s' does not exist", s->cwd);
    else
        rpc_fail(s->rpc, RPC_INVALID_ARGUMENT, "error starting process '%s': %s", s->command,
                 s->why);
}

static bool look_at_cwd(struct stream *s, const char *message)
{
    AUTO(strbuf_done) struct strbuf request = strbuf_upto(2 * OPS_PATH_MAX);

    wire_put_str(&request, s->user);
    wire_put_str(&request, s->cwd);
    s->why = xstrdup(message);
    s->call.on_end = cwd_looked_at;
    return call_begin(&s->call, s->sandbox, OP_FILE_STAT, &request, NULL) == 0;
}

static void failed(struct stream *s, int status, const char *message)
{
    enum rpc_code code = service_code(status);
    struct sg_error e;

    /* If the sandbox is gone, that is the error; every other failure is the fault of the client. */
    if (status == CALL_GONE)
        sandbox_gone_error(s->sandbox, &e);
    else
        err_set(&e, SG_ERR_INVALID, -EIO, "%s", message);
    operation_end(&s->operation, s->sandbox->front, s->sandbox, -EIO, &e, NULL);
    if (status == CALL_GONE || status == EUSERS || !s->start)
        service_fail(s->rpc, s->user, status, message);
    else if (status != ENOENT || !look_at_cwd(s, message))
        rpc_fail(s->rpc, code == RPC_RESOURCE_EXHAUSTED ? code : RPC_INVALID_ARGUMENT,
                 "error starting process '%s': %s", s->command, message);
}

static void on_end(struct call *call, int status, const char *message, const void *result,
                   size_t len)
{
    struct stream *s = call->owner;
    struct ending ending;

    if (!s->rpc && status != 0)
        stream_free(s);
    else if (status != 0)
        failed(s, status, message);
    else if (s->started && read_ending(result, len, &ending))
        ended(s, &ending);
    else if (s->rpc)
        service_nonsense(s->rpc);
    else
        stream_free(s);
}

/* ---- beginning ------------------------------------------------------------------------------- */

static struct stream *stream_new(struct rpc_call *c)
{
    struct sandbox *b = sandbox_of(c);
    struct stream *s = NEW(struct stream, .rpc = c, .sandbox = sandbox_ref(b));

    s->output_filter = output_filter_new(
        b->front, output_filter_mode_of(b->front, b->spec.tenant, b->spec.context[0] != '\0'),
        b->spec.tenant, b->id, on_quiet, s);
    s->call = (struct call){.owner = s, .on_event = on_event, .on_data = on_data, .on_end = on_end};
    c->owner = s;
    c->on_close = on_close;
    c->on_writable = on_writable;
    return s;
}

static void stream_begin(struct stream *s, enum chan_op op, const struct strbuf *request)
{
    struct sg_error e = {0};
    int r = call_begin(&s->call, s->sandbox, op, request, &e);

    if (r < 0)
        service_fail(s->rpc, s->user, r == -EPIPE ? CALL_GONE : -r, e.message);
}

/* The command as people read it: in one line, and cut if it is long. */
static char *command_line(json_t *config)
{
    AUTO(strbuf_done) struct strbuf line = strbuf_upto(COMMAND);
    json_t *args = json_object_get(config, "args");

    strbuf_addstr(&line, jr_text(config, "cmd"));
    for (size_t i = 0; i < json_array_size(args); i++)
        strbuf_addf(&line, " %s", json_string_value(json_array_get(args, i)));
    return xstrdup(line.buf);
}

static void put_command(json_t *config, struct strbuf *request)
{
    json_t *args = json_object_get(config, "args");

    wire_put_u32(request, (uint32_t)json_array_size(args) + 1);
    wire_put_str(request, jr_text(config, "cmd"));
    for (size_t i = 0; i < json_array_size(args); i++)
        wire_put_str(request, json_string_value(json_array_get(args, i)));
}

/* Writes the request of OP_PROCESS_START. False: the call has failed. */
static bool put_start(struct stream *s, json_t *message, struct strbuf *request)
{
    json_t *config = json_object_get(message, "process"), *pty = json_object_get(message, "pty");
    json_t *input = json_object_get(message, "stdin"), *size = json_object_get(pty, "size");
    AUTO(strbuf_done) struct strbuf note = strbuf_upto(OPS_NOTE_MAX);
    const char *given = jr_text(config, "cwd");
    char cwd[OPS_PATH_MAX];

    if (!given[0])
        given = defaults_workdir(s->sandbox->spec.defaults);
    if (!service_user(s->rpc, s->user) || !service_path(s->rpc, s->user, given, cwd))
        return false;
    s->cwd = xstrdup(cwd);
    s->command = command_line(config);
    s->pty = pty != NULL;
    rpc_encode(&process_config, RPC_JSON, config, &note);
    wire_put_str(request, s->user);
    wire_put_str(request, cwd);
    wire_put_u32(request, PROC_DETACH | (pty ? PROC_PTY : json_is_false(input) ? 0 : PROC_STDIN));
    wire_put_u32(request, (uint32_t)jr_int(size, "rows"));
    wire_put_u32(request, (uint32_t)jr_int(size, "cols"));
    wire_put_u64(request, s->rpc->timeout_ms);
    wire_put_str(request, jr_text(message, "tag"));
    wire_put_str(request, note.buf);
    put_command(config, request);
    identity_put_envs(s->sandbox, &s->operation.trace, json_object_get(config, "envs"), request);
    if (!note.truncated && !request->truncated)
        return true;
    rpc_fail(s->rpc, RPC_INVALID_ARGUMENT,
             "the command and its environment are longer than %u bytes: use a file", OPS_NOTE_MAX);
    return false;
}

void process_stream_start(struct rpc_call *c, json_t *message)
{
    AUTO(strbuf_done) struct strbuf request = strbuf_upto(OPS_OPEN_MAX);
    struct stream *s = stream_new(c);

    s->start = true;
    operation_begin(&s->operation, OPERATION_PROCESS);
    operation_sandbox(&s->operation, s->sandbox);
    rpc_extend_deadline(c, DEADLINE_GRACE_MS);
    if (put_start(s, message, &request))
        stream_begin(s, OP_PROCESS_START, &request);
}

void process_stream_connect(struct rpc_call *c, json_t *message)
{
    AUTO(strbuf_done) struct strbuf request = strbuf_upto(4096);

    if (process_selector(c, message, &request))
        stream_begin(stream_new(c), OP_PROCESS_ATTACH, &request);
}
