/* WatchDir. */
#include "front/envd/watch.h"

#include "front/envd/entry.h"
#include "front/envd/messages.h"

/* The agent sends changes without credit. For a client that does not take them this many wait; then
 * the stream ends. */
#define WAITING_MAX 8192

uint32_t watch_flags(json_t *message)
{
    return (jr_flag(message, "recursive") ? FILE_RECURSIVE : 0) |
           (jr_flag(message, "includeEntry") ? FILE_ENTRIES : 0);
}

json_t *watch_event(const void *p, size_t len, uint32_t flags, bool *ret_lost)
{
    static const int types[] = {[WATCH_CREATE] = EVENT_TYPE_CREATE,
                                [WATCH_WRITE] = EVENT_TYPE_WRITE,
                                [WATCH_REMOVE] = EVENT_TYPE_REMOVE,
                                [WATCH_RENAME] = EVENT_TYPE_RENAME,
                                [WATCH_CHMOD] = EVENT_TYPE_CHMOD};
    struct wire_reader r = wire_reader_of(p, len);
    json_t *event, *entry = NULL;

    uint32_t what = wire_get_u32(&r);
    const char *name = wire_get_str(&r, OPS_PATH_MAX);
    bool has_entry = (flags & FILE_ENTRIES) && wire_get_u32(&r) == 1;
    *ret_lost = !r.bad && what == WATCH_OVERFLOW;
    if (r.bad || what == 0 || what >= ARRAY_SIZE(types))
        return NULL;
    if (has_entry)
        entry = entry_read(&r);
    if (has_entry ? !entry : !wire_done(&r)) {
        json_decref(entry);
        return NULL;
    }
    event = json_pack("{s:o, s:i}", "name", rpc_text(*name ? name : "."), "type", types[what]);
    if (entry)
        json_object_set_new(event, "entry", entry);
    return event;
}

void watch_failed(struct task *t, int status, const char *message)
{
    if (status == ENOENT)
        rpc_fail(t->rpc, RPC_NOT_FOUND, "path %s not found: %s", t->path, message);
    else if (status == ENOTDIR)
        rpc_fail(t->rpc, RPC_INVALID_ARGUMENT, "path %s not a directory", t->path);
    else
        service_fail(t->rpc, t->user, status, message);
}

/* ---- the stream ------------------------------------------------------------------------------ */

struct watch {
    struct task task;
    uint32_t flags;
    bool started;
    unsigned waiting; /* changes sent since the client stopped taking them */
};

static void send_change(struct watch *w, const void *p, size_t len)
{
    struct rpc_call *c = w->task.rpc;
    bool lost;
    json_t *event = watch_event(p, len, w->flags, &lost);

    if (!event && !lost)
        service_nonsense(c);
    else if (lost || w->waiting > WAITING_MAX)
        rpc_fail(c, RPC_INTERNAL, WATCH_LOST);
    else if (rpc_send(c, json_pack("{s:O}", "filesystem", event)))
        w->waiting = 0;
    else if (!c->over)
        w->waiting++;
    json_decref(event);
}

static void on_event(struct call *call, uint8_t what, const void *p, size_t len)
{
    struct watch *w = call->owner;
    struct rpc_call *c = w->task.rpc;

    if (what == EVENT_CHANGE && w->started) {
        send_change(w, p, len);
    } else if (what == EVENT_WATCHING && !w->started) {
        w->started = true;
        rpc_send(c, json_pack("{s:{}}", "start"));
        rpc_set_keepalive(c, json_pack("{s:{}}", "keepalive"));
    }
}

/* An agent never ends a watch by itself, so this answer makes no sense. */
static void on_done(struct task *t, const void *result UNUSED, size_t len UNUSED)
{
    service_nonsense(t->rpc);
}

static void on_writable(struct rpc_call *c)
{
    struct watch *w = c->owner;

    w->waiting = 0;
}

void watch_dir(struct rpc_call *c, json_t *message)
{
    AUTO(strbuf_done) struct strbuf request = strbuf_upto(2 * OPS_PATH_MAX);
    struct watch *w = task_new(c, sizeof(*w));

    c->req->unawaited = true; /* the client ends the stream when it has seen enough */
    w->flags = watch_flags(message);
    w->task.done = on_done;
    w->task.failed = watch_failed;
    w->task.call.on_event = on_event;
    c->on_writable = on_writable;
    if (!task_target(&w->task, jr_text(message, "path"), &request))
        return;
    wire_put_u32(&request, w->flags);
    task_begin(&w->task, OP_FILE_WATCH, &request);
}
