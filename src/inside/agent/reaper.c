#include "inside/agent/reaper.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "lib/base/clock.h"

#define REAP_PER_TURN  512 /* many orphans at once must not keep the channel waiting */
#define SIGNALS        64  /* all that the kernel has */
#define SESSION_PASSES 3   /* members may fork while they are being counted */
#define PAUSE_MIN_US   50
#define PAUSE_MAX_US   5000

static void tell(struct reaper *r, pid_t pid, int status, const struct rusage *usage)
{
    struct child *c = LIST_FIND(struct child, at, &r->children, link, at->pid == pid);

    if (!c)
        return;
    reaper_forget(c);
    c->on_exit(c, status, usage);
}

static void reap(struct loop_task *task)
{
    struct reaper *r = CONTAINER_OF(task, struct reaper, task);

    for (unsigned i = 0; i < REAP_PER_TURN; i++) {
        struct rusage usage;
        int status;
        pid_t pid = wait4(-1, &status, WNOHANG | __WALL, &usage);

        if (pid <= 0)
            return;
        tell(r, pid, status, &usage);
    }
    loop_task_queue(r->loop, task);
}

void reaper_reap(struct reaper *r)
{
    loop_task_cancel(&r->task);
    reap(&r->task);
}

static void on_signal(struct loop_source *src, uint32_t events UNUSED)
{
    struct reaper *r = CONTAINER_OF(src, struct reaper, src);
    struct signalfd_siginfo info;

    while (read(src->fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
        ;
    loop_task_queue(r->loop, &r->task);
}

/* Programs inherit which signals are ignored, so all are reset. By the system call itself: libc
 * hides its own two signals (32, 33) from us, and some callers, such as make, leave them
 * ignored. */
static void default_signals(void)
{
    static const struct {
        void (*handler)(int);
        unsigned long flags;
        void (*restorer)(void);
        uint64_t mask;
    } action = {.handler = SIG_DFL};

    for (int s = 1; s <= SIGNALS; s++)
        syscall(SYS_rt_sigaction, s, &action, NULL, sizeof(action.mask));
}

int reaper_signals(void)
{
    sigset_t child;

    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    return signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
}

int reaper_init(struct reaper *r, struct loop *loop)
{
    sigset_t all;

    *r = (struct reaper){.loop = loop, .src = {.fd = -1, .fn = on_signal}, .task.fn = reap};
    sigfillset(&all);
    if (sigprocmask(SIG_SETMASK, &all, NULL) < 0)
        return -errno;
    default_signals();

    int fd = reaper_signals();
    if (fd < 0)
        return -errno;
    loop_watch(loop, &r->src, fd, EPOLLIN);
    return 0;
}

void reaper_done(struct reaper *r)
{
    int fd = r->src.fd;

    loop_task_cancel(&r->task);
    loop_unwatch(r->loop, &r->src);
    close_p(&fd);
}

void reaper_add(struct reaper *r, struct child *child)
{
    list_push(&r->children, &child->link);
}

void reaper_forget(struct child *child)
{
    list_remove(&child->link);
}

/* Reads the third and sixth fields of /proc/PID/stat, state and session. The second field, a name
 * in brackets, may hold anything. Session 0: any. */
static bool is_member(int procfd, const char *pid, pid_t session)
{
    char path[32], text[512], state = 'Z';
    int sid = -1;

    snprintf(path, sizeof(path), "%.20s/stat", pid);
    AUTO(close_p) int fd = openat(procfd, path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    if (n <= 0)
        return false;
    text[n] = '\0';
    const char *rest = strrchr(text, ')');
    return rest && sscanf(rest, ") %c %*d %*d %d", &state, &sid) == 2 &&
           (session == 0 || sid == session) && state != 'Z' && state != 'X';
}

/* Kills all members that run. Returns whether there were any. */
static bool kill_members(pid_t session)
{
    bool found = false;
    DIR *proc = opendir("/proc");
    const struct dirent *d;

    if (!proc)
        return session == 0;
    while ((d = readdir(proc))) {
        if (d->d_name[0] < '1' || d->d_name[0] > '9')
            continue;
        pid_t pid = (pid_t)strtol(d->d_name, NULL, 10);
        if (pid > 1 && is_member(dirfd(proc), d->d_name, session) && kill(pid, SIGKILL) == 0)
            found = true;
    }
    closedir(proc);
    return found;
}

void session_kill(pid_t leader)
{
    kill(leader, SIGKILL);
    kill(-leader, SIGKILL);
    for (unsigned i = 0; i < SESSION_PASSES && kill_members(leader); i++)
        ;
}

/* A process whose parent is outside stays as a zombie until that parent waits for it; zombies do
 * not count. */
int reaper_kill_everybody(struct reaper *r)
{
    uint64_t deadline = clock_ns() + EVERYBODY_MS * 1000000ull;
    unsigned pause = PAUSE_MIN_US;

    while (kill(-1, SIGKILL) == 0 && kill_members(0)) {
        if (clock_ns() >= deadline)
            return -EBUSY;
        usleep(pause);
        pause = 2 * pause < PAUSE_MAX_US ? 2 * pause : PAUSE_MAX_US;
        reaper_reap(r);
    }
    reaper_reap(r);
    return 0;
}
