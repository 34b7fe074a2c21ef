/* One kernel as a process: started here or taken from the warden, signalled, and let go. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "inside/agent/environ.h"
#include "inside/agent/kernels.h"
#include "inside/agent/launch.h"
#include "inside/agent/path.h"
#include "lib/base/fd.h"
#include "inside/stage/confine.h"

static void free_kernel(struct loop_trash *trash)
{
    free(CONTAINER_OF(trash, struct kernel, trash));
}

static void on_exit_status(struct child *child, int status, const struct rusage *usage UNUSED)
{
    struct kernel *k = CONTAINER_OF(child, struct kernel, child);

    k->dead = true;
    k->status = status;
    kernel_pump(k);
}

static void on_pidfd(struct loop_source *src, uint32_t events UNUSED)
{
    struct kernel *k = CONTAINER_OF(src, struct kernel, pidfd_src);

    loop_unwatch(&k->agent->loop, src);
    k->dead = true;
    kernel_pump(k);
}

static struct kernel *kernel_new(struct agent *a, pid_t pid)
{
    struct kernel *k = xcalloc(1, sizeof(*k));

    k->agent = a;
    k->child = (struct child){.pid = pid, .on_exit = on_exit_status};
    k->report_fd = k->pidfd = -1;
    k->pidfd_src = (struct loop_source){.fd = -1, .fn = on_pidfd};
    k->trash.fn = free_kernel;
    kernel_io_init(k);
    return k;
}

/* A cold kernel counts as alive until the reaper has waited for it. */
static bool is_alive(const struct kernel *k)
{
    struct pollfd p = {.fd = k->pidfd, .events = POLLIN};

    if (k->dead)
        return false;
    return k->pidfd < 0 || poll(&p, 1, 0) == 0;
}

void kernel_free(struct kernel *k)
{
    if (k->over)
        return;
    k->over = true;
    if (is_alive(k))
        session_kill(k->child.pid);
    reaper_forget(&k->child);
    loop_unwatch(&k->agent->loop, &k->pidfd_src);
    close_p(&k->pidfd);
    close_p(&k->report_fd);
    kernel_io_close(k);
    loop_throw_away(&k->agent->loop, &k->trash);
}

void kernel_interrupt(struct kernel *k)
{
    /* a child that has not called setsid yet has no group */
    if (is_alive(k) && kill(-k->child.pid, SIGINT) < 0)
        kill(k->child.pid, SIGINT);
}

void kernel_kill_process(struct kernel *k)
{
    if (is_alive(k))
        kill(k->child.pid, SIGKILL);
}

uint32_t kernel_exit_code(const struct kernel *k)
{
    if (k->pidfd >= 0)
        return KERNEL_CODE_UNKNOWN;
    return (uint32_t)(WIFSIGNALED(k->status) ? 128 + WTERMSIG(k->status) : WEXITSTATUS(k->status));
}

/* ---- cold ------------------------------------------------------------------------------------ */

/* The ends of a kernel's pipes and socket, and its directory. */
enum { INSIDE_OUT, INSIDE_ERR, INSIDE_CONTROL, CWD, OUR_OUT, OUR_ERR, OUR_CONTROL, ENDS };
struct ends {
    int fd[ENDS];
};

static void ends_done(struct ends *f)
{
    for (int i = 0; i < ENDS; i++)
        close_p(&f->fd[i]);
}

/* Opens the directory, and makes it if it is missing. If that is not possible, opens the home. */
static int open_cwd(const struct agent_user *as, const char *path, int *ret)
{
    int r = path_open_dir(path, true, ret);

    if (r < 0)
        r = path_open_dir(as->home, false, ret);
    return r < 0 ? path_open_dir("/", false, ret) : r;
}

static int make_ends(const struct agent_user *as, const char *cwd, struct ends *f)
{
    int pair[2], r = confine_fs_begin(as);

    if (r < 0)
        return r;
    r = open_cwd(as, cwd, &f->fd[CWD]);
    if (r == 0)
        r = launch_pipe(&f->fd[OUR_OUT], &f->fd[INSIDE_OUT], false);
    if (r == 0)
        r = launch_pipe(&f->fd[OUR_ERR], &f->fd[INSIDE_ERR], false);
    confine_fs_end();
    if (r < 0)
        return r;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return -errno;
    f->fd[OUR_CONTROL] = pair[0];
    f->fd[INSIDE_CONTROL] = pair[1];
    return fd_set_nonblock(pair[0], true);
}

/* Includes the defaults, as for any program that the host starts. */
static int read_env(const struct context *c, struct strings *ret, struct sg_error *e)
{
    struct wire_reader r = wire_reader_of(c->env.buf, c->env.len);
    int res = environ_read_variables(&r, ret, e);

    if (res == 0)
        res = environ_add_defaults(ret, agent_user_find("user"), c->cwd, false,
                                   c->agent->config->cpus, e);
    return res;
}

