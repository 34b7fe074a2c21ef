#include "provider/process.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "base/clock.h"
#include "base/fd.h"
#include "warden/cgroup.h"
#include "warden/child.h"
#include "warden/domain.h"
#include "warden/hostmount.h"
#include "warden/layers.h"
#include "warden/stage/layers.h"
#include "warden/stage/stage.h"
#include "warden/template.h"

#define START_MS 15000
#define END_MS   5000

/* What a slot keeps between the sandboxes it holds: making these again costs more than all the
 * rest. */
struct slot {
    struct cgroup *cgroup;
    int lower;                /* see layers_open_lower; -1: not yet */
    struct cgroup_stats seen; /* its counters never go back: what was there before */
    struct instance *used_by;
    bool worn; /* has held a sandbox */
    bool lost; /* something in it would not die */
};

struct provider {
    struct template template;
    struct domain domain;
    unsigned omit;
    struct instance *next; /* prepared ahead, its spawn begun but not finished; or NULL */
    uint32_t n_slots;
    uint32_t rotor; /* where to look for a free slot: round robin rests an id range before reuse */
    struct slot slots[];
};

struct instance {
    struct provider *provider;
    uint32_t index; /* into slots */
    int channel, pidfd, userns;
    bool frozen;
};

/* Being root is not always enough. Asked only when something was refused. */
static int explain_rights(int r, struct sg_error *e)
{
    AUTO(free_p) char *map = NULL;
    unsigned long long count = 0;
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct caps[2] = {0};

    if (file_read(AT_FDCWD, "/proc/self/uid_map", 4096, &map, NULL) == 0 &&
        sscanf(map, "%*u %*u %llu", &count) == 1 && count != UINT32_MAX)
        return err_set(
            e, SG_ERR_DENIED, r,
            "making sandboxes needs the host's root, not the root of a user namespace: see "
            "'sandglass doctor'");
    if (syscall(SYS_capget, &head, caps) == 0 && !(caps[0].effective & 1u << CAP_SYS_ADMIN))
        return err_set(e, SG_ERR_DENIED, r,
                       "making sandboxes needs root with CAP_SYS_ADMIN, which is missing here: see "
                       "'sandglass doctor'");
    return r;
}

int provider_open(uint32_t max_instances, unsigned omit, struct provider **ret, struct sg_error *e)
{
    struct provider *p;
    int r;

    if (geteuid() != 0)
        return err_set(e, SG_ERR_DENIED, -EPERM,
                       "making sandboxes needs root: run it with sudo, or as a root service");
    p = xcalloc(1, sizeof *p + max_instances * sizeof p->slots[0]);
    p->n_slots = max_instances;
    p->omit = omit;
    for (uint32_t i = 0; i < max_instances; i++)
        p->slots[i].lower = -1;
    r = domain_open(max_instances, &p->domain, e);
    if (r == 0) {
        r = template_open(&p->template, e);
        if (r < 0)
            domain_close(&p->domain);
    }
    if (r < 0) {
        free(p);
        return r == -EPERM ? explain_rights(r, e) : r;
    }
    *ret = p;
    return 0;
}

static int find_slot(struct provider *p, uint32_t *ret, struct sg_error *e)
{
    for (uint32_t n = 0; n < p->n_slots; n++) {
        uint32_t i = (p->rotor + n) % p->n_slots;
        if (p->slots[i].used_by || p->slots[i].lost)
            continue;
        p->rotor = (i + 1) % p->n_slots;
        *ret = i;
        return 0;
    }
    return err_set(e, SG_ERR_LIMIT, -EAGAIN,
                   "all %u sandboxes of this engine are in use: close one first", p->n_slots);
}

/* Index 0 of the domain's slots is its own. */
static uint32_t slot_number(const struct instance *i)
{
    return i->provider->domain.slots.first + i->index + 1;
}

