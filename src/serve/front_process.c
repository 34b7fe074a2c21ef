#include "serve/front_process.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/sys.h"
#include "order/log.h"
#include "serve/guest.h"
#include "serve/orders.h"
#include "serve/server.h"
#include "warden/child.h"

#define FRONT_USER     "sandglass"
#define FRONT_ID       0x0fff0000u /* without such a user: below all ids of sandboxes */
#define ORDERS_FD      3
#define READY_NS       2000000000ull
#define PAUSE_FIRST_NS 50000000ull
#define PAUSE_MAX_NS   1000000000ull
#define DEATHS_NS      60000000000ull
#define SEND_BUFFER    (4 * 1024 * 1024)
#define END_MS         5000

struct tell {
    struct tell *next;
    struct order_answer answer;
    int fds[2];
    size_t n_fds;
};

int front_process_init(struct server *s, const char *program, struct sg_error *e)
{
    struct front_process *f = &s->front;
    const char *name = s->settings.front_user[0] ? s->settings.front_user : FRONT_USER;
    const struct passwd *user = getpwnam(name);

    *f = (struct front_process){.program = program,
                                .uid = FRONT_ID,
                                .gid = FRONT_ID,
                                .pidfd = -1,
                                .sock = -1,
                                .process.fd = -1,
                                .orders.fd = -1};
    f->queue_end = &f->queue;
    if (!user && s->settings.front_user[0])
        return err_set(e, SG_ERR_NOT_FOUND, -ENOENT, "front_user '%s': there is no such user",
                       name);
    if (user && user->pw_uid == 0)
        return err_set(e, SG_ERR_DENIED, -EPERM,
                       "front_user '%s' is root: name a user that has no rights", name);
    if (user) {
        f->uid = user->pw_uid;
        f->gid = user->pw_gid;
    }
    if (access(program, X_OK) < 0)
        return err_errno(e, "the program '%s' (it comes with sandglass: install all of it)",
                         program);
    return 0;
}

/* ---- starting it ----------------------------------------------------------------------------- */

static _Noreturn void die(const char *what)
{
    dprintf(STDERR_FILENO, "sandglass: the front cannot %s: %s\n", what, strerror(errno));
    _exit(126);
}

/* In the child: nothing of ours goes along. */
static void drop_rights(const struct front_process *f)
{
    struct rlimit none = {0}, files;
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct caps[2] = {0};

    setrlimit(RLIMIT_CORE, &none);
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max; /* the warden has raised its own */
        setrlimit(RLIMIT_NOFILE, &files);
    }
    for (int cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++)
        prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
    if (setgroups(0, NULL) < 0 || setresgid(f->gid, f->gid, f->gid) < 0 ||
        setresuid(f->uid, f->uid, f->uid) < 0 || syscall(SYS_capset, &head, caps) < 0 ||
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        die("take its user's ids");
}

static _Noreturn void become_front(struct server *s, int sock, pid_t parent)
{
    struct front_process *f = &s->front;
    /* It must know before it has the settings: what it starts for a database, it starts first. */
    bool database = strncmp(s->settings.store, "postgres", 8) == 0;
    char with_clerk[] = "--clerk";
    char *argv[] = {(char *)(uintptr_t)f->program, database ? with_clerk : NULL, NULL};
    char *envp[] = {NULL};
    int null = open("/dev/null", O_RDONLY);
    sigset_t none;

    setsid();
    signal(SIGPIPE, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (fchdir(s->state.dir) < 0 || chdir("front") < 0)
        die("enter its directory");
    if (dup2(null, STDIN_FILENO) < 0 ||
        (sock == ORDERS_FD ? fcntl(sock, F_SETFD, 0) < 0 : dup2(sock, ORDERS_FD) < 0))
        die("get its descriptors");
    sys_close_range(ORDERS_FD + 1, ~0U, 0);
    drop_rights(f);
    /* After the ids, whose change takes it back. */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(126);
    execve(f->program, argv, envp);
    die("be started");
}

static int spawn(struct server *s, struct sg_error *e)
{
    struct front_process *f = &s->front;
    struct clone_args args = {
        .flags = CLONE_PIDFD, .pidfd = (uintptr_t)&f->pidfd, .exit_signal = SIGCHLD};
    int socks[2], size = SEND_BUFFER;
    pid_t parent = getpid(), pid;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, socks) < 0)
        return err_errno(e, "make a socket pair for the front");
    for (size_t i = 0; i < 2; i++)
        setsockopt(socks[i], SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof size);
    pid = sys_clone3(&args);
    if (pid == 0)
        become_front(s, socks[1], parent);
    close(socks[1]);
    if (pid < 0) {
        close(socks[0]);
        return err_errno(e, "start the front");
    }
    f->sock = socks[0];
    return pid;
}

