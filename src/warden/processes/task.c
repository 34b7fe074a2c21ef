#include "warden/processes/task.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/base/sys.h"
#include "lib/log/log.h"
#include "warden/server.h"
#include "warden/layers/layer_stack_merge.h"

#define DISCARDS_MAX 32 /* directories that one child removes */
/* Files that a sandbox leaves, because it moved or ended, are removed after that work, in idle
 * time; and if there never is idle time, at DISCARD_LATE_NS all the same. */
#define DISCARD_NS      30000000ull
#define DISCARD_LATE_NS 250000000ull

struct task {
    struct server *server;
    struct loop_source process;
    pid_t pid;
    int pidfd;
    task_done done;
    void *arg;
};

struct discard {
    struct list link;
    int mount;
    char dir[32];
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

pid_t task_fork(int *fds, size_t n, int *ret_pidfd)
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

static void on_ended(struct loop_source *src, uint32_t events)
{
    struct task *t = CONTAINER_OF(src, struct task, process);
    int status = 0;

    (void)events;
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
    struct task *t = xcalloc(1, sizeof(*t));
    int own[TASK_FDS_MAX];

    *t = (struct task){
        .server = s, .process = {.fd = -1, .fn = on_ended}, .pidfd = -1, .done = done, .arg = arg};
    memcpy(own, fds, n * sizeof(own[0]));
    t->pid = task_fork(own, n, &t->pidfd);
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

/* ---- removing -------------------------------------------------------------------------------- */

static void start_discards(struct server *s);

static void on_discard(struct loop_timer *timer)
{
    struct server *s = CONTAINER_OF(timer, struct server, discard_timer);

    if (s->discards_due) {
        start_discards(s);
        return;
    }
    s->discards_due = true;
    loop_want_idle(&s->loop);
    loop_timer_set(&s->loop, timer, clock_ns() + DISCARD_LATE_NS);
}

void task_discard(struct server *s, int mount, const char *dir)
{
    struct discard *d;

    if (s->closing) /* files in memory go anyway */
        return;
    d = xcalloc(1, sizeof(*d));
    d->mount = fcntl(mount, F_DUPFD_CLOEXEC, 0);
    snprintf(d->dir, sizeof(d->dir), "%s", dir);
    if (list_empty(&s->discards)) {
        s->discards_due = false;
        s->discard_timer.fn = on_discard;
        loop_timer_set(&s->loop, &s->discard_timer, clock_ns() + DISCARD_NS);
    }
    list_push(&s->discards, &d->link);
}

static int remove_all(const int *fds, void *arg)
{
    const struct server *s = arg;
    size_t i = 0;

    LIST_EACH(const struct discard, d, &s->discards, link) {
        if (i < DISCARDS_MAX && fds[i] >= 0)
            layer_stack_remove(fds[i], d->dir, NULL);
        i++;
    }
    return 0;
}

static void forget_first(struct server *s)
{
    struct discard *d = LIST_POP(struct discard, &s->discards, link);

    close_p(&d->mount);
    free(d);
}

/* Starts a child for as many directories as one child removes. */
static void start_discards(struct server *s)
{
    int fds[DISCARDS_MAX] = {-1};
    size_t n = 0;

    LIST_EACH(struct discard, d, &s->discards, link)
        if (n < ARRAY_SIZE(fds))
            fds[n++] = d->mount;
    task_start(s, fds, n, remove_all, NULL, s);
    while (n-- > 0)
        forget_first(s);
    loop_timer_cancel(&s->loop, &s->discard_timer);
    if (!list_empty(&s->discards))
        loop_timer_set(&s->loop, &s->discard_timer, clock_ns() + DISCARD_LATE_NS);
}

bool tasks_idle(struct server *s)
{
    if (list_empty(&s->discards) || !s->discards_due)
        return false;
    start_discards(s);
    return true;
}

void tasks_close(struct server *s)
{
    loop_timer_cancel(&s->loop, &s->discard_timer);
    while (!list_empty(&s->discards))
        forget_first(s);
}
