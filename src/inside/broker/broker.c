/* The broker of a domain: see twin.h. It trusts the warden's requests, and reads nothing that a
 * kernel sends. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/ipc/ipc.h"
#include "lib/base/sys.h"
#include "inside/stage/stage.h"
#include "inside/broker/broker.h"
#include "inside/broker/tracee.h"

/* How long the broker leaves the processors to a new kernel before it copies the zygote for the
 * next. */
#define QUIET_MS 3
/* How long the memory of ended kernels is kept at most, if the broker never has a quiet time. */
#define ORPHAN_NS 50000000ull

#define CONTROL_FD BROKER_CONTROL_FD
#define USERNS_FD  (STAGE_CONTROL_FD + 1)
_Static_assert(CONTROL_FD == STAGE_CONTROL_FD, "where the socket is");

void broker_answer(const struct twin_request *q, int r, const struct sg_error *e,
                   struct twin_reply *reply, const int *fds, size_t n)
{
    reply->magic = TWIN_MAGIC;
    reply->op = q->op;
    reply->seq = q->seq;
    reply->code = r;
    reply->kind = e ? (int32_t)e->kind : 0;
    if (r < 0)
        snprintf(reply->message, sizeof(reply->message), "%.255s", e->message);
    ipc_send(CONTROL_FD, reply, sizeof(*reply), fds, n);
}

static void answer(const struct twin_request *q, int r, const struct sg_error *e, pid_t pid,
                   const int *fds, size_t n)
{
    struct twin_reply reply = {.pid = pid};

    broker_answer(q, r, e, &reply, fds, n);
}

static void answer_zygote(struct broker *b, uint64_t seq, int r, const struct sg_error *e)
{
    answer(&(struct twin_request){.op = TWIN_ZYGOTE, .seq = seq}, r, e, 0, NULL, 0);
    b->zygote_seq = 0;
}

/* ---- requests -------------------------------------------------------------------------------- */

/* Sends the zygote's pidfd. The zygote sees the files of a sandbox; whoever ends that sandbox must
 * know when the zygote has gone, too. */
