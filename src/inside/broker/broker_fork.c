/* Requests of live fork: see twin.h. */
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "inside/broker/broker.h"

static struct hold *hold_of(struct broker *b, uint64_t owner)
{
    return LIST_FIND(struct hold, h, &b->holds, link, h->owner == owner);
}

/* ---- holding --------------------------------------------------------------------------------- */

struct fds {
    int all[TWIN_HELD_FDS + TWIN_KERNELS_MAX];
    size_t n;
};

static void fds_close(struct fds *f)
{
    for (size_t i = 0; i < f->n; i++)
        close(f->all[i]);
}

static int describe(const struct frozen_kernels *m, struct twin_reply *reply, struct fds *fds,
                    struct sg_error *e)
{
    LIST_EACH(const struct frozen_kernel, k, &m->kernels, link) {
        int pidfd = (int)syscall(SYS_pidfd_open, k->source.pid, 0);
        if (pidfd < 0)
            return err_errno(e, "open the pidfd of a frozen kernel");
        fds->all[fds->n++] = pidfd;
        reply->kernels[reply->n_kernels++] = k->was;
    }
    return 0;
}

/* Stops the sandbox. On success `ret` has the report and the list of the files that kernels may
 * write to. */
static int begin(struct broker *b, const struct twin_request *q, const int *fds, struct fds *ret,
                 struct sg_error *e)
{
    AUTO(findings_done) struct findings f = {.more = 0};
    struct hold *h = NULL;
    int r, r2, report = -1, written = -1;

    if (hold_of(b, q->owner) || frozen_kernels_find(&b->frozen_kernels, q->frozen_kernels))
        return err_set(e, SG_ERR_INVALID, -EALREADY, "the sandbox is already being copied");
    findings_init(&f);
    r = hold_begin(q, fds, &b->pairs, &f, &h, e);
    if (r == 0 || r == -EBUSY) {
        r2 = findings_report(&f, &report, r < 0 ? NULL : e);
        if (r2 == 0)
            ret->all[ret->n++] = report;
        r = r < 0 ? r : r2;
    }
    if (h)
        list_push(&b->holds, &h->link);
    if (r == 0) {
        r = findings_written_list(&f, &written, e);
        if (r == 0)
            ret->all[ret->n++] = written;
    }
    return r;
}

static void tell_still(const struct twin_request *q, int written)
{
    struct twin_request still = {.op = TWIN_STILL, .seq = q->seq};
    struct twin_reply reply = {.frozen_kernels = q->frozen_kernels};

    broker_answer(&still, 0, NULL, &reply, &written, 1);
}

static void drop(struct frozen_kernels *m)
{
    list_remove(&m->link);
    frozen_kernels_end(m);
}

static int copy(struct broker *b, const struct twin_request *q, const int *fds,
                struct twin_reply *reply, struct fds *ret, struct sg_error *e)
{
    struct frozen_kernels *m = frozen_kernels_new(q->frozen_kernels, q->owner);
    int door = q->flags & TWIN_KEEP ? fds[TWIN_HOLD_FDS] : -1;
    int r = hold_copy(hold_of(b, q->owner), door, m, &reply->memory_bytes, e);

    list_push(&b->frozen_kernels, &m->link);
    if (r == 0)
        r = describe(m, reply, ret, e);
    if (r < 0)
        drop(m);
    return r;
}

static void let_go(struct broker *b, const struct twin_request *q)
{
    struct hold *h = hold_of(b, q->owner);

    if (h && h->frozen_kernels == q->frozen_kernels) {
        list_remove(&h->link);
        hold_end(h, false, NULL);
    }
}

void broker_hold(struct broker *b, const struct twin_request *q, const int *fds)
{
    AUTO(fds_close) struct fds along = {.n = 0};
    struct twin_reply reply = {.frozen_kernels = q->frozen_kernels, .kept = q->flags & TWIN_KEEP};
    bool told = false;
    struct sg_error e = {0};
    int r = begin(b, q, fds, &along, &e);

    if (r == 0 && (q->flags & TWIN_TELL)) {
        tell_still(q, along.all[TWIN_HELD_FDS - 1]);
        told = true;
    }
    if (r == 0)
        r = copy(b, q, fds, &reply, &along, &e);
    if (r < 0 && !told)
        let_go(b, q);
    broker_answer(q, r, &e, &reply, along.all, r == 0 ? along.n : along.n > 0);
}

