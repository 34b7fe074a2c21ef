/* filesystem.Filesystem: the table of its methods, and those methods that are one operation of the
 * agent. */
#include <string.h>

#include "front/envd/entry.h"
#include "front/envd/messages.h"
#include "front/envd/watch.h"

#define BUDGET_STEP (256u * 1024)

/* ---- one entry: Stat, MakeDir, Move; and Remove ---------------------------------------------- */

static void reply_entry(struct task *t, const void *result, size_t len)
{
    struct wire_reader r = wire_reader_of(result, len);
    json_t *entry = entry_read(&r);

    if (entry)
        rpc_reply(t->rpc, json_pack("{s:o}", "entry", entry));
    else
        service_nonsense(t->rpc);
}

static void stat_failed(struct task *t, int status, const char *message)
{
    if (status == ENOENT || status == ENOTDIR) /* ENOTDIR: a file is in the way */
        rpc_fail(t->rpc, RPC_NOT_FOUND, "file not found: %s", message);
    else
        service_fail(t->rpc, t->user, status, message);
}

static void stat_path(struct rpc_call *c, json_t *message)
{
    AUTO(strbuf_done) struct strbuf request = strbuf_upto(2 * OPS_PATH_MAX);
    struct task *t = task_new(c, sizeof(*t));

    t->done = reply_entry;
    t->failed = stat_failed;
    if (task_target(t, jr_text(message, "path"), &request))
        task_begin(t, OP_FILE_STAT, &request);
}

static void make_dir_failed(struct task *t, int status, const char *message)
{
    if (status == EEXIST)
        rpc_fail(t->rpc, RPC_ALREADY_EXISTS, "directory already exists: %s", t->path);
    else if (status == ENOTDIR)
        rpc_fail(t->rpc, RPC_INVALID_ARGUMENT, "path already exists but it is not a directory: %s",
                 t->path);
    else
        service_fail(t->rpc, t->user, status, message);
}

static void make_dir(struct rpc_call *c, json_t *message)
{
    AUTO(strbuf_done) struct strbuf request = strbuf_upto(2 * OPS_PATH_MAX);
    struct task *t = task_new(c, sizeof(*t));

    t->done = reply_entry;
    t->failed = make_dir_failed;
    if (!task_target(t, jr_text(message, "path"), &request))
        return;
    wire_put_u32(&request, 0755);
    wire_put_u32(&request, FILE_PARENTS);
    task_begin(t, OP_FILE_MKDIR, &request);
}

static void move(struct rpc_call *c, json_t *message)
{
    AUTO(strbuf_done) struct strbuf request = strbuf_upto(3 * OPS_PATH_MAX);
    struct task *t = task_new(c, sizeof(*t));
    char destination[OPS_PATH_MAX];

    t->done = reply_entry;
    if (!task_target(t, jr_text(message, "source"), &request) ||
        !service_path(c, t->user, jr_text(message, "destination"), destination))
        return;
    wire_put_str(&request, destination);
    wire_put_u32(&request, FILE_PARENTS);
    task_begin(t, OP_FILE_MOVE, &request);
}

/* Removing something that does not exist counts as success. */
static void remove_failed(struct task *t, int status, const char *message)
{
    if (status == ENOENT || status == ENOTDIR)
        rpc_reply(t->rpc, NULL);
    else
        service_fail(t->rpc, t->user, status, message);
}

static void remove_path(struct rpc_call *c, json_t *message)
{
    AUTO(strbuf_done) struct strbuf request = strbuf_upto(2 * OPS_PATH_MAX);
    struct task *t = task_new(c, sizeof(*t));

    t->done = task_reply_empty;
    t->failed = remove_failed;
    if (!task_target(t, jr_text(message, "path"), &request))
        return;
    wire_put_u32(&request, FILE_RECURSIVE);
    task_begin(t, OP_FILE_REMOVE, &request);
}

/* ---- ListDir --------------------------------------------------------------------------------- */

/* A listing. Entries are encoded as they come: as JSON objects, those of a large tree would fill
 * the memory. */
