/* Starting and ending in steps, for owners with an event loop: see "in steps" in process.h. */
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/ipc/ipc.h"
#include "warden/providers/process/process_impl.h"
#include "warden/host/child.h"

#define END_NS 5000000000ull

static struct slot *slot_of(const struct instance *i)
{
    return &i->provider->slots[i->index];
}

int instance_pidfd(const struct instance *i)
{
    return i->pidfd >= 0 || i->n_twins == 0 ? i->pidfd : i->twins[0];
}

bool instance_was_killed(const struct instance *i)
{
    siginfo_t info = {0};

    return waitid(P_PIDFD, (id_t)i->pidfd, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_code == CLD_KILLED && info.si_status == SIGKILL;
}

/* Never waits for the line: it is a byte stream that the sandbox may leave unread. */
int instance_connect(struct instance *i, int channel_fd, struct sg_error *e)
{
    struct line_message m = {.what = LINE_CHANNEL};
    int r = fd_set_nonblock(i->channel, true);

    if (r == 0)
        r = ipc_send(i->channel, &m, sizeof(m), &channel_fd, 1);
    if (r < 0)
        return err_set(e, SG_ERR_GONE, r, "the sandbox cannot take a channel: %s", strerror(-r));
    return 0;
}

void instance_usage(struct instance *i, struct instance_stats *ret)
{
    struct cgroup *cg = slot_of(i)->cgroup;
    struct cgroup_usage usage;

    cg->ops->usage(cg, &usage);
    *ret = (struct instance_stats){.cpu_usec = usage.cpu_usec,
                                   .memory_bytes = usage.memory_bytes,
                                   .memory_cache = usage.memory_cache,
                                   .memory_reclaimable = usage.memory_reclaimable};
}

void instance_stats(struct instance *i, struct instance_stats *ret)
{
    struct slot *s = slot_of(i);
    struct cgroup_stats now;

    instance_usage(i, ret);
    cgroup_stats(s->cgroup, &now);
    ret->oom_kills = now.oom_kills - s->seen.oom_kills;
    ret->pids_hits = now.pids_hits - s->seen.pids_hits;
    ret->was_full = s->cgroup->ops->was_full(s->cgroup);
}

/* Releases the upper layer while the sandbox still has it: the last user removes the files, which
 * can be many, and that must not be the warden. */
void instance_end(struct instance *i, uint32_t siblings)
{
    struct cgroup *cg = slot_of(i)->cgroup;

    if (cg)
        cg->ops->hurry(cg, siblings);
    instance_kill_twins(i);
    netpath_done(&i->netpath);
    close_p(&i->channel);
    close_p(&i->userns);
    instance_files_done(i);
    if (i->frozen)
        cg->ops->kill(cg);
    child_kill(i->pidfd);
    i->end_deadline_ns = clock_ns() + END_NS;
}

/* pid 1 of the sandbox dies last: the kernel ends everything else in its pid namespace first. If
 * pid 1 does not die in time, the whole group is killed and waited for once more. A process that was
 * just being put into the group is killed, too, and takes a moment to leave. */
static int check_ended(struct instance *i, struct cgroup *cg, struct sg_error *e)
{
    int r = child_reap(&i->pidfd, NULL);

    if (r == 0 && !instance_drop_dead_twins(i))
        r = -EAGAIN;
    if (r == -EAGAIN && clock_ns() < i->end_deadline_ns)
        return -EAGAIN;
    if (r == -EAGAIN && cg && !i->hunted) {
        cg->ops->kill(cg);
        i->hunted = true;
        i->end_deadline_ns = clock_ns() + END_NS;
        return -EAGAIN;
    }
    if (r < 0)
        return err_set(e, SG_ERR_INTERNAL, -ETIMEDOUT,
                       "a sandbox does not end: its id range %u stays in use", slot_number(i));
    if (cg && !cg->ops->empty(cg)) {
        cg->ops->kill(cg);
        if (clock_ns() < i->end_deadline_ns)
            return -EAGAIN;
        return err_set(e, SG_ERR_INTERNAL, -EBUSY,
                       "control group %u is not empty after its sandbox", slot_number(i));
    }
    return 0;
}

int instance_ended(struct instance *i, struct sg_error *e)
{
    struct provider *p = i->provider;
    struct slot *s = slot_of(i);
    int r = check_ended(i, s->cgroup, e);

    if (r == -EAGAIN)
        return r;
    close_p(&i->pidfd);
    if (r < 0)
        slots_lose(&p->domain.slots, slot_number(i));
    s->used_by = NULL;
    uint32_t index = i->index;
    bool shares = i->shares;
    instance_forget_twins(i);
    worlds_release(i->world);
    free(i);
    return r < 0 ? r : places_give(p, index, shares, e);
}
