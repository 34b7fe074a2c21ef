#include "inside/broker/hold.h"

#include <fcntl.h>
#include <linux/kcmp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>

#include "lib/base/fault.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "inside/broker/tracee.h"

#define STOP_NS     200000000ull /* for stopping everybody */
#define IDLE_NS     100000000ull /* for a kernel to come to its idle read */
#define LOOK_NS     1000000000ull
#define ROUNDS      6
#define THREADS_MAX 4096
#define CONTROL_FD  3

struct held_kernel {
    struct pair *pair;
    struct cpu_state state;
    uint64_t call_at; /* 0: the kernel is not idle */
    struct open_files open_files;
    struct look_shared shared;
};

struct pair *pair_find(const struct list *pairs, uint64_t owner, pid_t k_inside)
{
    return LIST_FIND(struct pair, p, pairs, link,
                     p->owner == owner && p->k_inside == k_inside && p->k != 0);
}

/* ---- the processes that are held ------------------------------------------------------------- */

static void kernel_done(struct held *p)
{
    if (!p->kernel)
        return;
    open_files_done(&p->kernel->open_files);
    free(p->kernel);
    p->kernel = NULL;
}

static void held_free(struct held *p)
{
    kernel_done(p);
    close_p(&p->inspected.dir);
    remote_calls_done(&p->remote_calls);
    numbers_done(&p->threads);
    free(p);
}

/* Appends to the list: kernels come first, and so go on first. */
static struct held *held_new(struct hold *h, const struct inspected *who)
{
    struct held *p = xcalloc(1, sizeof(*p));

    p->inspected = *who;
    remote_calls_init(&p->remote_calls);
    list_append(&h->all, &p->link);
    return p;
}

static struct held *held_find(const struct hold *h, pid_t pid)
{
    return LIST_FIND(struct held, p, &h->all, link, p->inspected.pid == pid);
}

static void drop_thread(struct held *p, size_t i)
{
    p->n_stopped -= i < p->n_stopped;
    p->threads.n--;
    memmove(p->threads.v + i, p->threads.v + i + 1, (p->threads.n - i) * sizeof(p->threads.v[0]));
}

bool hold_has(const struct hold *h, pid_t tid)
{
    return LIST_FIND(const struct held, p, &h->all, link, numbers_have(&p->threads, tid));
}

void hold_forget(struct hold *h, pid_t tid)
{
    LIST_EACH(struct held, p, &h->all, link)
        for (size_t i = 0; i < p->threads.n; i++)
            if (p->threads.v[i] == tid)
                drop_thread(p, i--);
}

static void let_go(struct held *p)
{
    for (size_t i = 0; i < p->threads.n; i++)
        tracee_let_go(p->threads.v[i]);
    p->threads.n = p->n_stopped = 0;
}

static void hold_free(struct hold *h)
{
    LIST_EACH(struct held, p, &h->all, link) {
        let_go(p);
        held_free(p);
    }
    close_p(&h->members);
    close_p(&h->view.root);
    numbers_done(&h->outside);
    free(h);
}

/* For findings about nobody in particular. */
static const struct inspected nobody = {.dir = -1};

static void blame_restless(const struct held *p, struct findings *f)
{
    findings_in_the_way(f, &p->inspected, "restless", "the process does not stop",
                        "end the process, or try again");
}

/* ---- stopping -------------------------------------------------------------------------------- */

/* If a process cannot be looked at for any other reason, it is still there. */
static bool is_gone(int r)
{
    return r == -ENOENT || r == -ESRCH;
}

/* Asks a thread to stop. 1, or 0 if it is gone or may not be stopped. */
static size_t ask(struct held *p, pid_t tid, struct findings *f)
{
    int r = tracee_remote_calls(tid);

    if (r == 0)
        numbers_add(&p->threads, tid);
    else if (r != -ESRCH)
        blame_restless(p, f);
    return r == 0;
}

