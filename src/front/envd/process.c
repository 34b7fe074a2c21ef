/* process.Process: the table of its methods, and those methods that are one short operation. */
#include "front/envd/process.h"

#include <string.h>

#include "front/envd/messages.h"

#define LIST_MAX (16u * 1024 * 1024) /* bytes of the agent's list */

bool process_selector(struct rpc_call *c, json_t *message, struct strbuf *request)
{
    json_t *selector = json_object_get(message, "process");
    json_t *pid = json_object_get(selector, "pid"), *tag = json_object_get(selector, "tag");
    const char *name = jr_text(selector, "tag");

    if (!pid && !tag) {
        rpc_fail(c, RPC_INVALID_ARGUMENT, "name the process: process.pid or process.tag");
        return false;
    }
    /* The agent would take pid 0 and the empty tag for "not given", and could not read a tag that
     * is too long. */
    if (pid && json_integer_value(pid) == 0) {
        rpc_fail(c, RPC_NOT_FOUND, "process with pid 0 not found");
        return false;
    }
    if (tag && (name[0] == '\0' || strlen(name) > OPS_TAG_MAX)) {
        rpc_fail(c, RPC_NOT_FOUND, "process with tag '%.100s' not found", name);
        return false;
    }
    wire_put_u32(request, (uint32_t)jr_int(selector, "pid"));
    wire_put_str(request, name);
    return true;
}

/* ---- SendSignal, Update ---------------------------------------------------------------------- */

static void send_signal(struct rpc_call *c, json_t *message)
{
    AUTO(strbuf_done) struct strbuf request = strbuf_upto(4096);
    uint32_t number = (uint32_t)jr_int(message, "signal");

    if (!process_selector(c, message, &request))
        return;
    if (number != 9 && number != 15) {
        rpc_fail(c, RPC_UNIMPLEMENTED,
                 "invalid signal: SIGNAL_SIGTERM and SIGNAL_SIGKILL can be sent");
        return;
    }
    wire_put_u32(&request, number);
    struct task *t = task_new(c, sizeof(*t));
    t->done = task_reply_empty;
    task_begin(t, OP_PROCESS_SIGNAL, &request);
}

static void resize_failed(struct task *t, int status, const char *message)
{
    if (status == ENOTTY)
        rpc_fail(t->rpc, RPC_INTERNAL, "error resizing tty: tty not assigned to process");
    else
        service_fail(t->rpc, t->user, status, message);
}

static void update(struct rpc_call *c, json_t *message)
{
    AUTO(strbuf_done) struct strbuf request = strbuf_upto(4096);
    json_t *pty = json_object_get(message, "pty"), *size = json_object_get(pty, "size");

    if (!process_selector(c, message, &request))
        return;
    if (!pty) {
        rpc_reply(c, NULL);
        return;
    }
    wire_put_u32(&request, (uint32_t)jr_int(size, "rows"));
    wire_put_u32(&request, (uint32_t)jr_int(size, "cols"));
    struct task *t = task_new(c, sizeof(*t));
    t->done = task_reply_empty;
    t->failed = resize_failed;
    task_begin(t, OP_PROCESS_RESIZE, &request);
}

/* ---- List ------------------------------------------------------------------------------------ */

struct listing {
    struct task task;
    struct strbuf data;
};

static void list_release(struct task *t)
{
    strbuf_done(&CONTAINER_OF(t, struct listing, task)->data);
}

static void list_data(struct call *call, uint8_t sub UNUSED, const void *p, size_t len)
{
    struct listing *l = call->owner;

    strbuf_add(&l->data, p, len);
    if (l->data.truncated)
        rpc_fail(l->task.rpc, RPC_RESOURCE_EXHAUSTED,
                 "the processes' commands are too long to be listed");
    else
        call_consumed(call, len);
}

/* The config of a process, as its note has it. A process without a note of ours was started by
 * somebody else: its config is made from the command line. */
static json_t *config_of(const char *note, const char *command)
{
    json_t *config;

    if (*note && rpc_decode(&process_config, RPC_JSON, note, strlen(note), &config, NULL) == 0)
        return config;
    return json_pack("{s:o}", "cmd", rpc_text(command));
}

static json_t *read_process(struct wire_reader *r)
{
    uint32_t pid = wire_get_u32(r);
    json_t *info;

    wire_get_str(r, OPS_NAME_MAX); /* user */
    const char *tag = wire_get_str(r, OPS_TAG_MAX);
    const char *note = wire_get_str(r, OPS_NOTE_MAX);
    const char *command = wire_get_str(r, OPS_NOTE_MAX);
    if (r->bad)
        return NULL;
    info = json_pack("{s:o, s:I}", "config", config_of(note, command), "pid", (json_int_t)pid);
    if (*tag)
        json_object_set_new(info, "tag", rpc_text(tag));
    return info;
}

static void list_done(struct task *t, const void *result UNUSED, size_t len UNUSED)
{
    struct listing *l = CONTAINER_OF(t, struct listing, task);
    struct strbuf out;
    struct rpc_list list;
    struct wire_reader r = wire_reader_of(l->data.buf, l->data.len);

    strbuf_init(&out, RPC_REPLY_MAX);
    rpc_list_begin(&list, &list_response, t->rpc->codec, &out);
    while (!wire_done(&r)) {
        json_t *info = read_process(&r);
        if (!info) {
            strbuf_done(&out);
            service_nonsense(t->rpc);
            return;
        }
        rpc_list_add(&list, info);
        json_decref(info);
    }
    rpc_list_end(&list);
    rpc_reply_encoded(t->rpc, &out);
}

static void list(struct rpc_call *c, json_t *message UNUSED)
{
    struct listing *l = task_new(c, sizeof(*l));

    strbuf_init(&l->data, LIST_MAX);
    l->task.release = list_release;
    l->task.done = list_done;
    l->task.call.on_data = list_data;
    task_begin(&l->task, OP_PROCESS_LIST, NULL);
}

/* ---- table ----------------------------------------------------------------------------------- */

static const struct rpc_method methods[] = {
    {"Start", RPC_SERVER_STREAM, &start_request, &stream_response, process_stream_start},
    {"Connect", RPC_SERVER_STREAM, &connect_request, &stream_response, process_stream_connect},
    {"List", RPC_UNARY, &empty_message, &list_response, list},
    {"SendInput", RPC_UNARY, &send_input_request, &empty_message, process_send_input},
    {"StreamInput", RPC_CLIENT_STREAM, &stream_input_request, &empty_message, process_stream_input},
    {"CloseStdin", RPC_UNARY, &close_stdin_request, &empty_message, process_close_stdin},
    {"SendSignal", RPC_UNARY, &send_signal_request, &empty_message, send_signal},
    {"Update", RPC_UNARY, &update_request, &empty_message, update},
};

const struct rpc_service process_service = {.prefix = "/process.Process/",
                                            .methods = methods,
                                            .n = ARRAY_SIZE(methods),
                                            .release = service_release};
