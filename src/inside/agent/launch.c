#include "inside/agent/launch.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include "lib/base/fd.h"
#include "lib/base/sys.h"
#include "inside/stage/confine.h"
#include "inside/stage/stage.h"

/* The child's descriptors: first those of the program, then ours, which exec closes. */
enum { CONTROL_FD = 3, REPORT_FD, CWD_FD, CHILD_FDS };

int launch_pipe(int *ret_read, int *ret_write, bool ours_is_write)
{
    int p[2];

    if (pipe2(p, O_CLOEXEC) < 0)
        return -errno;
    *ret_read = p[0];
    *ret_write = p[1];
    return fd_set_nonblock(p[ours_is_write], true);
}

/* Puts these descriptors in place and closes all others, so that nothing the agent holds is left in
 * a process that becomes another user. */
static int place_fds(const struct launch *l, int report_fd)
{
    int from[CHILD_FDS] = {l->stdio[0], l->stdio[1], l->stdio[2], l->control, report_fd, l->cwd_fd};

    for (int i = 0; i < CHILD_FDS; i++) {
        if (i == CONTROL_FD && l->control < 0)
            continue;
        if (from[i] < CHILD_FDS)
            from[i] = fcntl(from[i], F_DUPFD_CLOEXEC, CHILD_FDS);
        if (from[i] < 0)
            return -errno;
    }
    for (int i = 0; i < CHILD_FDS; i++)
        if (from[i] < 0)
            close(i);
        else if (dup3(from[i], i, i < REPORT_FD ? 0 : O_CLOEXEC) < 0)
            return -errno;
    return sys_close_range(CHILD_FDS, ~0U, 0) < 0 ? -errno : 0;
}

static const char *env_path(const char *const *envp)
{
    for (; *envp; envp++)
        if (strncmp(*envp, "PATH=", 5) == 0)
            return *envp + 5;
    return LAUNCH_PATH;
}

static int try_exec(const char *path, const struct launch *l)
{
    execve(path, (char *const *)(uintptr_t)l->argv, (char *const *)(uintptr_t)l->envp);
    return -errno;
}

/* Like execvp, but searches the PATH of the new program. Returns on failure only. */
static int exec_in_path(const struct launch *l)
{
    int worst = -ENOENT;
    const char *end;

    for (const char *dir = env_path(l->envp);; dir = end + 1) {
        char path[PATH_MAX];

        end = strchrnul(dir, ':');
        int n = snprintf(path, sizeof(path), "%.*s%s%s", (int)(end - dir), dir,
                         end > dir ? "/" : "", l->program);
        if (n > 0 && (size_t)n < sizeof(path)) {
            int r = try_exec(path, l);
            if (r == -EACCES)
                worst = r;
            else if (r != -ENOENT && r != -ENOTDIR)
                return r;
        }
        if (!*end)
            return worst;
    }
}

static int explain(const struct launch *l, int r, struct sg_error *e)
{
    bool bare = !strchr(l->program, '/');
    const char *why = strerror(-r);

    if (r == -ENOENT)
        why = bare ? "not found in PATH inside the sandbox"
                   : "no such file inside the sandbox, or its interpreter is missing";
    else if (r == -EACCES)
        why = "permission denied: is it an executable file, and readable for this user?";
    else if (r == -ENOEXEC)
        why = "not a program: a script needs a first line such as '#!/bin/sh'";
    else if (r == -E2BIG)
        why = "arguments and environment are too long";
    else if (r == -EAGAIN)
        why = "too many processes: raise the pids limit";
    else if (r == -ENOMEM)
        why = "out of memory: raise the memory limit";
    return err_set(e, err_kind_of(-r), r, LAUNCH_CANNOT_RUN "%.200s': %s", l->program, why);
}

/* Runs in the child, with its descriptors in place. Returns on failure only. */
static int become_program(const struct launch *l, const struct agent_config *config,
                          struct sg_error *e)
{
    sigset_t none;
    int r;

    if (setsid() < 0)
        return err_errno(e, "start a session");
    if (l->tty && ioctl(0, TIOCSCTTY, 0) < 0)
        return err_errno(e, "take the terminal");
    umask(022);
    r = confine_process(l->as, config, e);
    if (r < 0)
        return r;
    if (fchdir(CWD_FD) < 0 && !(l->cwd_optional && chdir("/") == 0))
        return err_errno(e, "cannot use '%.200s' as working directory of user '%s'", l->cwd,
                         l->as->name);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    r = strchr(l->program, '/') ? try_exec(l->program, l) : exec_in_path(l);
    return explain(l, r, e);
}

static uint64_t n_started;

uint64_t launch_count(void)
{
    return n_started;
}

void launch_counts(void)
{
    n_started++;
}

int launch_start(const struct launch *l, const struct agent_config *config, pid_t *ret_pid,
                 int *ret_report_fd, struct sg_error *e)
{
    int p[2], r = l->as->uid == 0 ? root_uncover(e) : 0;

    if (r < 0)
        return r;
    if (pipe2(p, O_CLOEXEC | O_NONBLOCK) < 0)
        return err_errno(e, "make a pipe");
    /* Not vfork: another process of the user may stop the child before exec, and the agent would
     * wait. */
    launch_counts();
    pid_t pid = fork();
    if (pid == 0) {
        struct sg_error why = {0};

        if (place_fds(l, p[1]) < 0)
            _exit(126);
        become_program(l, config, &why);
        fd_write_all(REPORT_FD, &why, sizeof(why));
        _exit(127);
    }
    r = pid < 0 ? explain(l, -errno, e) : 0;
    close(p[1]);
    if (r < 0) {
        close(p[0]);
        return r;
    }
    *ret_pid = pid;
    *ret_report_fd = p[0];
    return 0;
}

int launch_result(int report_fd, struct sg_error *e)
{
    struct sg_error why;
    ssize_t n = read(report_fd, &why, sizeof(why));

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n != (ssize_t)sizeof(why))
        return 1;
    *e = why;
    return why.code < 0 ? why.code : err_set(e, SG_ERR_INTERNAL, -EIO, "the start failed");
}