/* Asks the threads that have not been asked before. Returns how many there were. */
static size_t ask_threads(struct held *p, struct findings *f)
{
    AUTO(numbers_done) struct numbers tids = {0};
    size_t asked = 0;
    int r;

    if (procfs_count_threads(p->inspected.dir) == p->threads.n)
        return 0;
    r = procfs_threads(p->inspected.dir, &tids);
    if (r < 0 && !is_gone(r))
        blame_restless(p, f);
    if (r < 0)
        return 0;
    for (size_t i = 0; i < tids.n && p->threads.n < THREADS_MAX; i++)
        if (!numbers_have(&p->threads, tids.v[i]))
            asked += ask(p, tids.v[i], f);
    if (p->threads.n == THREADS_MAX && tids.n > THREADS_MAX)
        blame_restless(p, f);
    return asked;
}

/* Looks at a process of the group that is not held yet, and asks it to stop. The broker's own
 * processes are not in the sandbox's pid namespace; pid 1 there is the agent. Both are left alone,
 * and so is a dead process, which has nothing open. */
static size_t ask_new(struct hold *h, pid_t pid, struct findings *f)
{
    struct inspected who = {.pid = pid, .dir = -1};
    const struct procfs_status *s = &who.status;
    struct held *p;
    bool dead;
    int r;

    r = procfs_open(pid, &who.dir);
    if (r == 0)
        r = procfs_status(who.dir, &who.status);
    if (r < 0) {
        if (!is_gone(r))
            findings_in_the_way(f, &who, "restless", "too many processes", "end some of them");
        close_p(&who.dir);
        return 0;
    }
    dead = (s->state == 'Z' || s->state == 'X') && s->threads <= 1;
    if (s->deep == 0 || s->inside == 1)
        numbers_add(&h->outside, pid);
    if (dead || s->deep == 0 || s->inside == 1) {
        close(who.dir);
        return 0;
    }
    who.inside = s->inside;
    p = held_new(h, &who);
    return s->threads > 1 ? ask_threads(p, f) : ask(p, pid, f);
}

static int ask_all(struct hold *h, struct findings *f, size_t *ret_asked)
{
    AUTO(numbers_done) struct numbers members = {0};
    size_t asked = 0;
    int r = procfs_members(h->members, &members);

    for (size_t i = 0; i < members.n && r == 0; i++) {
        struct held *p = held_find(h, members.v[i]);
        if (p)
            asked += ask_threads(p, f);
        else if (!numbers_have(&h->outside, members.v[i]))
            asked += ask_new(h, members.v[i], f);
    }
    *ret_asked = asked;
    return r;
}

/* Waits until all threads have stopped. A thread that does not stop in time is let go when it does,
 * by broker_loose. */
static void await_stop(struct held *p, uint64_t deadline_ns, struct findings *f)
{
    while (p->n_stopped < p->threads.n) {
        int r = tracee_stop_by(p->threads.v[p->n_stopped], deadline_ns);
        if (r == 0) {
            p->n_stopped++;
            continue;
        }
        if (r == -ETIMEDOUT)
            blame_restless(p, f);
        drop_thread(p, p->n_stopped);
    }
}

static int stop_all(struct hold *h, struct findings *f, struct sg_error *e)
{
    uint64_t deadline = clock_ns() + STOP_NS;
    size_t asked = 1;
    int r = 0;

    for (int round = 0; asked > 0; round++) {
        r = ask_all(h, f, &asked);
        if (r < 0)
            return err_internal(e, r, "list a sandbox's processes");
        LIST_EACH(struct held, p, &h->all, link)
            await_stop(p, deadline, f);
        if (round == ROUNDS || clock_ns() > deadline) {
            findings_in_the_way(f, &nobody, "restless", "new processes are started all the time",
                                "end the program that starts them, or try again");
            return 0;
        }
    }
    return 0;
}

static int has_ended(pid_t inside, struct sg_error *e)
{
    return err_set(e, SG_ERR_GONE, -ESRCH, "kernel %d has ended", inside);
}

