/* Starts an instance: from a free slot to a running agent. See inside/stage/stage.h for the other
 * side. */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "lib/ipc/ipc.h"
#include "warden/providers/process/process_impl.h"
#include "warden/layers/mounts.h"
#include "inside/stage/defences.h"
#include "inside/stage/stage.h"

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
    int asked = domain_spawn_begin(&i->provider->domain, &order, e);
    i->spawning = asked == 0;
    return asked;
}

static int make_groups(struct instance *i, struct sg_error *e)
{
    struct slot *s = &i->provider->slots[i->index];
    int r;

    if (s->cgroup)
        return 0;
    r = cgroup_create(i->provider->place, slot_number(i), &s->cgroup, e);
    if (r == 0 && i->provider->account)
        r = s->cgroup->ops->account(s->cgroup, e);
    return r;
}

int instance_begin(struct provider *p, struct instance **ret, struct sg_error *e)
{
    struct instance *i;
    uint32_t index = 0;
    int r = places_take(p, &index, e);

    if (r < 0)
        return r;
    i = NEW(struct instance, .head.ops = p->head.ops, .provider = p, .index = index, .channel = -1,
            .pidfd = -1, .userns = -1, .old_root = -1, .netpath = NETPATH_NONE,
            .kernel_ends = {-1, -1, -1}, .kept_kernel = -1);
    p->slots[index].used_by = i;
    r = make_groups(i, e);
    if (r == 0)
        r = ask_spawner(i, e);
    if (r < 0) {
        instance_destroy(i, NULL);
        return r;
    }
    *ret = i;
    return 0;
}

int instance_await_spawned(struct instance *i, struct sg_error *e)
{
    struct domain_child child;
    int r = domain_spawn_finish(&i->provider->domain, &child, e);

    i->spawning = false;
    if (r < 0)
        return r;
    i->pidfd = child.pidfd;
    i->userns = child.userns;
    return 0;
}

/* The slot's last sandbox may have had another world. */
static int take_lowers(struct instance *i, struct sg_error *e)
{
    struct slot *s = &i->provider->slots[i->index];
    int r;

    if (s->lowers.template >= 0 && s->world == i->world)
        return 0;
    places_drop_lowers(i->provider, s);
    r = mounts_open_lowers(&i->provider->template, i->world ? i->world->mount : -1, i->userns,
                           &s->lowers, e);
    if (r == 0 && i->world) {
        s->world = i->world;
        s->world->users++;
    }
    return r;
}

static int apply_limits(struct instance *i, const struct sg_limits *limits, struct sg_error *e)
{
    struct slot *s = &i->provider->slots[i->index];
    struct cgroup *cg = s->cgroup;
    int r = 0;

    if (!DEFENCE_OMITTED(i->provider->omit, DEFENCE_CGROUP))
        r = cg->ops->set_limits(cg, limits, e);
    if (s->worn)
        cgroup_stats(cg, &s->seen);
    s->worn = true;
    return r;
}

/* All descriptors that the stage needs, in the order of struct stage_setup; the mounts come
 * first. */
struct fd_list {
    int fds[STAGE_FDS_MAX];
    size_t n;
};

static void fd_list_close(struct fd_list *l)
{
    for (size_t i = STAGE_FIXED_FDS; i < l->n; i++)
        close_p(&l->fds[i]);
}

static uint32_t whole_cpus(uint32_t milli)
{
    long here = sysconf(_SC_NPROCESSORS_ONLN);
    uint32_t n = milli <= 1000 ? 1 : (milli + 999) / 1000;

    return here > 0 && n > (uint32_t)here ? (uint32_t)here : n;
}

static uint32_t flags_of(const struct instance *i, const struct instance_spec *spec)
{
    return (spec->line ? STAGE_LINE : 0) | (spec->twins ? STAGE_TWINS : 0) |
           (i->world ? STAGE_WORLD : 0) | (i->bare ? STAGE_BARE : 0);
}

static int send_setup(struct instance *i, const struct instance_spec *spec, const struct layers *l,
                      uint32_t first_id, struct sg_error *e)
{
    struct stage_setup setup = {.magic = STAGE_MAGIC,
                                .n_mounts = (uint32_t)spec->n_mounts,
                                .pids = spec->limits.pids,
                                .cpus = i->cpus,
                                .flags = flags_of(i, spec),
                                .disk_bytes = spec->limits.disk_bytes};
    AUTO(fd_list_close)
    struct fd_list list = {.fds = {l->root, i->bare ? l->root : l->usr}, .n = STAGE_FIXED_FDS};
    int r = 0;

    for (size_t m = 0; r == 0 && m < spec->n_mounts; m++) {
        r = spec->open_mount(spec, m, first_id, &list.fds[list.n], e);
        list.n += r == 0;
    }
    if (r == 0 && l->scratch->place) {
        r = scratch_place_open_figures(l->scratch->place, &list.fds[list.n], e);
        list.n += r > 0 ? (size_t)r : 0;
        setup.flags |= r > 0 ? STAGE_SCRATCH_STORE : 0;
    }
    if (r < 0)
        return r;
    snprintf(setup.hostname, sizeof(setup.hostname), "%s", spec->hostname);
    for (size_t m = 0; m < spec->n_mounts; m++)
        snprintf(setup.targets[m], sizeof(setup.targets[m]), "%s", spec->mounts[m].target);
    r = ipc_send(i->channel, &setup, sizeof(setup), list.fds, list.n);
    if (r < 0 && r != -EPIPE) /* -EPIPE: it failed and has said why: read that */
        return err_set(e, SG_ERR_INTERNAL, r, "send the setup: %s", strerror(-r));
    return 0;
}

