/* Frozen kernels: the provider's side of live fork (inside/broker/twin.h).
 *
 * The memory of a set of frozen kernels is charged to the group of the sandbox that it was made
 * from, or, if it is to be kept, to that of the zygote's home. The set must be gone before that
 * group is used again. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/fd.h"
#include "warden/providers/process/process_impl.h"
#include "warden/host/child.h"
#include "inside/broker/twin.h"

struct frozen_kernels_copies {
    struct list link;
    uint64_t number;
    struct instance *of; /* the instance whose group they are in */
    bool ended;          /* or was told to end */
    size_t n;
    struct {
        int32_t was;
        int pidfd;
    } all[TWIN_KERNELS_MAX];
};

uint64_t instance_serial(struct instance *i)
{
    if (i->serial == 0)
        i->serial = ++i->provider->kernel_seq;
    return i->serial;
}

static struct frozen_kernels_copies *find(struct provider *p, uint64_t number)
{
    return LIST_FIND(struct frozen_kernels_copies, m, &p->frozen_kernels, link,
                     m->number == number);
}

static void remove_copies(struct frozen_kernels_copies *m)
{
    list_remove(&m->link);
    while (m->n > 0)
        close_p(&m->all[--m->n].pidfd);
    free(m);
}

/* ---- asking ---------------------------------------------------------------------------------- */

static int add_root(const struct instance *i, struct ends *s, struct sg_error *e)
{
    int pid = child_pid(i->pidfd), fd;
    char path[40];

    if (pid <= 0)
        return err_set(e, SG_ERR_GONE, -ESRCH, "the sandbox has ended");
    snprintf(path, sizeof(path), "/proc/%d/root", pid);
    fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return err_errno(e, "open '%s'", path);
    s->fds[s->n++] = fd;
    return 0;
}

static struct cgroup *group_of(const struct instance *i)
{
    return i->provider->slots[i->index].cgroup;
}

/* Adds the home's first door: that of memory. */
static int add_door(const struct instance *home, struct ends *s, struct sg_error *e)
{
    AUTO(cgroup_doors_close) struct cgroup_doors doors = {.n = 0};
    int r = group_of(home)->ops->open_doors(group_of(home), &doors, e);
    if (r == 0)
        s->fds[s->n++] = steal_fd(&doors.fds[0]);
    return r;
}

static int hold(struct instance *i, const struct hold_spec *spec, uint64_t *ret_frozen_kernels,
                struct sg_error *e)
{
    struct provider *p = i->provider;
    AUTO(ends_close) struct ends s = {.n = 0};
    struct twin_request q = {.magic = TWIN_MAGIC,
                             .op = TWIN_HOLD,
                             .seq = ++p->kernel_seq,
                             .owner = instance_serial(i),
                             .frozen_kernels = ++p->kernel_seq,
                             .flags = TWIN_TELL | (spec->keep ? TWIN_KEEP : 0),
                             .n_kernels = (uint32_t)spec->n_kernels};
    int r;

    if (p->domain.broker_sock < 0 || (spec->keep && !p->home))
        return err_set(e, SG_ERR_UNSUPPORTED, -EOPNOTSUPP,
                       "kernels cannot be copied: warm kernels are off, or not loaded yet");
    if (i->hold_asked)
        return err_set(e, SG_ERR_GONE, -EALREADY, "the sandbox is already being copied");
    if (spec->n_kernels > TWIN_KERNELS_MAX)
        return err_set(e, SG_ERR_INVALID, -E2BIG, "%zu kernels: at most %d can be copied",
                       spec->n_kernels, TWIN_KERNELS_MAX);
    if (spec->n_kernels > 0)
        memcpy(q.kernels, spec->kernels, spec->n_kernels * sizeof(q.kernels[0]));
    instance_drop_dead_twins(i);
    if (spec->keep && p->home)
        instance_drop_dead_twins(p->home); /* forgets earlier ones in it that have ended */
    s.fds[s.n] = -1;
    r = cgroup_open_members(group_of(i), &s.fds[s.n], e);
    s.n++;
    if (r == 0)
        r = add_root(i, &s, e);
    if (r == 0 && spec->keep)
        r = add_door(p->home, &s, e);
    if (r == 0)
        r = broker_send(p, &q, &s, e);
    if (r < 0)
        return r;
    i->hold_asked = q.seq;
    i->shares = true;
    *ret_frozen_kernels = q.frozen_kernels;
    return 0;
}

static int go(struct instance *i, bool moved, struct sg_error *e)
{
    struct provider *p = i->provider;
    struct twin_request q = {.magic = TWIN_MAGIC,
                             .op = TWIN_GO,
                             .seq = ++p->kernel_seq,
                             .owner = instance_serial(i),
                             .flags = moved ? TWIN_MOVED : 0};
    int r = broker_send(p, &q, &(struct ends){.n = 0}, e);

    if (r == 0)
        i->hold_asked = q.seq;
    return r;
}

/* Ends a set; does nothing the second time. */
static void end_copies(struct provider *p, struct frozen_kernels_copies *m)
{
    struct twin_request q = {.magic = TWIN_MAGIC, .op = TWIN_DROP, .frozen_kernels = m->number};
    struct sg_error e;

    if (m->ended)
        return;
    m->ended = true;
    broker_send(p, &q, &(struct ends){.n = 0}, &e);
    for (size_t k = 0; k < m->n; k++)
        child_kill(m->all[k].pidfd);
}

static void drop(struct provider *p, uint64_t frozen_kernels)
{
    struct frozen_kernels_copies *m = find(p, frozen_kernels);

    if (m)
        end_copies(p, m);
}