/* Stops a kernel in its idle read, or wherever it is after IDLE_NS. */
static int stop_kernel(struct held *p, struct findings *f, struct sg_error *e)
{
    struct held_kernel *k = p->kernel;
    pid_t pid = p->inspected.pid;
    uint64_t deadline = clock_ns() + IDLE_NS;
    int r;

    if (ask(p, pid, f) == 0)
        return has_ended(p->inspected.inside, e);
    for (;;) {
        await_stop(p, deadline + STOP_NS, f);
        if (p->n_stopped == 0)
            return 0;
        r = cpu_save(pid, &k->state);
        if (r < 0)
            return has_ended(p->inspected.inside, e);
        k->call_at = cpu_reading_from(pid, &k->state, CONTROL_FD);
        if (k->call_at || clock_ns() > deadline)
            return 0;
        p->n_stopped = 0;
        ptrace(PTRACE_CONT, pid, NULL, NULL);
        poll(NULL, 0, 1);
        ptrace(PTRACE_INTERRUPT, pid, NULL, NULL);
    }
}

static int stop_kernels(struct hold *h, const struct twin_request *q, const struct list *pairs,
                        struct findings *f, struct sg_error *e)
{
    int r = 0;

    for (uint32_t i = 0; i < q->n_kernels && r == 0; i++) {
        struct pair *pair = pair_find(pairs, q->owner, q->kernels[i]);
        struct inspected who = {.inside = q->kernels[i], .dir = -1};
        struct held *p;

        if (!pair) {
            findings_in_the_way(f, &who, "exec", "the kernel was made by a broker that has ended",
                                "restart the kernel: its variables are lost");
            continue;
        }
        who.pid = pair->k;
        if (held_find(h, pair->k))
            return err_set(e, SG_ERR_INVALID, -EINVAL, "kernel %d is named twice", q->kernels[i]);
        if (procfs_open(pair->k, &who.dir) < 0)
            return has_ended(q->kernels[i], e);
        p = held_new(h, &who);
        p->kernel = xcalloc(1, sizeof(*p->kernel));
        p->kernel->pair = pair;
        r = stop_kernel(p, f, e);
        if (r == 0 && procfs_status(who.dir, &p->inspected.status) < 0)
            r = has_ended(q->kernels[i], e);
    }
    return r;
}

/* ---- looking, and copying -------------------------------------------------------------------- */

/* Checks what can be wrong with a kernel only. */
static void judge_kernel(const struct held *p, struct findings *f)
{
    const struct pair *pair = p->kernel->pair;
    char text[48];

    if (p->threads.n != 1) {
        snprintf(text, sizeof(text), "%zu threads", p->threads.n);
        findings_in_the_way(
            f, &p->inspected, "thread", text,
            "end its threads (thread.join, pool.shutdown): only those of OpenBLAS, OpenMP, "
            "numexpr and joblib rest by themselves");
    } else if (pair->h == 0 || syscall(SYS_kcmp, pair->h, pair->k, KCMP_VM, 0UL, 0UL) != 0) {
        findings_in_the_way(f, &p->inspected, "exec",
                            "the process no longer runs the kernel's program",
                            "restart the kernel: its variables are lost");
    } else if (!p->kernel->call_at) {
        findings_in_the_way(f, &p->inspected, "cell", "a cell is running",
                            "wait until it has ended, or interrupt it");
    }
}

static int look_at_named(struct hold *h, struct held *p, struct findings *f)
{
    struct held_kernel *k = p->kernel;
    size_t before = f->n_in_the_way;
    int r;

    judge_kernel(p, f);
    if (f->n_in_the_way > before)
        return 0;
    r = look_at_kernel(&h->view, &p->inspected, f, &k->open_files, &k->shared);
    open_files_calls_own(&k->open_files, &p->remote_calls);
    return r;
}

static int look_at_unnamed(struct hold *h, struct held *p, struct findings *f)
{
    AUTO(free_p) char *cwd = NULL;
    int r = look_at_other(&h->view, &p->inspected, f, &cwd);

    if (cwd)
        open_files_calls_cwd(cwd, &p->remote_calls);
    return r;
}

