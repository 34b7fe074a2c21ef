/* The broker of a domain: see twin.h. It trusts the warden's requests, and reads nothing that a
 * kernel says. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/sys.h"
#include "warden/stage/stage.h"
#include "warden/twin/kernel.h"
#include "warden/twin/tracee.h"
#include "warden/twin/zygote.h"

/* How long to leave the processors to the kernel that was just made, before the next is begun. */
#define QUIET_MS 3

#define CONTROL_FD STAGE_CONTROL_FD
#define USERNS_FD  (STAGE_CONTROL_FD + 1)

struct pair {
    struct pair *next;
    pid_t h, k; /* 0: it has ended */
};

struct broker {
    struct zygote zygote;
    uint64_t zygote_seq; /* of the request that is not answered; 0: none */
    struct pair *pairs;
    struct seccomp_prog filter;
    int children; /* signalfd */
    int own_pidns;
};

static void answer(const struct twin_request *q, int r, const struct sg_error *e, pid_t pid,
                   const int *fds, size_t n)
{
    struct twin_reply reply = {.magic = TWIN_MAGIC,
                               .op = q->op,
                               .seq = q->seq,
                               .code = r,
                               .kind = (int32_t)e->kind,
                               .pid = pid};

    if (r < 0)
        snprintf(reply.message, sizeof reply.message, "%.255s", e->message);
    fd_send(CONTROL_FD, &reply, sizeof reply, fds, n);
}

static void answer_zygote(struct broker *b, uint64_t seq, int r, const struct sg_error *e)
{
    answer(&(struct twin_request){.op = TWIN_ZYGOTE, .seq = seq}, r, e, 0, NULL, 0);
    b->zygote_seq = 0;
}

/* ---- requests -------------------------------------------------------------------------------- */

/* Whoever ends the zygote's home must know when the zygote has gone, too. */
static int tell_begun(struct broker *b, struct sg_error *e)
{
    struct twin_request begun = {.op = TWIN_BEGUN, .seq = b->zygote_seq};
    AUTO(close_p) int pidfd = (int)syscall(SYS_pidfd_open, b->zygote.pid, 0);

    if (pidfd < 0)
        return err_errno(e, "open the zygote's pidfd");
    answer(&begun, 0, e, 0, &pidfd, 1);
    return 0;
}

static void start_zygote(struct broker *b, const struct twin_request *q, const int *fds)
{
    struct sg_error e = {0};
    int r;

    zygote_end(&b->zygote);
    b->zygote_seq = q->seq;
    r = zygote_begin(&b->zygote, q, fds, &e);
    if (r == 0)
        r = tell_begun(b, &e);
    if (r == 0)
        return;
    zygote_end(&b->zygote);
    answer_zygote(b, q->seq, r, &e);
}

static int open_pidfds(const struct kernel *k, int ret[2], struct sg_error *e)
{
    ret[0] = (int)syscall(SYS_pidfd_open, k->k, 0);
    ret[1] = ret[0] < 0 ? -1 : (int)syscall(SYS_pidfd_open, k->h, 0);
    return ret[1] < 0 ? err_errno(e, "open a kernel's pidfd") : 0;
}

/* A kernel that cannot be made is mostly its sandbox's fault: out of memory, or ended meanwhile. If
 * it is the zygote's, the warden asks for another when it hears that this one is gone. */
static void make_kernel(struct broker *b, const struct twin_request *q, int *fds, size_t n)
{
    struct sg_error e = {0};
    struct kernel k = {0};
    int pidfds[2] = {-1, -1}, r;

    fds[n] = b->own_pidns;
    r = kernel_make(&b->zygote, q, fds, &k, &e);
    if (r == 0)
        r = open_pidfds(&k, pidfds, &e);
    if (r == 0 && k.h != k.k) {
        struct pair *p = xcalloc(1, sizeof *p);
        *p = (struct pair){.next = b->pairs, .h = k.h, .k = k.k};
        b->pairs = p;
    }
    answer(q, r, &e, k.k_inside, pidfds, r < 0 ? 0 : 2);
    close_p(&pidfds[0]);
    close_p(&pidfds[1]);
}

static void drop_broken_zygote(struct broker *b)
{
    struct sg_error e = {0};

    if (!b->zygote.broken)
        return;
    err_set(&e, SG_ERR_INTERNAL, -EIO, "the zygote of a domain could not be copied");
    zygote_end(&b->zygote);
    answer_zygote(b, 0, -EIO, &e);
}