static void on_process(struct event_source *src, uint32_t events);
static void on_orders(struct event_source *src, uint32_t events);
static void on_timer(struct timer *timer);

int front_process_start(struct server *s, struct sg_error *e)
{
    struct front_process *f = &s->front;
    int pid = spawn(s, e);

    if (pid < 0)
        return pid;
    f->turn++;
    f->ready = false;
    f->process.fn = on_process;
    f->orders.fn = on_orders;
    f->timer.fn = on_timer;
    reactor_watch(&s->reactor, &f->process, f->pidfd, EPOLLIN);
    reactor_watch(&s->reactor, &f->orders, f->sock, EPOLLIN);
    timer_set(&s->reactor, &f->timer, clock_ns() + READY_NS);
    log_line(LEVEL_INFO, "front %u started, pid %d", f->turn, pid);
    orders_greet(s);
    return 0;
}

/* ---- its end --------------------------------------------------------------------------------- */

static void drop_queue(struct front_process *f)
{
    while (f->queue) {
        struct tell *t = f->queue;
        f->queue = t->next;
        for (size_t i = 0; i < t->n_fds; i++)
            close(t->fds[i]);
        free(t);
    }
    f->queue_end = &f->queue;
}

static void hang_up(struct server *s)
{
    struct front_process *f = &s->front;

    reactor_unwatch(&s->reactor, &f->orders);
    close_p(&f->sock);
    f->sock = -1;
    drop_queue(f);
}

/* The pause grows while it keeps dying young. */
static void plan_restart(struct server *s)
{
    struct front_process *f = &s->front;
    uint64_t now = clock_ns(), pause = f->pause_ns;

    if (f->ready || now - f->deaths_since_ns > DEATHS_NS) {
        f->n_deaths = 0;
        f->deaths_since_ns = now;
    }
    f->n_deaths += !f->ready;
    if (f->ready)
        pause = 0;
    f->pause_ns = pause == 0 ? PAUSE_FIRST_NS : 2 * pause;
    if (f->pause_ns > PAUSE_MAX_NS)
        f->pause_ns = PAUSE_MAX_NS;
    timer_set(&s->reactor, &f->timer, now + pause);
}

static void on_process(struct event_source *src, uint32_t events)
{
    struct front_process *f = CONTAINER_OF(src, struct front_process, process);
    struct server *s = CONTAINER_OF(f, struct server, front);

    (void)events;
    reactor_unwatch(&s->reactor, &f->process);
    hang_up(s);
    child_reap(&f->pidfd);
    timer_cancel(&s->reactor, &f->timer);
    if (f->leaving) {
        log_line(LEVEL_INFO, "front %u has finished", f->turn);
        return;
    }
    log_line(LEVEL_WARN, "front %u has ended unexpectedly", f->turn);
    plan_restart(s);
    guests_front_gone(s);
}

bool front_process_given_up(const struct server *s)
{
    return s->front.n_deaths >= FRONT_DEATHS_MAX;
}

static void on_timer(struct timer *timer)
{
    struct front_process *f = CONTAINER_OF(timer, struct front_process, timer);
    struct server *s = CONTAINER_OF(f, struct server, front);
    struct sg_error e;

    if (f->pidfd >= 0) {
        f->ready = true;
    } else if (!front_process_given_up(s) && front_process_start(s, &e) < 0) {
        log_line(LEVEL_ERROR, "%s", e.message);
        f->ready = false;
        plan_restart(s);
    }
}