static int tell_begun(struct broker *b, struct sg_error *e)
{
    struct twin_request begun = {.op = TWIN_BEGUN, .seq = b->zygote_seq};
    AUTO(close_p) int pidfd = (int)syscall(SYS_pidfd_open, b->zygote.source.pid, 0);

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
    r = zygote_begin(&b->zygote, &b->chute, q, fds, &e);
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

/* If a kernel cannot be made, the cause is mostly in its sandbox, which is out of memory or has
 * ended meanwhile. If the cause is the zygote, the broker reports its end, and the warden asks for
 * another. */
static void make_kernel(struct broker *b, const struct twin_request *q, int *fds, size_t n)
{
    struct sg_error e = {0};
    struct kernel k = {0};
    uint64_t tid = b->zygote.source.thread.tid;
    int pidfds[2] = {-1, -1}, r;

    fds[n] = b->own_pidns;
    if (q->flags & TWIN_FRESH) {
        tid = 0;
        r = kernel_make_fresh(&b->chute, q, fds, &b->filter, &k, &e);
    } else if (q->frozen_kernels) {
        r = broker_make_copy(b, q, fds, &k, &tid, &e);
    } else {
        r = kernel_make(&b->zygote, &b->chute, q, fds, &k, &e);
    }
    if (r == 0)
        r = open_pidfds(&k, pidfds, &e);
    if (r == 0 && k.h != k.k) {
        struct pair *p = xcalloc(1, sizeof(*p));
        *p = (struct pair){
            .h = k.h, .k = k.k, .k_inside = k.k_inside, .owner = q->owner, .tid = tid};
        list_push(&b->pairs, &p->link);
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

static bool is_proper(const struct twin_request *q, ssize_t len, size_t n_fds)
{
    bool grouped = q->op == TWIN_ZYGOTE || q->op == TWIN_KERNEL;

    if (len != sizeof(*q) || q->magic != TWIN_MAGIC || q->imports[TWIN_IMPORTS_MAX - 1] != '\0' ||
        q->n_kernels > TWIN_KERNELS_MAX)
        return false;
    if (grouped && (q->n_doors < 1 || q->n_doors > TWIN_DOORS_MAX))
        return false;
    switch (q->op) {
    case TWIN_ZYGOTE:
        return n_fds == TWIN_ZYGOTE_FDS + q->n_doors;
    case TWIN_KERNEL:
        return n_fds == TWIN_KERNEL_FDS + q->n_doors;
    case TWIN_HOLD:
        return n_fds == TWIN_HOLD_FDS + (q->flags & TWIN_KEEP ? 1u : 0u);
    case TWIN_GO:
    case TWIN_DROP:
    case TWIN_BEAT:
        return n_fds == 0;
    default:
        return false;
    }
}

static void obey(struct broker *b, const struct twin_request *q, int *fds, size_t n)
{
    if (q->op == TWIN_BEAT)
        answer(q, 0, NULL, 0, NULL, 0);
    else if (q->op == TWIN_ZYGOTE)
        start_zygote(b, q, fds);
    else if (q->op == TWIN_KERNEL)
        make_kernel(b, q, fds, n);
    else if (q->op == TWIN_HOLD)
        broker_hold(b, q, fds);
    else if (q->op == TWIN_GO)
        broker_go(b, q);
    else
        broker_drop(b, q);
}

/* ---- processes that end ---------------------------------------------------------------------- */

static void zygote_died(struct broker *b)
{
    struct sg_error e = {0};

    err_set(&e, SG_ERR_INTERNAL, -ECHILD, "the zygote of a domain has ended");
    zygote_lost(&b->zygote);
    answer_zygote(b, b->zygote_seq, -ECHILD, &e);
}

/* Kills the Hs that lost their K, but not at once: an H may have much memory to give back, and at
 * that time whoever ended K, such as a sandbox that is rewound, needs the processor. Does not wait
 * for their end. */
static void end_orphans(struct broker *b, bool quiet)
{
    LIST_EACH(struct pair, p, &b->pairs, link)
        if (p->orphan_ns && (quiet || clock_ns() - p->orphan_ns > ORPHAN_NS)) {
            p->orphan_ns = 0;
            if (p->h > 0)
                kill(p->h, SIGKILL);
        }
}

static bool has_orphans(const struct broker *b)
{
    return LIST_FIND(const struct pair, p, &b->pairs, link, p->orphan_ns != 0);
}

/* A process ended. If it was a K, its H must be killed, because H is stopped and keeps K's memory;
 * end_orphans does that. */
static void process_ended(struct broker *b, pid_t pid)
{
    LIST_EACH(struct hold, h, &b->holds, link)
        hold_forget(h, pid);
    LIST_EACH(struct pair, p, &b->pairs, link) {
        if (p->k != pid && p->h != pid)
            continue;
        if (p->k == pid && p->h > 0)
            p->orphan_ns = clock_ns();
        if (p->k == pid)
            p->k = 0;
        else
            p->h = 0;
        if (p->k == 0 && p->h == 0) {
            list_remove(&p->link);
            free(p);
        }
        return;
    }
    if (broker_frozen_kernels_lost(b, pid))
        return;
    if (pid == b->zygote.ahead)
        b->zygote.ahead = 0;
    else if (pid == b->zygote.source.pid)
        zygote_died(b);
}

static void reap(struct broker *b)
{
    struct signalfd_siginfo info;
    int status;
    pid_t pid;

    while (read(b->children, &info, sizeof(info)) > 0)
        ;
    while ((pid = waitpid(-1, &status, WNOHANG | __WALL)) > 0) {
        if (WIFSTOPPED(status))
            broker_loose(b, pid, status);
        else
            process_ended(b, pid);
    }
}

static bool is_gone(pid_t pid)
{
    return pid > 0 && kill(pid, 0) < 0 && errno == ESRCH;
}

/* A process that this request was about and that has ended: a wait inside the request has reaped
 * it. 0: none. */
static pid_t find_gone(const struct broker *b, const struct twin_request *q)
{
    const struct frozen_kernels *m = frozen_kernels_find(&b->frozen_kernels, q->frozen_kernels);

    LIST_EACH(const struct pair, p, &b->pairs, link)
        if (p->owner == q->owner && (is_gone(p->k) || is_gone(p->h)))
            return is_gone(p->k) ? p->k : p->h;
    const struct frozen_kernel *k =
        m ? LIST_FIND(const struct frozen_kernel, at, &m->kernels, link, is_gone(at->source.pid))
          : NULL;
    return k ? k->source.pid : 0;
}

/* False when the warden is gone. */
static bool take_request(struct broker *b)
{
    struct twin_request q;
    AUTO(ipc_fds_close) struct ipc_fds fds = {.max = TWIN_FDS_MAX};
    ssize_t got = ipc_recv(CONTROL_FD, &q, sizeof(q), &fds);

    if (got <= 0)
        return got == -EINTR || got == -EAGAIN;
    if (!is_proper(&q, got, fds.n))
        return false;
    obey(b, &q, fds.at, fds.n);
    for (pid_t pid = find_gone(b, &q); pid > 0; pid = find_gone(b, &q))
        process_ended(b, pid);
    return true;
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

/* Whether to copy the zygote ahead of need. Not while a sandbox stands still: it would wait for
 * that. */
static bool lacks_copy(const struct broker *b)
{
    return b->zygote.held && !b->zygote.plain && b->zygote.ahead == 0 && list_empty(&b->holds);
}

static int wait_ms(const struct broker *b)
{
    uint64_t held = broker_holds_deadline(b);
    int ms = lacks_copy(b) || has_orphans(b) ? QUIET_MS : -1;

    if (b->zygote_seq)
        ms = clock_poll_ms(b->zygote.deadline_ns);
    if (held && (ms < 0 || clock_poll_ms(held) < ms))
        ms = clock_poll_ms(held);
    return ms;
}

/* A wait inside a request may have consumed the SIGCHLD of another process. So children are reaped
 * before every wait, not only when the signal comes. */
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
        end_orphans(b, n == 0);
        if (n == 0 && lacks_copy(b))
            kernel_copy_ahead(&b->zygote);
        if (b->zygote_seq && b->zygote.source.pid > 0)
            look_at_zygote(b);
        if (p[0].revents && !take_request(b))
            return;
        drop_broken_zygote(b);
        broker_look_at_holds(b);
    }
}

static int prepare(struct broker *b, struct sg_error *e)
{
    AUTO(close_p) int proc = -1;
    sigset_t child;
    int r = seccomp_compile(SECCOMP_PROGRAM, &b->filter, e);

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
    if (b->children < 0)
        return err_errno(e, "watch for children");
    r = chute_open(&b->chute, e);
    return r < 0 ? r : seccomp_confine(SECCOMP_BROKER, e);
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