struct command {
    const char *argv[4];
    char path[OPS_PATH_MAX];
};

static void make_command(const struct context *c, struct command *ret)
{
    static const struct {
        const char *interpreter, *file;
    } programs[] = {[PROGRAM_PYTHON] = {"/usr/bin/python3", "python"},
                    [PROGRAM_BRIDGE] = {"/usr/bin/python3", "bridge"},
                    [PROGRAM_NODE] = {"/usr/bin/node", "javascript/main.mjs"}};
    enum kernel_program program = c->language.program;
    const char *dir = c->agent->config->kernels;

    snprintf(ret->path, sizeof(ret->path), "%s/%s", dir ? dir : KERNELS_DIR,
             programs[program].file);
    ret->argv[0] = programs[program].interpreter;
    ret->argv[1] = ret->path;
    ret->argv[2] = program == PROGRAM_PYTHON ? NULL : c->language.name;
    ret->argv[3] = NULL;
}

static struct kernel *take_launched(struct context *c, pid_t pid, int report_fd, struct ends *f)
{
    struct kernel *k = kernel_new(c->agent, pid);

    k->report_fd = report_fd;
    k->control = steal_fd(&f->fd[OUR_CONTROL]);
    k->out[0].fd = steal_fd(&f->fd[OUR_OUT]);
    k->out[1].fd = steal_fd(&f->fd[OUR_ERR]);
    reaper_add(&c->agent->reaper, &k->child);
    kernel_io_watch(k);
    return k;
}

struct kernel *kernel_launch(struct context *c, struct sg_error *e)
{
    const struct agent_user *as = agent_user_find("user");
    AUTO(strings_done) struct strings env = {0};
    AUTO(ends_done) struct ends f = {{-1, -1, -1, -1, -1, -1, -1}};
    struct command command;
    pid_t pid;
    int report, r = read_env(c, &env, e);

    if (r < 0)
        return NULL;
    r = make_ends(as, c->cwd, &f);
    if (r < 0) {
        err_code(e, r, "connect the kernel");
        return NULL;
    }
    make_command(c, &command);
    struct launch l = {.as = as,
                       .program = command.argv[0],
                       .argv = command.argv,
                       .envp = env.v,
                       .cwd_fd = f.fd[CWD],
                       .cwd = c->cwd,
                       .cwd_optional = true,
                       .stdio = {0, f.fd[INSIDE_OUT], f.fd[INSIDE_ERR]},
                       .control = f.fd[INSIDE_CONTROL]};
    r = launch_start(&l, c->agent->config, &pid, &report, e);
    return r < 0 ? NULL : take_launched(c, pid, report, &f);
}

/* ---- twins ----------------------------------------------------------------------------------- */

struct kernel *kernel_from_twin(struct agent *a, pid_t pid, pid_t was, const int fds[LINE_FDS_MAX])
{
    struct kernel *k = kernel_new(a, pid);
    int r = 0;

    k->was = was;
    k->control = fds[0];
    k->out[0].fd = fds[1];
    k->out[1].fd = fds[2];
    k->pidfd = fds[3];
    for (int i = 0; r == 0 && i < 3; i++)
        r = fd_set_nonblock(fds[i], true);
    if (r < 0) {
        kernel_free(k);
        return NULL;
    }
    kernel_io_watch(k);
    loop_watch(&a->loop, &k->pidfd_src, k->pidfd, EPOLLIN);
    return k;
}

static void send_env(struct kernel *k, const struct strings *env, bool defaults_too)
{
    const char *own = env->own.buf, *end = own + env->own.len;

    for (size_t i = 0; i < env->n; i++)
        if (defaults_too || env->v[i] < own || env->v[i] >= end)
            kernel_queue(k, 'G', env->v[i]);
}

int kernel_settle(struct kernel *k, struct sg_error *e)
{
    static const char nothing[sizeof(uint32_t)] = {0}; /* a list of no variables */
    const struct agent_user *as = agent_user_find("user");
    AUTO(strings_done) struct strings env = {0};
    struct wire_reader r = wire_reader_of(nothing, sizeof(nothing));
    int res = environ_read_variables(&r, &env, e);
    if (res == 0)
        res = environ_add_defaults(&env, as, as->home, false, k->agent->config->cpus, e);
    if (res < 0)
        return res;
    send_env(k, &env, true);
    kernel_queue(k, 'D', as->home);
    kernel_queue(k, 'W', "");
    k->settled = true;
    return 0;
}

int kernel_furnish(struct kernel *k, const struct context *c, struct sg_error *e)
{
    AUTO(strings_done) struct strings env = {0};
    bool at_home = k->settled && strcmp(c->cwd, agent_user_find("user")->home) == 0;
    int r = read_env(c, &env, e);

    if (r < 0)
        return r;
    send_env(k, &env, !at_home);
    if (!at_home)
        kernel_queue(k, 'D', c->cwd);
    return 0;
}