static int ask_spawner(struct instance *i, struct sg_error *e)
{
    struct cgroup *cg = i->provider->slots[i->index].cgroup;
    AUTO(cgroup_doors_close) struct cgroup_doors doors = {.n = 0};
    AUTO(close_p) int theirs = -1;
    int socks[2], r = cg->ops->open_doors(cg, &doors, e);

    if (r < 0)
        return r;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, socks) < 0)
        return err_errno(e, "make the channel");
    i->channel = socks[0];
    theirs = socks[1];
    struct domain_order order = {.index = i->index + 1,
                                 .omit = i->provider->omit,
                                 .last = i->provider->n_slots == 1,
                                 .channel_fd = theirs,
                                 .cgroup_fds = doors.fds,
                                 .n_cgroups = doors.n};
    return domain_spawn_begin(&i->provider->domain, &order, e);
}

/* First half of creation: all that does not depend on whose sandbox it becomes. */
static int instance_begin(struct provider *p, struct instance **ret, struct sg_error *e)
{
    struct instance *i;
    uint32_t index = 0;
    int r = find_slot(p, &index, e);

    if (r < 0)
        return r;
    i = xcalloc(1, sizeof *i);
    *i = (struct instance){.provider = p, .index = index, .channel = -1, .pidfd = -1, .userns = -1};
    p->slots[index].used_by = i;
    if (!p->slots[index].cgroup)
        r = cgroup_create(slot_number(i), &p->slots[index].cgroup, e);
    if (r == 0)
        r = ask_spawner(i, e);
    if (r < 0) {
        instance_destroy(i, NULL);
        return r;
    }
    *ret = i;
    return 0;
}

static int await_spawned(struct instance *i, struct sg_error *e)
{
    struct slot *s = &i->provider->slots[i->index];
    struct domain_child child;
    int r = domain_spawn_finish(&i->provider->domain, &child, e);

    if (r < 0)
        return r;
    i->pidfd = child.pidfd;
    i->userns = child.userns;
    if (s->lower < 0)
        r = layers_open_lower(&i->provider->template, i->userns, &s->lower, e);
    return r;
}

static int apply_limits(struct instance *i, const struct sg_limits *limits, struct sg_error *e)
{
    struct slot *s = &i->provider->slots[i->index];
    struct cgroup *cg = s->cgroup;
    int r = 0;

    if (!LAYER_OMITTED(i->provider->omit, LAYER_CGROUP))
        r = cg->ops->set_limits(cg, limits, e);
    if (s->worn)
        cg->ops->stats(cg, &s->seen);
    s->worn = true;
    return r;
}

/* Everything the stage needs, in the order of struct stage_setup; the first are the layers'. */
struct fd_list {
    int fds[STAGE_FDS_MAX];
    size_t n;
};

static void fd_list_close(struct fd_list *l)
{
    for (size_t i = STAGE_FIXED_FDS; i < l->n; i++)
        close_p(&l->fds[i]);
}

static int add_mounts(const struct instance_spec *spec, uint32_t first_id, struct fd_list *list,
                      struct sg_error *e)
{
    for (size_t m = 0; m < spec->n_mounts; m++) {
        struct hostmount_spec hs = {.source = spec->mounts[m].source,
                                    .writable = spec->mounts[m].writable,
                                    .roots = spec->mount_roots,
                                    .first_id = first_id,
                                    .owner_inside = spec->mount_owner};
        int r = hostmount_open(&hs, &list->fds[list->n], e);
        if (r < 0)
            return r;
        list->n++;
    }
    return 0;
}

static int send_setup(struct instance *i, const struct instance_spec *spec, const struct layers *l,
                      uint32_t first_id, struct sg_error *e)
{
    struct stage_setup setup = {.magic = STAGE_MAGIC,
                                .n_mounts = (uint32_t)spec->n_mounts,
                                .pids = spec->limits.pids,
                                .disk_bytes = spec->limits.disk_bytes};
    AUTO(fd_list_close) struct fd_list list = {.fds = {l->root, l->usr}, .n = STAGE_FIXED_FDS};
    int r = add_mounts(spec, first_id, &list, e);

    if (r < 0)
        return r;
    snprintf(setup.hostname, sizeof setup.hostname, "%s", spec->hostname);
    for (size_t m = 0; m < spec->n_mounts; m++)
        snprintf(setup.targets[m], sizeof setup.targets[m], "%s", spec->mounts[m].target);
    r = fd_send(i->channel, &setup, sizeof setup, list.fds, list.n);
    if (r < 0 && r != -EPIPE) /* a sandbox that failed before has said why: read that instead */
        return err_set(e, SG_ERR_INTERNAL, r, "send the setup: %s", strerror(-r));
    return 0;
}

