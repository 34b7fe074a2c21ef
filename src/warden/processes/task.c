#include "warden/processes/task.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "lib/base/fd.h"
#include "lib/base/sys.h"
#include "lib/log/log.h"
#include "warden/server.h"

struct task {
    struct server *server;
    struct loop_source process;
    pid_t pid;
    int pidfd;
    task_done done;
    void *arg;
};

/* Keeps only these descriptors open, as 3 and up, in their order; the same one may be there twice.
 * The others are closed first, because the parent may have no number left. */
static void keep_only(int *fds, size_t n)
{
    unsigned above = (unsigned)(3 + n), next = 3;

    while (next > 0) {
        unsigned lowest = ~0U;
        for (size_t i = 0; i < n; i++)
            if (fds[i] >= (int)next && (unsigned)fds[i] < lowest)
                lowest = (unsigned)fds[i];
        if (lowest > next)
            sys_close_range(next, lowest == ~0U ? ~0U : lowest - 1, 0);
        next = lowest + 1;
    }
    for (size_t i = 0; i < n; i++)
        fds[i] = fds[i] < 0 ? -1 : fcntl(fds[i], F_DUPFD_CLOEXEC, above);
    for (size_t i = 0; i < n; i++)
        fds[i] = fds[i] < 0 ? -1 : dup3(fds[i], (int)(3 + i), O_CLOEXEC);
    sys_close_range(above, ~0U, 0);
}

/* Like fork, but the child keeps only these descriptors open: its copy of a lock or of a channel
 * would outlive the sandbox. They are moved to 3 and up; -1 stays -1. */
static pid_t fork_with(int *fds, size_t n, int *ret_pidfd)
{
    /* Not clone3: a filter around the server may refuse it, since it cannot see its flags. */
    pid_t parent = getpid();
    pid_t pid = (pid_t)syscall(SYS_clone, CLONE_PIDFD | SIGCHLD, NULL, ret_pidfd, NULL, NULL);

    if (pid != 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    signal(SIGTERM, SIG_DFL);
    keep_only(fds, n);
    return 0;
}

static void on_ended(struct loop_source *src, uint32_t events UNUSED)
{
    struct task *t = CONTAINER_OF(src, struct task, process);
    int status = 0;

    loop_unwatch(&t->server->loop, &t->process);
    if (waitpid(t->pid, &status, WNOHANG) != t->pid)
        status = -1;
    close_p(&t->pidfd);
    if (t->done)
        t->done(t->arg, status);
    free(t);
}

void task_start(struct server *s, const int *fds, size_t n, task_work work, task_done done,
                void *arg)
{
    struct task *t = NEW(struct task, .server = s, .process = {.fd = -1, .fn = on_ended},
                         .pidfd = -1, .done = done, .arg = arg);
    int own[TASK_FDS_MAX];

    memcpy(own, fds, n * sizeof(own[0]));
    t->pid = fork_with(own, n, &t->pidfd);
    if (t->pid == 0)
        _exit(work(own, arg) != 0);
    if (t->pid < 0) {
        log_line(LEVEL_WARN, "cannot start a child: %s", strerror(errno));
        free(t);
        if (done)
            done(arg, -1);
        return;
    }
    loop_watch(&s->loop, &t->process, t->pidfd, EPOLLIN);
}