static int judge_reply(struct stage_reply *reply, struct sg_error *e)
{
    if (reply->code == 0)
        return 0;
    reply->message[sizeof(reply->message) - 1] = '\0';
    if (reply->kind <= SG_ERR_NONE || reply->kind >= SG_ERR_MAX_)
        reply->kind = SG_ERR_INTERNAL;
    return err_set(e, (enum sg_error_kind)reply->kind,
                   reply->code < 0 && reply->code != -EAGAIN ? reply->code : -EIO, "%s",
                   reply->message);
}

int instance_take_reply(struct instance *i, int channel_fd, struct sg_error *e)
{
    while (i->reply_len < sizeof(i->reply)) {
        ssize_t n = recv(channel_fd, (char *)&i->reply + i->reply_len,
                         sizeof(i->reply) - i->reply_len, MSG_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return -EAGAIN;
        if (n <= 0)
            return err_set(e, SG_ERR_INTERNAL, -EPIPE,
                           "the sandbox ended while it was being set up");
        i->reply_len += (size_t)n;
    }
    return judge_reply(&i->reply, e);
}

int instance_started(struct instance *i, struct sg_error *e)
{
    return instance_take_reply(i, i->channel, e);
}

uint32_t instance_first_id(const struct instance *i)
{
    bool shared = DEFENCE_OMITTED(i->provider->omit, DEFENCE_UIDS);

    return slot_first_id(shared ? i->provider->domain.slots.first + 1 : slot_number(i));
}

/* The second half of a start. Work that does not need the spawner's answer is done before waiting
 * for it. */
int instance_finish(struct instance *i, const struct instance_spec *spec, struct sg_error *e)
{
    struct provider *p = i->provider;
    bool unlimited = DEFENCE_OMITTED(p->omit, DEFENCE_DISK);
    struct mounts_spec ls = {.template = &p->template,
                             .share = p->share,
                             .first_id = instance_first_id(i),
                             .allow_suid = DEFENCE_OMITTED(p->omit, DEFENCE_NNP),
                             .disk_bytes = unlimited ? 0 : spec->limits.disk_bytes,
                             .disk_inodes = unlimited ? 0 : spec->limits.disk_inodes};
    AUTO(mounts_close) struct layers l = MOUNTS_NONE;
    int r = apply_limits(i, &spec->limits, e), r2;

    if (r == 0 && spec->world)
        r = worlds_use(p, spec->world, &i->world, e);
    ls.world = i->world ? i->world->mount : -1;
    i->bare = i->world && spec->layer && world_is_changed_by(*spec->layer, ".");
    if (r == 0)
        r = mounts_begin(&ls, &l, e);
    r2 = instance_await_spawned(i, r < 0 ? NULL : e);
    if (r == 0 && r2 == 0)
        r = take_lowers(i, e);
    if (r < 0 || r2 < 0)
        return r < 0 ? r : r2;
    i->pids = spec->limits.pids;
    i->cpus = whole_cpus(spec->limits.cpus_milli);
    i->disk_bytes = spec->limits.disk_bytes;
    ls.lowers = &p->slots[i->index].lowers;
    ls.layer = spec->layer ? *spec->layer : -1;
    ls.userns = i->userns;
    ls.keep = spec->line;
    ls.user_marks = p->user_marks && spec->line;
    r = mounts_finish(&ls, &l, e);
    if (r == 0 && spec->line) {
        i->scratch = scratch_use(l.scratch);
        i->scratch->discard = p->discard;
        i->scratch->discard_arg = p->discard_arg;
        memcpy(i->upper, l.upper, sizeof(i->upper));
    }
    i->bare |= l.usr < 0;
    if (r == 0)
        r = send_setup(i, spec, &l, ls.first_id, e);
    close(steal_fd(&i->userns));
    /* A one-shot does not need it any more, and closing it now costs no time: the sandbox is
     * busy. */
    if (p->n_slots == 1)
        lowers_close(&p->slots[i->index].lowers);
    return r;
}