static int go(struct broker *b, const struct twin_request *q, struct twin_reply *reply,
              struct sg_error *e)
{
    struct hold *h = hold_of(b, q->owner);
    uint64_t since;
    int r;

    if (!h)
        return err_set(e, SG_ERR_GONE, -ETIMEDOUT,
                       "the sandbox resumed by itself: the copy took too long");
    since = h->since_ns;
    list_remove(&h->link);
    r = hold_end(h, (q->flags & TWIN_MOVED) != 0, e);
    reply->held_usec = (uint32_t)((clock_ns() - since) / 1000);
    return r;
}

void broker_go(struct broker *b, const struct twin_request *q)
{
    struct twin_reply reply = {.frozen_kernels = q->frozen_kernels};
    struct sg_error e = {0};
    int r = go(b, q, &reply, &e);

    broker_answer(q, r, &e, &reply, NULL, 0);
}

/* ---- sets of frozen kernels ------------------------------------------------------------------ */

static void tell_lost(uint64_t number)
{
    struct twin_reply reply = {.frozen_kernels = number};

    broker_answer(&(struct twin_request){.op = TWIN_LOST}, 0, NULL, &reply, NULL, 0);
}

void broker_drop(struct broker *b, const struct twin_request *q)
{
    struct frozen_kernels *m = frozen_kernels_find(&b->frozen_kernels, q->frozen_kernels);

    if (m)
        drop(m);
}

/* The process has been reaped. The rest of its set is useless without it, so the whole set ends. */
bool broker_frozen_kernels_lost(struct broker *b, pid_t pid)
{
    struct frozen_kernels *m = frozen_kernels_of(&b->frozen_kernels, pid);

    if (!m)
        return false;
    frozen_kernel_remove(
        LIST_FIND(struct frozen_kernel, k, &m->kernels, link, k->source.pid == pid));
    tell_lost(m->number);
    drop(m);
    return true;
}

int broker_make_copy(struct broker *b, const struct twin_request *q, const int *fds,
                     struct kernel *ret, uint64_t *ret_tid, struct sg_error *e)
{
    struct frozen_kernels *m = frozen_kernels_find(&b->frozen_kernels, q->frozen_kernels);
    struct frozen_kernel *k = m ? frozen_kernel_of(m, q->was) : NULL;
    bool last = (q->flags & TWIN_LAST) != 0;
    pid_t h = 0;
    int r;

    if (!k)
        return err_set(e, SG_ERR_GONE, -ENOENT, "the copy of the kernel has ended");
    *ret_tid = k->source.thread.tid;
    r = frozen_kernels_prepare(k, q->n_doors, &b->filter, e);
    if (r < 0 && last)
        kill(k->source.pid, SIGKILL);
    if (r == 0)
        r = frozen_kernels_copy(k, last, &h, e);
    if (r == 0)
        r = kernel_make_from(&k->source, h, &b->chute, q, fds, ret, e);
    if (last)
        frozen_kernel_remove(k);
    if (list_empty(&m->kernels))
        drop(m);
    return r;
}

/* ---- without a request ----------------------------------------------------------------------- */

uint64_t broker_holds_deadline(const struct broker *b)
{
    uint64_t first = 0;

    LIST_EACH(const struct hold, h, &b->holds, link)
        if (first == 0 || h->deadline_ns < first)
            first = h->deadline_ns;
    return first;
}

void broker_look_at_holds(struct broker *b)
{
    uint64_t now = clock_ns();

    LIST_EACH(struct hold, h, &b->holds, link) {
        uint64_t number = h->frozen_kernels;
        struct frozen_kernels *m = frozen_kernels_find(&b->frozen_kernels, number);
        if (now < h->deadline_ns)
            continue;
        list_remove(&h->link);
        hold_end(h, false, NULL);
        if (m)
            drop(m);
        tell_lost(number);
    }
}

static bool is_ours(const struct broker *b, pid_t pid)
{
    return LIST_FIND(const struct pair, p, &b->pairs, link, p->h == pid) ||
           LIST_FIND(const struct hold, h, &b->holds, link, hold_has(h, pid)) ||
           pid == b->zygote.source.pid || pid == b->zygote.ahead ||
           frozen_kernels_of(&b->frozen_kernels, pid);
}

void broker_loose(struct broker *b, pid_t pid, int status)
{
    long signal = status >> 16 ? 0 : WSTOPSIG(status);

    if (!is_ours(b, pid))
        ptrace(PTRACE_DETACH, pid, NULL, (void *)signal);
}