static int look_at_all(struct hold *h, struct findings *f, struct sg_error *e)
{
    h->view.deadline_ns = clock_ns() + LOOK_NS;
    LIST_EACH(struct held, p, &h->all, link) {
        if (clock_ns() >= h->view.deadline_ns)
            break;
        if (p->threads.n == 0 && p->kernel && f->n_in_the_way == 0)
            return has_ended(p->inspected.inside, e);
        if (p->threads.n == 0)
            continue;
        if ((p->kernel ? look_at_named(h, p, f) : look_at_unnamed(h, p, f)) < 0)
            findings_in_the_way(f, &p->inspected, "process", "the process cannot be examined",
                                "end the process, or try again");
    }
    if (clock_ns() >= h->view.deadline_ns && f->n_in_the_way == 0)
        findings_in_the_way(f, &nobody, "restless",
                            "more processes and files than can be examined in a second",
                            "close files, or end processes");
    if (f->n_in_the_way > 0)
        return err_set(e, SG_ERR_LIMIT, -EBUSY, "%zu thing%s in the way of a copy: %s%s",
                       f->n_in_the_way, f->n_in_the_way == 1 ? " is" : "s are", f->first,
                       f->n_in_the_way == 1 ? "" : " and more");
    return 0;
}

int hold_copy(struct hold *h, int door, struct frozen_kernels *m, uint64_t *ret_memory,
              struct sg_error *e)
{
    int r = 0;

    LIST_EACH(struct held, p, &h->all, link) {
        struct held_kernel *k = p->kernel;
        if (!k || r < 0)
            continue;
        if (k->pair->tid == 0)
            r = source_learn_tid(p->inspected.pid, &k->state, k->call_at, &k->pair->tid, e);
        if (r < 0)
            return r;
        struct frozen_kernels_spec spec = {.h = k->pair->h,
                                           .k = &p->inspected,
                                           .state = &k->state,
                                           .call_at = k->call_at,
                                           .tid = k->pair->tid,
                                           .open_files = &k->open_files,
                                           .shared = &k->shared,
                                           .door = door};
        r = frozen_kernels_add(m, &spec, e);
        if (r == -ESRCH)
            k->pair->h = 0;
        *ret_memory += p->inspected.status.rss_bytes;
        kernel_done(p);
    }
    return r;
}

/* ---- from beginning to end ------------------------------------------------------------------- */

static int hold_new(const struct twin_request *q, const int *fds, struct hold **ret,
                    struct sg_error *e)
{
    struct hold *h = xcalloc(1, sizeof(*h));
    int root = fcntl(fds[TWIN_H_ROOT], F_DUPFD_CLOEXEC, 0), r;

    *h = (struct hold){.owner = q->owner,
                       .frozen_kernels = q->frozen_kernels,
                       .since_ns = clock_ns(),
                       .deadline_ns = clock_ns() + TWIN_HELD_MS * 1000000ull,
                       .members = fcntl(fds[TWIN_H_MEMBERS], F_DUPFD_CLOEXEC, 0),
                       .view.root = -1};
    r = root < 0 || h->members < 0 ? -errno : view_learn(root, &h->view);
    h->view.root = root;
    if (r < 0) {
        hold_free(h);
        return err_internal(e, r, "examine a sandbox");
    }
    *ret = h;
    return 0;
}

int hold_begin(const struct twin_request *q, const int *fds, const struct list *pairs,
               struct findings *f, struct hold **ret, struct sg_error *e)
{
    struct hold *h = NULL;
    int r = hold_new(q, fds, &h, e);

    if (r < 0)
        return r;
    r = stop_kernels(h, q, pairs, f, e);
    if (r == 0)
        r = stop_all(h, f, e);
    if (r == 0)
        r = look_at_all(h, f, e);
    if (r == 0)
        *ret = h;
    else
        hold_free(h);
    return r;
}

int hold_end(struct hold *h, bool moved, struct sg_error *e)
{
    int r = 0;

    LIST_EACH(struct held, p, &h->all, link) {
        struct sg_error one = {0};
        int r1 = 0;
        if (moved && p->remote_calls.n > 0 && p->threads.n > 0)
            r1 = remote_calls_make(p->threads.v[0], &p->remote_calls, &one);
        let_go(p);
        if (r1 < 0 && r == 0)
            r = err_set(e, SG_ERR_LIMIT, -EBUSY,
                        "process %d could not be moved to the new files: %.150s",
                        p->inspected.inside, one.message);
    }
    hold_free(h);
    return r;
}
