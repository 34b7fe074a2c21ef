/* OP_FILE_LIST. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "inside/agent/entry.h"
#include "inside/agent/serve.h"
#include "inside/agent/walk.h"
#include "inside/stage/confine.h"

#define ENTRIES_MAX    100000
#define ENTRIES_A_TURN 256

struct lister {
    struct op op;
    struct loop_task task;
    const struct agent_user *as;
    struct walk walk;
    size_t sent;
    char path[OPS_PATH_MAX];
};

static void list_failed(struct lister *l, int r)
{
    struct sg_error e = {0};

    if (r == -E2BIG)
        err_set(&e, SG_ERR_LIMIT, r, "'%.300s' holds more than %d entries: list a smaller depth",
                l->path, ENTRIES_MAX);
    else if (r == -ENAMETOOLONG)
        err_set(&e, SG_ERR_LIMIT, r,
                "the tree below '%.300s' is deeper than a path can name: list a smaller depth",
                l->path);
    else
        path_error(&e, r, "list", l->path);
    op_fail(&l->op, &e);
}

static int send_entry(struct lister *l, const struct walk_entry *entry)
{
    char path[OPS_PATH_MAX];
    struct strbuf out;
    const char *slash = strcmp(l->path, "/") == 0 ? "" : "/";

    if (l->sent == ENTRIES_MAX)
        return -E2BIG;
    int n = snprintf(path, sizeof(path), "%s%s%s", l->path, slash, entry->path);
    if (n < 0 || (size_t)n >= sizeof(path))
        return -ENAMETOOLONG;
    strbuf_init(&out, ENTRY_MAX);
    int r = entry_put(&out, entry->dirfd, entry->name, path);
    if (r == 0) {
        chan_event(l->op.agent->chan, l->op.stream, EVENT_ENTRY, out.buf, out.len);
        l->sent++;
    }
    strbuf_done(&out);
    return r == -ENOENT || r == -EACCES ? 0 : r; /* gone meanwhile, or the user may not see it */
}

/* 1: more to do, 0: the end. */
static int list_some(struct lister *l)
{
    struct walk_entry entry;

    for (unsigned i = 0; i < ENTRIES_A_TURN && op_may_send(&l->op); i++) {
        int r = walk_next(&l->walk, &entry);
        if (r <= 0)
            return r;
        if (r == 1)
            r = send_entry(l, &entry);
        if (r < 0)
            return r;
    }
    return 1;
}

static void list_turn(struct loop_task *task)
{
    struct lister *l = CONTAINER_OF(task, struct lister, task);
    int r = confine_fs_begin(l->as);

    if (r == 0) {
        r = list_some(l);
        confine_fs_end();
    }
    if (r < 0)
        list_failed(l, r);
    else if (r == 0)
        op_end(&l->op, NULL);
    else if (op_may_send(&l->op))
        loop_task_queue(&l->op.agent->loop, task);
}

static void list_resume(struct op *op)
{
    loop_task_queue(&op->agent->loop, &CONTAINER_OF(op, struct lister, op)->task);
}

static void list_destroy(struct op *op)
{
    struct lister *l = CONTAINER_OF(op, struct lister, op);

    loop_task_cancel(&l->task);
    walk_done(&l->walk);
}

static const struct op_ops list_ops = {.resume = list_resume, .destroy = list_destroy};

static int list_open(struct lister *l, uint32_t depth)
{
    int fd = -1, r = confine_fs_begin(l->as);

    l->walk.top = l->walk.dir = -1;
    if (r < 0)
        return r;
    r = path_open_dir(l->path, false, &fd);
    if (r == 0)
        r = walk_init(&l->walk, fd, depth, false);
    confine_fs_end();
    return r;
}

int file_list_start(struct agent *a, struct chan_stream *s, struct wire_reader *r,
                    struct sg_error *e)
{
    const struct agent_user *as;
    char path[OPS_PATH_MAX];
    int res = request_target(r, &as, path, e);

    if (res < 0)
        return res;
    uint32_t depth = wire_get_u32(r);
    res = request_done(r, e);
    if (res == 0 && depth == 0)
        res = err_set(e, SG_ERR_INVALID, -EINVAL, "a list has a depth of at least 1");
    if (res < 0)
        return res;
    path_trim(path);

    struct lister *l = op_new(a, s, &list_ops, sizeof(*l));
    l->task.fn = list_turn;
    l->as = as;
    memcpy(l->path, path, sizeof(path));
    res = list_open(l, depth);
    if (res < 0)
        list_failed(l, res);
    else
        list_turn(&l->task);
    return 0;
}