void front_process_drain(struct server *s)
{
    struct order_answer a = {.tell = TELL_DRAIN};

    s->front.leaving = true;
    timer_cancel(&s->reactor, &s->front.timer);
    front_tell(s, &a, NULL, 0);
}

bool front_process_lives(const struct server *s)
{
    return s->front.pidfd >= 0;
}

void front_process_end(struct server *s)
{
    struct front_process *f = &s->front;

    timer_cancel(&s->reactor, &f->timer);
    reactor_unwatch(&s->reactor, &f->process);
    child_end(&f->pidfd, END_MS);
    hang_up(s);
}

/* ---- messages -------------------------------------------------------------------------------- */

bool ticket_valid(const struct server *s, const struct ticket *t)
{
    return t->turn != 0 && t->turn == s->front.turn && s->front.sock >= 0;
}

static void enqueue(struct front_process *f, const struct order_answer *a, const int *fds,
                    size_t n_fds)
{
    struct tell *t = xcalloc(1, sizeof *t);

    t->answer = *a;
    t->n_fds = n_fds;
    for (size_t i = 0; i < n_fds; i++)
        t->fds[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 0);
    *f->queue_end = t;
    f->queue_end = &t->next;
}

/* A socket that is broken is noticed where it is read. */
void front_tell(struct server *s, struct order_answer *a, const int *fds, size_t n_fds)
{
    struct front_process *f = &s->front;

    if (f->sock < 0)
        return;
    a->magic = ORDER_MAGIC;
    if (!f->queue && fd_send(f->sock, a, sizeof *a, fds, n_fds) != -EAGAIN)
        return;
    enqueue(f, a, fds, n_fds);
    /* While it does not read, it is not read either: what it can make wait here has a bound. */
    reactor_watch(&s->reactor, &f->orders, f->sock, EPOLLOUT);
}

static void flush(struct server *s)
{
    struct front_process *f = &s->front;

    while (f->queue) {
        struct tell *t = f->queue;
        if (fd_send(f->sock, &t->answer, sizeof t->answer, t->fds, t->n_fds) == -EAGAIN)
            return;
        f->queue = t->next;
        for (size_t i = 0; i < t->n_fds; i++)
            close(t->fds[i]);
        free(t);
    }
    f->queue_end = &f->queue;
    reactor_watch(&s->reactor, &f->orders, f->sock, EPOLLIN);
}

/* One order a turn of the loop: others may have something to say too. */
static void on_orders(struct event_source *src, uint32_t events)
{
    struct front_process *f = CONTAINER_OF(src, struct front_process, orders);
    struct server *s = CONTAINER_OF(f, struct server, front);
    int fds[1] = {-1}, r;
    size_t n_fds = ARRAY_SIZE(fds);
    struct order o;
    ssize_t got;

    if (f->queue) {
        flush(s);
        return;
    }
    (void)events;
    got = fd_recv(f->sock, &o, sizeof o, fds, &n_fds);
    if (got == -EAGAIN)
        return;
    r = got == (ssize_t)sizeof o ? orders_take(s, &o, n_fds == 1 ? fds[0] : -1) : -EPROTO;
    if (r == 0) {
        f->ready = true;
        return;
    }
    for (size_t i = 0; i < n_fds; i++)
        close(fds[i]);
    if (got > 0 || got == -EMSGSIZE)
        log_line(LEVEL_ERROR, "front %u sent what is no order: it is ended", f->turn);
    child_kill(f->pidfd); /* on_process does the rest */
    hang_up(s);
}

void front_answer(struct server *s, const struct ticket *t, struct order_answer *a, int fd)
{
    struct order_answer plain = {0};

    if (!ticket_valid(s, t))
        return;
    if (!a)
        a = &plain;
    a->tell = TELL_REPLY;
    a->seq = t->seq;
    front_tell(s, a, &fd, fd < 0 ? 0 : 1);
}

void front_answer_error(struct server *s, const struct ticket *t, int r, const struct sg_error *e)
{
    struct order_answer a = {.code = r, .error_kind = (int32_t)e->kind};

    snprintf(a.message, sizeof a.message, "%.255s", e->message);
    front_answer(s, t, &a, -1);
}
