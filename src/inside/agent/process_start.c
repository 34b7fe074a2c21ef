/* OP_PROCESS_START: from the request to a forked child. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/fault.h"
#include "inside/agent/environ.h"
#include "inside/agent/launch.h"
#include "inside/agent/own_ports.h"
#include "inside/agent/path.h"
#include "inside/agent/proc.h"
#include "inside/stage/confine.h"
#include "inside/stage/stage.h"

/* A process in the making. The agent's ends of its pipes or terminal are in `proc`. */
struct start {
    uint32_t flags, rows, cols;
    struct strings args, env;
    int cwd, inside[3]; /* inside: 0 is the agent's own /dev/null */
    struct proc_start proc;
};

static void start_done(struct start *s)
{
    strings_done(&s->args);
    strings_done(&s->env);
    close_p(&s->cwd);
    for (int i = 0; i < 3; i++)
        if (s->inside[i] > 2)
            close(s->inside[i]);
    close_p(&s->proc.in);
    close_p(&s->proc.out);
    close_p(&s->proc.err);
}

static int make_pipes(struct start *s)
{
    int r = 0;

    if (s->flags & PROC_STDIN)
        r = launch_pipe(&s->inside[0], &s->proc.in, true);
    if (r == 0)
        r = launch_pipe(&s->proc.out, &s->inside[1], false);
    if (r == 0)
        r = launch_pipe(&s->proc.err, &s->inside[2], false);
    return r;
}

static int make_tty(const struct agent_user *as, struct start *s)
{
    int slave, r = pty_open(as, s->rows, s->cols, &s->proc.out, &slave);

    if (r < 0)
        return r;
    s->inside[0] = slave;
    s->inside[1] = fcntl(slave, F_DUPFD_CLOEXEC, 3);
    s->inside[2] = fcntl(slave, F_DUPFD_CLOEXEC, 3);
    s->proc.in = fcntl(s->proc.out, F_DUPFD_CLOEXEC, 3);
    return s->inside[1] < 0 || s->inside[2] < 0 || s->proc.in < 0 ? -errno : 0;
}

static int read_request(struct request *q, struct start *s)
{
    struct wire_reader *r = q->r;
    int res;

    s->flags = wire_get_u32(r);
    s->rows = wire_get_u32(r);
    s->cols = wire_get_u32(r);
    s->proc.timeout_ms = wire_get_u64(r);
    s->proc.tag = wire_get_str(r, OPS_TAG_MAX);
    s->proc.note = wire_get_str(r, OPS_NOTE_MAX);
    if (r->bad)
        return err_set(q->e, SG_ERR_INVALID, -EINVAL,
                       "the request is malformed, its tag is over %d bytes or its note over %u",
                       OPS_TAG_MAX, OPS_NOTE_MAX);
    s->proc.tty = (s->flags & PROC_PTY) != 0;
    s->proc.detach = (s->flags & PROC_DETACH) != 0;
    res = environ_read_args(r, &s->args, q->e);
    if (res == 0)
        res = environ_read_variables(r, &s->env, q->e);
    if (res == 0)
        res = environ_add_defaults(&s->env, q->as, q->path, s->proc.tty, q->agent->config->cpus,
                                   q->e);
    return res < 0 ? res : request_done(q);
}

/* Opens the working directory and the pipes, which depend on the user's permissions. */
static int prepare_as_user(const struct request *q, struct start *s)
{
    int res = confine_fs_begin(q->as);

    if (res < 0)
        return err_internal(q->e, res, "become user '%s'", q->as->name);
    s->cwd = path_open(AT_FDCWD, q->path, O_PATH | O_DIRECTORY, 0);
    if (s->cwd >= 0 && !s->proc.tty)
        res = make_pipes(s);
    confine_fs_end();
    if (s->cwd < 0)
        return path_error(q->e, s->cwd, "use as working directory", q->path);
    if (res == 0 && s->proc.tty)
        res = make_tty(q->as, s);
    return res < 0 ? err_code(q->e, res, "connect the program's input and output") : 0;
}

static void join_command(const struct strings *args, char ret[COMMAND_MAX])
{
    size_t len = 0;

    for (size_t i = 0; i < args->n && len + 1 < COMMAND_MAX; i++)
        len += (size_t)snprintf(ret + len, COMMAND_MAX - len, "%s%s", i ? " " : "", args->v[i]);
}

int process_start(struct request *q)
{
    AUTO(start_done) struct start s = {.cwd = -1, .proc = {.in = -1, .out = -1, .err = -1}};
    int res = read_request(q, &s);

    if (res == 0)
        res = procs_admit(q->agent, s.proc.note, q->e);
    if (res == 0 && q->as->uid == 0)
        res = root_uncover(q->e); /* first, or the working directory may be one of the cover */
    if (res == 0)
        res = prepare_as_user(q, &s);
    if (res < 0)
        return res;
    own_ports_open(q->agent);
    struct launch l = {.as = q->as,
                       .program = s.args.v[0],
                       .argv = s.args.v,
                       .envp = s.env.v,
                       .cwd_fd = s.cwd,
                       .cwd = q->path,
                       .stdio = {s.inside[0], s.inside[1], s.inside[2]},
                       .control = -1,
                       .tty = s.proc.tty};
    s.proc.memory = memory_look(q->agent);
    res = launch_start(&l, q->agent->config, &s.proc.pid, &s.proc.report_fd, q->e);
    if (res < 0)
        return res;
    join_command(&s.args, s.proc.command);
    proc_new(q, &s.proc);
    s.proc.in = s.proc.out = s.proc.err = -1;
    return 0;
}
