#include "front/main/worker.h"

#include <assert.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/wait.h>

#include "lib/base/fd.h"
#include "lib/base/sys.h"

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif

#define CANNOT_START 126

#define PROGRAMS_MAX 2

static struct {
    const char *name;
    int fd;
} given[PROGRAMS_MAX];

void worker_use_program(const char *name, int fd)
{
    size_t i = 0;

    while (i < PROGRAMS_MAX && given[i].name)
        i++;
    assert(i < PROGRAMS_MAX);
    given[i].name = name;
    given[i].fd = fd;
}

/* A copy of the program beside this one. The worker is nobody, who may neither reach the program by
 * its name nor have the right to execute it; of a copy in memory anybody who has it can execute. */
static int copy_program(const char *name, struct sg_error *e)
{
    AUTO(close_p) int from = -1, to = memfd_create(name, MFD_CLOEXEC | MFD_EXEC);
    char path[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
    char *slash;

    for (size_t i = 0; i < PROGRAMS_MAX && given[i].name; i++)
        if (strcmp(given[i].name, name) == 0)
            return fcntl(given[i].fd, F_DUPFD_CLOEXEC, 0);
    path[n < 0 ? 0 : n] = '\0';
    slash = strrchr(path, '/');
    if (!slash || (size_t)(slash - path) + strlen(name) + 2 > sizeof(path))
        return err_set(e, SG_ERR_INTERNAL, -ENOENT, "find the directory of this program");
    snprintf(slash + 1, sizeof(path) - (size_t)(slash + 1 - path), "%s", name);
    if (to < 0 && errno == EINVAL) /* before 6.3 every memfd was executable */
        to = memfd_create(name, MFD_CLOEXEC);
    from = open(path, O_RDONLY | O_CLOEXEC);
    if (from < 0 || to < 0)
        return err_errno(e, "open '%s', which comes with sandglass", path);
    while ((n = sendfile(to, from, NULL, 1 << 20)) > 0)
        ;
    return n < 0 ? err_errno(e, "copy '%s' into memory", path) : steal_fd(&to);
}

void worker_become_nobody(void)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (setgroups(0, NULL) < 0 || setresgid(WORKER_NOBODY, WORKER_NOBODY, WORKER_NOBODY) < 0 ||
        setresuid(WORKER_NOBODY, WORKER_NOBODY, WORKER_NOBODY) < 0 ||
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        _exit(CANNOT_START);
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* the change of ids has cleared it */
}

/* Runs in the child. Descriptors first move out of the way of those that they become. */
static void become_worker(int program, const char *const *args, const int *fds, size_t n)
{
    int moved[WORKER_FDS_MAX], above = (int)n + 1;
    char *none[] = {NULL};

    for (size_t i = 0; i < n; i++)
        moved[i] = fds[i] < 0 ? -1 : fcntl(fds[i], F_DUPFD_CLOEXEC, above);
    program = fcntl(program, F_DUPFD_CLOEXEC, above);
    for (size_t i = 0; i < n; i++)
        if (moved[i] >= 0)
            dup2(moved[i], (int)i);
        else if (i != STDERR_FILENO)
            close((int)i);
    worker_become_nobody();
    sys_close_range((unsigned)n, ~0U, CLOSE_RANGE_CLOEXEC);
    fexecve(program, (char *const *)(uintptr_t)args, none);
    _exit(CANNOT_START);
}

int worker_start(const char *const *args, const int *fds, size_t n, struct worker *ret,
                 struct sg_error *e)
{
    AUTO(close_p) int program = copy_program(args[0], e);
    int all[WORKER_FDS_MAX], ends[2];

    if (program < 0)
        return program;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_errno(e, "make a pipe");
    memcpy(all, fds, n * sizeof(*fds));
    all[STDOUT_FILENO] = ends[1];
    *ret = (struct worker){.pid = fork(), .out = ends[0]};
    if (ret->pid == 0)
        become_worker(program, args, all, n);
    close(ends[1]);
    if (ret->pid < 0) {
        close_p(&ret->out);
        return err_errno(e, "start '%s'", args[0]);
    }
    return 0;
}

void worker_kill(const struct worker *w)
{
    kill(w->pid, SIGKILL);
}

int worker_wait(struct worker *w)
{
    int status = 0;

    close_p(&w->out);
    while (waitpid(w->pid, &status, 0) < 0 && errno == EINTR)
        ;
    return status;
}