static int await_reply(int channel_fd, struct sg_error *e)
{
    uint64_t deadline = clock_ns() + START_MS * 1000000ull;
    struct stage_reply reply;
    size_t have = 0;

    while (have < sizeof reply) {
        struct pollfd p = {.fd = channel_fd, .events = POLLIN};
        int r = poll(&p, 1, clock_poll_ms(deadline));
        if (r == 0)
            return err_set(e, SG_ERR_INTERNAL, -ETIMEDOUT, "the sandbox did not start in %d s",
                           START_MS / 1000);
        ssize_t n = r < 0 ? -1 : recv(channel_fd, (char *)&reply + have, sizeof reply - have, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return err_set(e, SG_ERR_INTERNAL, -EPIPE,
                           "the sandbox ended while it was being set up");
        have += (size_t)n;
    }
    if (reply.code == 0)
        return 0;
    reply.message[sizeof reply.message - 1] = '\0';
    if (reply.kind <= SG_ERR_NONE || reply.kind >= SG_ERR_MAX_)
        reply.kind = SG_ERR_INTERNAL;
    return err_set(e, (enum sg_error_kind)reply.kind, reply.code < 0 ? reply.code : -EIO, "%s",
                   reply.message);
}

static uint32_t first_host_id(const struct instance *i)
{
    bool shared = LAYER_OMITTED(i->provider->omit, LAYER_UIDS);

    return slot_first_id(shared ? i->provider->domain.slots.first + 1 : slot_number(i));
}

/* Second half. What does not need the spawner's answer is done before waiting for it. */
static int instance_finish(struct instance *i, const struct instance_spec *spec, struct sg_error *e)
{
    struct provider *p = i->provider;
    bool unlimited = LAYER_OMITTED(p->omit, LAYER_DISK);
    struct layers_spec ls = {.template = &p->template,
                             .first_id = first_host_id(i),
                             .allow_suid = LAYER_OMITTED(p->omit, LAYER_NNP),
                             .disk_bytes = unlimited ? 0 : spec->limits.disk_bytes,
                             .disk_inodes = unlimited ? 0 : spec->limits.disk_inodes};
    AUTO(layers_close) struct layers l = LAYERS_NONE;
    int r = apply_limits(i, &spec->limits, e), r2;

    if (r == 0)
        r = layers_begin(&ls, &l, e);
    r2 = await_spawned(i, r < 0 ? NULL : e);
    if (r < 0 || r2 < 0)
        return r < 0 ? r : r2;
    ls.lower = p->slots[i->index].lower;
    ls.userns = i->userns;
    r = layers_finish(&ls, &l, e);
    if (r == 0)
        r = send_setup(i, spec, &l, ls.first_id, e);
    close(steal_fd(&i->userns));
    /* A one-shot has no use for it any more, and the sandbox is busy now. */
    if (p->n_slots == 1)
        close(steal_fd(&p->slots[i->index].lower));
    return r;
}

int instance_create(struct provider *p, const struct instance_spec *spec, struct instance **ret,
                    struct sg_error *e)
{
    struct instance *i = p->next;
    int r = 0;

    if (spec->n_mounts > STAGE_MOUNTS_MAX)
        return err_set(e, SG_ERR_INVALID, -E2BIG, "%zu mounts: at most %d are possible",
                       spec->n_mounts, STAGE_MOUNTS_MAX);
    p->next = NULL;
    if (!i)
        r = instance_begin(p, &i, e);
    if (r < 0)
        return r;
    r = instance_finish(i, spec, e);
    if (r < 0) {
        instance_destroy(i, NULL);
        return r;
    }
    *ret = i;
    return 0;
}

int instance_await(struct instance *i, int channel_fd, struct sg_error *e)
{
    struct provider *p = i->provider;
    int r = await_reply(channel_fd, e);

    /* One ahead, unless this is a one-shot. If it fails, the next creation will say so. */
    if (r == 0 && p->n_slots > 1 && !p->next)
        instance_begin(p, &p->next, NULL);
    return r;
}

int instance_take_channel(struct instance *i)
{
    return steal_fd(&i->channel);
}

void instance_events(struct instance *i, struct instance_events *ret)
{
    struct slot *s = &i->provider->slots[i->index];
    struct cgroup_stats now;

    s->cgroup->ops->stats(s->cgroup, &now);
    *ret = (struct instance_events){.memory_peak = now.memory_peak,
                                    .oom_kills = now.oom_kills - s->seen.oom_kills,
                                    .pids_hits = now.pids_hits - s->seen.pids_hits};
    s->seen = now;
}

int instance_freeze(struct instance *i, bool on, struct sg_error *e)
{
    struct cgroup *cg = i->provider->slots[i->index].cgroup;
    int r = cg->ops->freeze(cg, on, e);

    if (r == 0)
        i->frozen = on;
    return r;
}

void instance_kill(struct instance *i)
{
    child_kill(i->pidfd);
}

/* pid 1 of the sandbox dies last: the kernel ends everything else in its pid namespace first. */
static int end_processes(struct instance *i, struct cgroup *cg, struct sg_error *e)
{
    int r;

    if (i->frozen)
        cg->ops->kill(cg);
    r = child_end(&i->pidfd, END_MS);
    if (r == -ETIMEDOUT && cg) {
        cg->ops->kill(cg);
        r = child_end(&i->pidfd, END_MS);
    }
    if (r < 0)
        return err_set(e, SG_ERR_INTERNAL, r, "a sandbox does not end: its id range %u stays taken",
                       slot_number(i));
    if (cg && !cg->ops->empty(cg)) {
        cg->ops->kill(cg);
        return err_set(e, SG_ERR_INTERNAL, -EBUSY,
                       "control group %u is not empty after its sandbox", slot_number(i));
    }
    return 0;
}

int instance_destroy(struct instance *i, struct sg_error *e)
{
    struct slot *s = &i->provider->slots[i->index];
    int r;

    close_p(&i->channel);
    close_p(&i->userns);
    r = end_processes(i, s->cgroup, e);
    close_p(&i->pidfd);
    s->lost = r < 0;
    if (s->lost)
        slots_lose(&i->provider->domain.slots, slot_number(i));
    s->used_by = NULL;
    free(i);
    if (r == 0 && s->cgroup && !s->cgroup->ops->reusable) {
        r = s->cgroup->ops->destroy(s->cgroup, e);
        s->cgroup = NULL;
        s->worn = false;
        s->seen = (struct cgroup_stats){0};
    }
    return r;
}

static int slot_close(struct slot *s, struct sg_error *e)
{
    int r = s->used_by ? instance_destroy(s->used_by, e) : 0, r2 = 0;

    close_p(&s->lower);
    if (s->cgroup)
        r2 = s->cgroup->ops->destroy(s->cgroup, r < 0 ? NULL : e);
    return r < 0 ? r : r2;
}

int provider_close(struct provider *p, struct sg_error *e)
{
    int r = 0;

    if (!p)
        return 0;
    if (p->next)
        await_spawned(p->next, NULL);
    p->next = NULL;
    /* All of them get the signal before the first is waited for. */
    for (uint32_t i = 0; i < p->n_slots; i++)
        if (p->slots[i].used_by)
            child_kill(p->slots[i].used_by->pidfd);
    domain_kill(&p->domain);
    for (uint32_t i = 0; i < p->n_slots; i++) {
        int one = slot_close(&p->slots[i], r < 0 ? NULL : e);
        r = r < 0 ? r : one;
    }
    domain_close(&p->domain);
    template_close(&p->template);
    free(p);
    return r;
}