struct listing {
    struct task task;
    struct strbuf out;
    struct rpc_list list;
    size_t counted;
};

static void list_release(struct task *t)
{
    strbuf_done(&CONTAINER_OF(t, struct listing, task)->out);
}

static void list_event(struct call *call, uint8_t what, const void *p, size_t len)
{
    struct listing *l = call->owner;
    struct wire_reader r = wire_reader_of(p, len);
    json_t *entry;

    if (what != EVENT_ENTRY)
        return;
    entry = entry_read(&r);
    if (!entry) {
        service_nonsense(l->task.rpc);
        return;
    }
    rpc_list_add(&l->list, entry);
    json_decref(entry);
    bool fits = !l->out.truncated;
    for (; fits && l->out.len > l->counted; l->counted += BUDGET_STEP)
        fits = rpc_budget_take(l->task.rpc, BUDGET_STEP);
    if (!fits)
        rpc_fail(l->task.rpc, RPC_RESOURCE_EXHAUSTED,
                 "there are too many entries in %s: list a smaller depth", l->task.path);
}

static void list_done(struct task *t, const void *result UNUSED, size_t len UNUSED)
{
    struct listing *l = CONTAINER_OF(t, struct listing, task);
    struct strbuf out;

    rpc_list_end(&l->list);
    out = l->out; /* the answer outlives the task */
    strbuf_init(&l->out, 0);
    rpc_reply_encoded(t->rpc, &out);
}

static void list_failed(struct task *t, int status, const char *message)
{
    if (status == ENOENT)
        rpc_fail(t->rpc, RPC_NOT_FOUND, "path not found: %s", message);
    else if (status == ENOTDIR)
        rpc_fail(t->rpc, RPC_INVALID_ARGUMENT, "path is not a directory: %s", t->path);
    else if (status == ELOOP)
        rpc_fail(t->rpc, RPC_FAILED_PRECONDITION, "cyclic symlink, or too many of them: %s",
                 message);
    else
        service_fail(t->rpc, t->user, status, message);
}

static void list_dir(struct rpc_call *c, json_t *message)
{
    AUTO(strbuf_done) struct strbuf request = strbuf_upto(2 * OPS_PATH_MAX);
    struct listing *l = task_new(c, sizeof(*l));
    uint32_t depth = (uint32_t)jr_int(message, "depth");

    strbuf_init(&l->out, RPC_REPLY_MAX);
    rpc_list_begin(&l->list, &list_dir_response, c->codec, &l->out);
    l->task.release = list_release;
    l->task.done = list_done;
    l->task.failed = list_failed;
    l->task.call.on_event = list_event;
    if (!task_target(&l->task, jr_text(message, "path"), &request))
        return;
    wire_put_u32(&request, depth > 0 ? depth : 1);
    task_begin(&l->task, OP_FILE_LIST, &request);
}

/* ---- table ----------------------------------------------------------------------------------- */

static const struct rpc_method methods[] = {
    {"Stat", RPC_UNARY, &path_request, &entry_response, stat_path},
    {"ListDir", RPC_UNARY, &list_dir_request, &list_dir_response, list_dir},
    {"MakeDir", RPC_UNARY, &path_request, &entry_response, make_dir},
    {"Move", RPC_UNARY, &move_request, &entry_response, move},
    {"Remove", RPC_UNARY, &path_request, &empty_message, remove_path},
    {"WatchDir", RPC_SERVER_STREAM, &watch_request, &watch_response, watch_dir},
    {"CreateWatcher", RPC_UNARY, &watch_request, &watcher_id_message, watcher_create},
    {"GetWatcherEvents", RPC_UNARY, &watcher_id_message, &watcher_events, watcher_get_events},
    {"RemoveWatcher", RPC_UNARY, &watcher_id_message, &empty_message, watcher_remove},
};

const struct rpc_service filesystem_service = {.prefix = "/filesystem.Filesystem/",
                                               .methods = methods,
                                               .n = ARRAY_SIZE(methods),
                                               .release = service_release};
