/* OP_FILE_MOVE: a rename where the kernel can do it. The kernel cannot rename between mounts, nor a
 * directory that comes from a lower layer of the root. Then the agent copies a file itself, and has
 * anything else moved by the sandbox's own mv, run as the user. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "inside/agent/disk.h"
#include "inside/agent/entry.h"
#include "inside/agent/launch.h"
#include "inside/agent/meta.h"
#include "inside/agent/serve.h"
#include "inside/agent/staged.h"
#include "lib/base/fd.h"
#include "inside/stage/confine.h"

#define PIECES_A_TURN 16

struct mover {
    struct op op;
    bool parents;
    int from_dir;
    char name[NAME_MAX + 1];
    int from; /* of the file that is copied; -1: none */
    struct staged staged;
    struct child mv;
    int report_fd;
    char from_path[OPS_PATH_MAX], to_path[OPS_PATH_MAX];
};

static void move_failed(struct mover *m, int r)
{
    const char *why = strerror(-r);
    struct sg_error e = {0};

    if (r == -EXDEV)
        why = "moving it takes a copy, which failed: make room, and let the user read all of it";
    else if (r == -EINVAL)
        why = "a directory cannot be moved into itself, and '/' cannot be moved";
    else if (r == -ENOSPC || r == -EDQUOT)
        why = "the sandbox's disk is full";
    err_set(&e, err_kind_of(-r), r, "cannot move '%.150s' to '%.150s': %s", m->from_path,
            m->to_path, why);
    op_fail(&m->op, &e);
}

enum { MOVED, COPYING, NEEDS_MV };

/* Copies a regular file. */
static int begin_copy(struct mover *m)
{
    struct stat st;
    int r = path_check_writable(m->from_dir, "."); /* could the original be removed? */

    if (r < 0)
        return r;
    m->from = path_open(m->from_dir, m->name, O_RDONLY | O_NOFOLLOW, 0);
    if (m->from < 0)
        return m->from;
    if (fstat(m->from, &st) < 0 || !S_ISREG(st.st_mode))
        return -EXDEV;
    r = staged_open(&m->staged, m->to_path, st.st_mode, false);
    if (r == 0)
        r = meta_copy(m->from, m->staged.fd);
    return r < 0 ? r : COPYING;
}

static int move_begin(struct mover *m)
{
    AUTO(close_p) int to_dir = -1;
    char to_name[NAME_MAX + 1];
    struct stat st;
    int r = path_open_parent(m->from_path, false, &m->from_dir, m->name);

    /* makes no directory if there is nothing to move */
    if (r == 0 && fstatat(m->from_dir, m->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        r = -errno;
    if (r == 0)
        r = path_open_parent(m->to_path, m->parents, &to_dir, to_name);
    if (r < 0)
        return r;
    if (renameat(m->from_dir, m->name, to_dir, to_name) == 0)
        return MOVED;
    if (errno != EXDEV)
        return -errno;
    return S_ISREG(st.st_mode) ? begin_copy(m) : NEEDS_MV;
}

static int finish_copy(struct mover *m)
{
    AUTO(close_p) int fd = -1;
    int r = staged_commit(&m->staged, &fd);

    if (r == 0 && unlinkat(m->from_dir, m->name, 0) < 0)
        r = -errno;
    return r < 0 ? r : MOVED;
}

static int copy_some(struct mover *m)
{
    for (unsigned i = 0; i < PIECES_A_TURN; i++) {
        ssize_t n = read(m->from, agent_scratch, sizeof(agent_scratch));
        int r = n < 0 ? -errno : 0;

        if (n > 0)
            r = fd_write_all(m->staged.fd, agent_scratch, (size_t)n);
        if (r < 0)
            return r;
        if (n == 0)
            return finish_copy(m);
    }
    return COPYING;
}

/* Answers with the entry of the file in its new place. */
static void move_ended(struct mover *m, int r)
{
    AUTO(strbuf_done) struct strbuf entry = strbuf_upto(ENTRY_MAX);

    if (r == 0)
        r = entry_put_as(&entry, m->op.as, m->to_path);
    if (r < 0)
        move_failed(m, r);
    else
        op_end(&m->op, &entry);
}

static void on_mv_exit(struct child *child, int status, const struct rusage *usage UNUSED)
{
    struct mover *m = CONTAINER_OF(child, struct mover, mv);
    bool moved =
        launch_result(m->report_fd, NULL) == 1 && WIFEXITED(status) && WEXITSTATUS(status) == 0;

    move_ended(m, moved ? 0 : disk_look().full ? -ENOSPC : -EXDEV);
}

static void start_mv(struct mover *m)
{
    static const char *const env[] = {"PATH=" LAUNCH_PATH, "LC_ALL=C", NULL};
    const char *const argv[] = {"mv", "-fT", "--", m->from_path, m->to_path, NULL};
    AUTO(close_p) int cwd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    struct launch l = {.as = m->op.as->as_root ? agent_user_find("root") : m->op.as,
                       .program = argv[0],
                       .argv = argv,
                       .envp = env,
                       .cwd_fd = cwd,
                       .cwd = "/",
                       .stdio = {0, 1, 2},
                       .control = -1};
    int r =
        cwd < 0 ? -errno : launch_start(&l, m->op.agent->config, &m->mv.pid, &m->report_fd, NULL);

    if (r < 0)
        move_failed(m, r);
    else
        reaper_add(&m->op.agent->reaper, &m->mv);
}

static int move_some(struct mover *m)
{
    AUTO(confine_fs_leave) int entered = confine_fs_begin(m->op.as);

    return entered < 0 ? entered : m->from < 0 ? move_begin(m) : copy_some(m);
}

static void move_turn(struct op *op)
{
    struct mover *m = CONTAINER_OF(op, struct mover, op);
    int r = move_some(m);

    if (r == COPYING)
        op_again(op);
    else if (r == NEEDS_MV)
        start_mv(m);
    else
        move_ended(m, r);
}

static void move_destroy(struct op *op)
{
    struct mover *m = CONTAINER_OF(op, struct mover, op);

    if (list_linked(&m->mv.link))
        session_kill(m->mv.pid);
    reaper_forget(&m->mv);
    close_p(&m->report_fd);
    close_p(&m->from);
    close_p(&m->from_dir);
    staged_abort_as(&m->staged, op->as);
}

static const struct op_ops move_ops = {.turn = move_turn, .destroy = move_destroy, .writes = true};

int file_move_start(struct request *q)
{
    char to[OPS_PATH_MAX];
    int res = request_path(q->r, q->as, to, q->e);
    uint32_t flags = wire_get_u32(q->r);

    if (res == 0)
        res = request_done(q);
    if (res == 0)
        res = root_written(q->as, to, q->e);
    if (res < 0)
        return res;
    struct mover *m = op_new(q, &move_ops, sizeof(*m));
    m->parents = (flags & FILE_PARENTS) != 0;
    m->mv.on_exit = on_mv_exit;
    m->from_dir = m->from = m->report_fd = m->staged.fd = m->staged.dirfd = -1;
    memcpy(m->from_path, q->path, sizeof(m->from_path));
    memcpy(m->to_path, to, sizeof(to));
    path_trim(m->to_path);
    move_turn(&m->op);
    return 0;
}
