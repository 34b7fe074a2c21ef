/* OP_FILE_MOVE: a rename, or for a file on another mount a copy that then replaces the original. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/path.h"
#include "agent/serve.h"
#include "agent/staged.h"
#include "warden/stage/confine.h"

#define PIECES_A_TURN 16

struct mover {
    struct op op;
    struct loop_task task;
    const struct agent_user *as;
    int from_dir, from;
    char name[NAME_MAX + 1];
    struct staged staged;
};

static int move_failed(struct sg_error *e, int r, const char *from, const char *to)
{
    const char *why = strerror(-r);

    if (r == -EXDEV)
        why = "they are on different file systems, which only files can be moved between";
    else if (r == -EINVAL)
        why = "a directory cannot be moved into itself, and '/' cannot be moved";
    else if (r == -ENOSPC)
        why = "the sandbox's disk is full";
    return err_set(e, err_kind_of(-r), r, "cannot move '%.150s' to '%.150s': %s", from, to, why);
}

/* 1: more to copy, 0: moved. */
static int copy_some(struct mover *m)
{
    for (unsigned i = 0; i < PIECES_A_TURN; i++) {
        ssize_t n = read(m->from, agent_scratch, sizeof(agent_scratch));
        int r = n < 0 ? -errno : 0;

        if (n > 0)
            r = staged_write(&m->staged, agent_scratch, (size_t)n);
        if (r < 0)
            return r;
        if (n == 0) {
            r = staged_commit(&m->staged);
            if (r == 0 && unlinkat(m->from_dir, m->name, 0) < 0)
                r = -errno;
            return r;
        }
    }
    return 1;
}

static void copy_turn(struct loop_task *task)
{
    struct mover *m = CONTAINER_OF(task, struct mover, task);
    struct sg_error e = {0};
    int r = confine_fs_begin(m->as);

    if (r == 0) {
        r = copy_some(m);
        confine_fs_end();
    }
    if (r < 0) {
        move_failed(&e, r, m->name, m->staged.name);
        op_fail(&m->op, &e);
    } else if (r == 0) {
        op_end(&m->op, NULL);
    } else {
        loop_task_queue(&m->op.agent->loop, task);
    }
}

static void move_destroy(struct op *op)
{
    struct mover *m = CONTAINER_OF(op, struct mover, op);

    loop_task_cancel(&m->task);
    close_p(&m->from);
    close_p(&m->from_dir);
    if (confine_fs_begin(m->as) == 0) {
        staged_abort(&m->staged);
        confine_fs_end();
    }
}

static const struct op_ops move_ops = {.destroy = move_destroy};

/* 1: renamed, 0: *m is ready to copy. */
static int move_open(struct mover *m, const char *from, const char *to)
{
    AUTO(close_p) int to_dir = -1;
    char to_name[NAME_MAX + 1];
    struct stat st;
    int r = path_open_parent(from, false, &m->from_dir, m->name);

    if (r == 0)
        r = path_open_parent(to, false, &to_dir, to_name);
    if (r < 0)
        return r;
    if (renameat(m->from_dir, m->name, to_dir, to_name) == 0)
        return 1;
    if (errno != EXDEV)
        return -errno;

    if (fstatat(m->from_dir, m->name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
        return -EXDEV;
    /* before the copy: could the original go? */
    r = path_check_writable(m->from_dir, ".");
    if (r < 0)
        return r;
    m->from = path_open(m->from_dir, m->name, O_RDONLY | O_NOFOLLOW, 0);
    if (m->from < 0)
        return m->from;
    if (fstat(m->from, &st) < 0 || !S_ISREG(st.st_mode))
        return -EXDEV;
    return staged_open(&m->staged, m->as, to, st.st_mode, false);
}

int file_move_start(struct agent *a, struct chan_stream *s, struct wire_reader *r,
                    struct sg_error *e)
{
    char from[OPS_PATH_MAX], to[OPS_PATH_MAX];
    const struct agent_user *as;
    int res = request_target(r, &as, from, e);

    if (res == 0)
        res = request_path(r, as, to, e);
    if (res == 0)
        res = request_done(r, e);
    if (res < 0)
        return res;

    struct mover *m = op_new(a, s, &move_ops, sizeof(*m));
    m->task.fn = copy_turn;
    m->as = as;
    m->from_dir = m->from = m->staged.fd = m->staged.dirfd = -1;
    res = confine_fs_begin(as);
    if (res == 0) {
        res = move_open(m, from, to);
        confine_fs_end();
    }
    if (res < 0) {
        move_failed(e, res, from, to);
        op_fail(&m->op, e);
    } else if (res == 1) {
        op_end(&m->op, NULL);
    } else {
        copy_turn(&m->task);
    }
    return 0;
}
