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
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(ENTRY_MAX);
    char path[OPS_PATH_MAX];

    if (l->sent == ENTRIES_MAX)
        return -E2BIG;
    if (path_join(path, l->path, entry->path) < 0)
        return -ENAMETOOLONG;
    int r = entry_put(&out, entry->dirfd, entry->name, path);
    if (r == 0) {
        chan_event(l->op.agent->chan, l->op.stream, EVENT_ENTRY, out.buf, out.len);
        l->sent++;
    }
    return r == -ENOENT || r == -EACCES ? 0 : r; /* gone meanwhile, or the user may not see it */
}

/* 1: more to do, 0: the end. */
static int list_some(struct lister *l)
{
    AUTO(confine_fs_leave) int entered = confine_fs_begin(l->op.as);
    struct walk_entry entry;

    if (entered < 0)
        return entered;
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

static void list_turn(struct op *op)
{
    struct lister *l = CONTAINER_OF(op, struct lister, op);
    int r = list_some(l);

    if (r < 0)
        list_failed(l, r);
    else if (r == 0)
        op_end(op, NULL);
    else if (op_may_send(op))
        op_again(op);
}

static void list_destroy(struct op *op)
{
    walk_done(&CONTAINER_OF(op, struct lister, op)->walk);
}

static const struct op_ops list_ops = {
    .resume = op_again, .turn = list_turn, .destroy = list_destroy};

static int list_open(struct lister *l, uint32_t depth)
{
    AUTO(confine_fs_leave) int entered = confine_fs_begin(l->op.as);
    int fd = -1, r;

    l->walk.top = l->walk.dir = -1;
    if (entered < 0)
        return entered;
    r = path_open_dir(l->path, false, &fd);
    return r < 0 ? r : walk_init(&l->walk, fd, depth, false);
}

int file_list_start(struct request *q)
{
    uint32_t depth = wire_get_u32(q->r);
    int res = request_done(q);

    if (res == 0 && depth == 0)
        res = err_set(q->e, SG_ERR_INVALID, -EINVAL, "a list has a depth of at least 1");
    if (res < 0)
        return res;
    struct lister *l = op_new(q, &list_ops, sizeof(*l));
    memcpy(l->path, q->path, sizeof(l->path));
    path_trim(l->path);
    res = list_open(l, depth);
    if (res < 0)
        list_failed(l, res);
    else
        list_turn(&l->op);
    return 0;
}
