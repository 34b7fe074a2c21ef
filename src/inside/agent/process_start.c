/* OP_PROCESS_START: from the request to a forked child. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "inside/agent/environ.h"
#include "inside/agent/launch.h"
#include "inside/agent/path.h"
#include "inside/agent/proc.h"
#include "inside/stage/confine.h"

/* Both ends of the pipes or the terminal between the agent and the program. */
struct stdio_fds {
    int inside[3];
    int in, out, err; /* the agent's ends */
};

static void stdio_fds_done(struct stdio_fds *f)
{
    for (int i = 0; i < 3; i++)
        if (f->inside[i] > 2)
            close(f->inside[i]);
    close_p(&f->in);
    close_p(&f->out);
    close_p(&f->err);
}

static int make_pipes(uint32_t flags, struct stdio_fds *f)
{
    int r = 0;

    if (flags & PROC_STDIN)
        r = launch_pipe(&f->inside[0], &f->in, true);
    if (r == 0)
        r = launch_pipe(&f->out, &f->inside[1], false);
    if (r == 0)
        r = launch_pipe(&f->err, &f->inside[2], false);
    return r;
}

static int make_tty(const struct agent_user *as, uint32_t rows, uint32_t cols, struct stdio_fds *f)
{
    int slave, r = pty_open(as, rows, cols, &f->out, &slave);

    if (r < 0)
        return r;
    f->inside[0] = slave;
    f->inside[1] = fcntl(slave, F_DUPFD_CLOEXEC, 3);
    f->inside[2] = fcntl(slave, F_DUPFD_CLOEXEC, 3);
    f->in = fcntl(f->out, F_DUPFD_CLOEXEC, 3);
    return f->inside[1] < 0 || f->inside[2] < 0 || f->in < 0 ? -errno : 0;
}

struct start_request {
    const struct agent_user *as;
    char cwd[OPS_PATH_MAX];
    uint32_t flags, rows, cols;
    uint64_t timeout_ms;
    const char *tag, *note;
    struct strings args, env;
};

static void start_request_done(struct start_request *q)
{
    strings_done(&q->args);
    strings_done(&q->env);
}

static int read_request(struct wire_reader *r, uint32_t cpus, struct start_request *q,
                        struct sg_error *e)
{
    int res = request_target(r, &q->as, q->cwd, e);

    if (res < 0)
        return res;
    q->flags = wire_get_u32(r);
    q->rows = wire_get_u32(r);
    q->cols = wire_get_u32(r);
    q->timeout_ms = wire_get_u64(r);
    q->tag = wire_get_str(r, OPS_TAG_MAX);
    q->note = wire_get_str(r, OPS_NOTE_MAX);
    if (r->bad)
        return err_set(e, SG_ERR_INVALID, -EINVAL,
                       "the request is malformed, its tag is over %d bytes or its note over %u",
                       OPS_TAG_MAX, OPS_NOTE_MAX);
    res = environ_read_args(r, &q->args, e);
    if (res == 0)
        res = environ_read_variables(r, &q->env, e);
    if (res == 0)
        res = environ_add_defaults(&q->env, q->as, q->cwd, (q->flags & PROC_PTY) != 0, cpus, e);
    return res < 0 ? res : request_done(r, e);
}

/* Opens the working directory and the pipes, which depend on the user's permissions. */
static int prepare_as_user(const struct start_request *q, struct stdio_fds *f, int *ret_cwd,
                           struct sg_error *e)
{
    int res = confine_fs_begin(q->as);

    if (res < 0)
        return err_set(e, SG_ERR_INTERNAL, res, "become user '%s': %s", q->as->name,
                       strerror(-res));
    int cwd = path_open(AT_FDCWD, q->cwd, O_PATH | O_DIRECTORY, 0);
    if (cwd >= 0 && !(q->flags & PROC_PTY))
        res = make_pipes(q->flags, f);
    confine_fs_end();
    if (cwd < 0)
        return path_error(e, cwd, "use as working directory", q->cwd);
    *ret_cwd = cwd;
    if (res == 0 && (q->flags & PROC_PTY))
        res = make_tty(q->as, q->rows, q->cols, f);
    return res < 0 ? err_set(e, err_kind_of(-res), res,
                             "connect the program's input and output: %s", strerror(-res))
                   : 0;
}

static void join_command(const struct strings *args, char ret[COMMAND_MAX])
{
    size_t len = 0;

    for (size_t i = 0; i < args->n && len + 1 < COMMAND_MAX; i++)
        len += (size_t)snprintf(ret + len, COMMAND_MAX - len, "%s%s", i ? " " : "", args->v[i]);
}

int process_start(struct agent *a, struct chan_stream *s, struct wire_reader *r, struct sg_error *e)
{
    AUTO(start_request_done) struct start_request q = {0};
    AUTO(stdio_fds_done) struct stdio_fds f = {.in = -1, .out = -1, .err = -1};
    AUTO(close_p) int cwd = -1;
    struct proc_start start = {0};
    char command[COMMAND_MAX] = "";
    int res = read_request(r, a->config->cpus, &q, e);

    if (res == 0)
        res = procs_admit(a, q.note, e);
    if (res == 0)
        res = prepare_as_user(&q, &f, &cwd, e);
    if (res < 0)
        return res;
    struct launch l = {.as = q.as,
                       .program = q.args.v[0],
                       .argv = q.args.v,
                       .envp = q.env.v,
                       .cwd_fd = cwd,
                       .cwd = q.cwd,
                       .stdio = {f.inside[0], f.inside[1], f.inside[2]},
                       .control = -1,
                       .tty = (q.flags & PROC_PTY) != 0};
    res = launch_start(&l, a->config, &start.pid, &start.report_fd, e);
    if (res < 0)
        return res;
    join_command(&q.args, command);
    start.as = q.as;
    start.in = steal_fd(&f.in);
    start.out = steal_fd(&f.out);
    start.err = steal_fd(&f.err);
    start.tty = l.tty;
    start.detach = (q.flags & PROC_DETACH) != 0;
    start.timeout_ms = q.timeout_ms;
    start.tag = q.tag;
    start.note = q.note;
    start.command = command;
    proc_new(a, s, &start);
    return 0;
}