/* ---- news of the broker ---------------------------------------------------------------------- */

static struct instance *asked_hold(struct provider *p, uint64_t seq)
{
    for (uint32_t n = 0; seq > 0 && n < p->n_slots; n++)
        if (p->slots[n].used_by && p->slots[n].used_by->hold_asked == seq)
            return p->slots[n].used_by;
    return NULL;
}

/* Notes a new set. fds: one for each kernel of the reply. of: the instance whose group they are in.
 * If they are to be kept, that is the home, whose door they were given. */
static void keep_copies(struct provider *p, const struct twin_reply *reply, int *fds,
                        struct instance *of)
{
    struct frozen_kernels_copies *m =
        NEW(struct frozen_kernels_copies, .number = reply->frozen_kernels, .of = of,
            .n = reply->n_kernels);

    for (size_t k = 0; k < m->n; k++) {
        m->all[k].was = reply->kernels[k];
        m->all[k].pidfd = steal_fd(&fds[k]);
    }
    list_push(&p->frozen_kernels, &m->link);
}

int frozen_kernels_take_held(struct provider *p, const struct twin_reply *reply, int *fds, size_t n,
                             struct kernel_news *ret, struct sg_error *e)
{
    struct instance *i = asked_hold(p, reply->seq), *of;
    int r = broker_judge(reply, e);

    *ret = (struct kernel_news){.kind = NEWS_HELD,
                                .instance = i,
                                .frozen_kernels = reply->frozen_kernels,
                                .report = -1,
                                .written = -1,
                                .memory_bytes = reply->memory_bytes};
    if (r == 0 && (reply->n_kernels > TWIN_KERNELS_MAX || n != TWIN_HELD_FDS + reply->n_kernels))
        r = err_set(e, SG_ERR_INTERNAL, -EPROTO, "the broker sent %zu descriptors", n);
    if (n > 0)
        ret->report = steal_fd(&fds[0]);
    if (n > 1)
        ret->written = steal_fd(&fds[1]);
    if (i)
        i->hold_asked = 0;
    if (r < 0)
        return r;
    ret->n_kernels = reply->n_kernels;
    memcpy(ret->kernels, reply->kernels, reply->n_kernels * sizeof(ret->kernels[0]));
    of = reply->kept ? p->home : i;
    if (of)
        keep_copies(p, reply, fds + TWIN_HELD_FDS, of);
    for (size_t k = TWIN_HELD_FDS; !of && k < n; k++)
        child_kill(fds[k]);
    if (of && of->end_deadline_ns != 0)
        end_copies(p, find(p, reply->frozen_kernels));
    return 0;
}

void frozen_kernels_take_still(struct provider *p, const struct twin_reply *reply, int *fds,
                               size_t n, struct kernel_news *ret)
{
    *ret = (struct kernel_news){
        .kind = NEWS_STILL, .instance = asked_hold(p, reply->seq), .report = -1, .written = -1};
    if (n > 0)
        ret->written = steal_fd(&fds[0]);
}

int frozen_kernels_take_went(struct provider *p, const struct twin_reply *reply,
                             struct kernel_news *ret, struct sg_error *e)
{
    struct instance *i = asked_hold(p, reply->seq);

    *ret = (struct kernel_news){.kind = NEWS_WENT,
                                .instance = i,
                                .report = -1,
                                .written = -1,
                                .held_usec = reply->held_usec};
    if (i)
        i->hold_asked = 0;
    return broker_judge(reply, e);
}

/* If the set was told to end, its end is no news. */
void frozen_kernels_take_lost(struct provider *p, uint64_t number, struct kernel_news *ret)
{
    struct frozen_kernels_copies *m = find(p, number);

    if (!m || m->ended)
        return;
    m->ended = true;
    *ret = (struct kernel_news){
        .kind = NEWS_LOST, .frozen_kernels = number, .report = -1, .written = -1};
}

void frozen_kernels_used_up(struct provider *p, uint64_t number, int32_t was)
{
    struct frozen_kernels_copies *m = find(p, number);

    for (size_t k = 0; m && k < m->n; k++)
        if (m->all[k].was == was) {
            close(m->all[k].pidfd);
            m->all[k] = m->all[--m->n];
            break;
        }
    if (m && m->n == 0)
        remove_copies(m);
}

void frozen_kernels_gone(struct provider *p)
{
    LIST_EACH(struct frozen_kernels_copies, m, &p->frozen_kernels, link)
        m->ended = true;
    for (uint32_t n = 0; n < p->n_slots; n++)
        if (p->slots[n].used_by)
            p->slots[n].used_by->hold_asked = 0;
}

/* ---- a sandbox ends -------------------------------------------------------------------------- */

void frozen_kernels_kill_of(struct instance *i)
{
    struct provider *p = i->provider;

    if (p->home == i)
        p->home = NULL;
    LIST_EACH(struct frozen_kernels_copies, m, &p->frozen_kernels, link)
        if (m->of == i)
            end_copies(p, m);
}

int frozen_kernels_wait_for(struct instance *i)
{
    struct provider *p = i->provider;

    LIST_EACH(struct frozen_kernels_copies, m, &p->frozen_kernels, link) {
        if (m->of != i || !m->ended)
            continue;
        if (m->n > 0)
            return steal_fd(&m->all[--m->n].pidfd);
        remove_copies(m);
    }
    return -1;
}

void frozen_kernels_forget(struct instance *i)
{
    struct provider *p = i->provider;

    LIST_EACH(struct frozen_kernels_copies, m, &p->frozen_kernels, link) {
        if (m->of == i)
            remove_copies(m);
    }
}

const struct provider_fork process_fork = {.hold = hold, .go = go, .drop = drop};