/* False when the warden is gone. */
static bool take_request(struct broker *b)
{
    struct twin_request q;
    int fds[TWIN_FDS_MAX + 1];
    size_t n = TWIN_FDS_MAX, expected;
    ssize_t got = fd_recv(CONTROL_FD, &q, sizeof q, fds, &n);

    if (got <= 0)
        return got == -EINTR || got == -EAGAIN;
    expected = q.op == TWIN_ZYGOTE ? TWIN_ZYGOTE_FDS : TWIN_KERNEL_FDS;
    if (got != sizeof q || q.magic != TWIN_MAGIC || q.n_doors < 1 || q.n_doors > TWIN_DOORS_MAX ||
        n != expected + q.n_doors || q.imports[TWIN_IMPORTS_MAX - 1] != '\0')
        return false;
    if (q.op == TWIN_ZYGOTE)
        start_zygote(b, &q, fds);
    else
        make_kernel(b, &q, fds, n);
    for (size_t i = 0; i < n; i++)
        close(fds[i]);
    return true;
}

/* ---- what ends ------------------------------------------------------------------------------- */

static void zygote_died(struct broker *b)
{
    struct sg_error e = {0};

    err_set(&e, SG_ERR_INTERNAL, -ECHILD, "the zygote of a domain has ended");
    zygote_lost(&b->zygote);
    answer_zygote(b, b->zygote_seq, -ECHILD, &e);
}

/* H is stopped: it only goes when it is killed, and K's memory with it. */
static void process_ended(struct broker *b, pid_t pid)
{
    for (struct pair **at = &b->pairs; *at; at = &(*at)->next) {
        struct pair *p = *at;
        if (p->k != pid && p->h != pid)
            continue;
        if (p->k == pid && p->h > 0)
            tracee_kill(p->h);
        if (p->k == pid || p->k == 0) {
            *at = p->next;
            free(p);
        } else {
            p->h = 0;
        }
        return;
    }
    if (pid == b->zygote.ahead)
        b->zygote.ahead = 0;
    else if (pid == b->zygote.pid)
        zygote_died(b);
}

static void reap(struct broker *b)
{
    struct signalfd_siginfo info;
    int status;
    pid_t pid;

    while (read(b->children, &info, sizeof info) > 0)
        ;
    while ((pid = waitpid(-1, &status, WNOHANG | __WALL)) > 0)
        if (!WIFSTOPPED(status))
            process_ended(b, pid);
}

/* ---- the process ----------------------------------------------------------------------------- */

static void look_at_zygote(struct broker *b)
{
    struct sg_error e = {0};
    uint64_t seq = b->zygote_seq;
    int r = zygote_hold(&b->zygote, &b->filter, &e);

    if (r == 0)
        return;
    if (r < 0)
        zygote_end(&b->zygote);
    answer_zygote(b, seq, r < 0 ? r : 0, &e);
}

static bool lacks_copy(const struct broker *b)
{
    return b->zygote.held && !b->zygote.plain && b->zygote.ahead == 0;
}

static int wait_ms(const struct broker *b)
{
    if (b->zygote_seq)
        return clock_poll_ms(b->zygote.deadline_ns);
    return lacks_copy(b) ? QUIET_MS : -1;
}

/* A wait inside a request may have eaten the signal that another process has ended: children are
 * looked at before every wait, not only when the signal comes. */
static void serve(struct broker *b)
{
    for (;;) {
        reap(b);
        struct pollfd p[] = {{.fd = CONTROL_FD, .events = POLLIN},
                             {.fd = b->children, .events = POLLIN},
                             {.fd = b->zygote_seq ? b->zygote.control : -1, .events = POLLIN}};

        int n = poll(p, ARRAY_SIZE(p), wait_ms(b));
        if (n < 0 && errno != EINTR)
            return;
        if (n == 0 && lacks_copy(b))
            kernel_copy_ahead(&b->zygote);
        if (b->zygote_seq && b->zygote.pid > 0)
            look_at_zygote(b);
        if (p[0].revents && !take_request(b))
            return;
        drop_broken_zygote(b);
    }
}

static int prepare(struct broker *b, struct sg_error *e)
{
    AUTO(close_p) int proc = -1;
    sigset_t child;
    int r = seccomp_compile(&b->filter, e);

    if (r == 0)
        r = root_prepare(e);
    if (r < 0)
        return r;
    proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
    b->own_pidns = open("/proc/self/ns/pid", O_RDONLY | O_CLOEXEC);
    if (proc < 0 || b->own_pidns < 0)
        return err_errno(e, "open the domain's /proc");
    r = stage_enter_domain(USERNS_FD, e);
    if (r == 0)
        r = netns_renew(proc, e);
    if (r < 0)
        return r;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child, NULL);
    b->children = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
    return b->children < 0 ? err_errno(e, "watch for children") : 0;
}

int broker_main(void)
{
    struct broker b = {.zygote = ZYGOTE_NONE, .own_pidns = -1, .children = -1};
    struct sg_error e = {0};
    int r;

    prctl(PR_SET_NAME, "sg-broker");
    r = prepare(&b, &e);
    if (r < 0) {
        answer_zygote(&b, 0, r, &e);
        return 1;
    }
    fd_set_nonblock(CONTROL_FD, true);
    serve(&b);
    return 0;
}
