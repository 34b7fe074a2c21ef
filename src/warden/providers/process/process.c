#include "warden/providers/process/process_impl.h"

#include <poll.h>

#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "warden/host/child.h"
#include "warden/layers/mounts.h"
#include "inside/stage/stage.h"

#define LOOK_MS     5  /* where no descriptor tells of the end */
#define STRAY_LOOKS 20 /* each a millisecond later than the one before */

static int provider_open(const struct provider_setup *setup, struct provider **ret,
                         struct sg_error *e)
{
    uint32_t n = setup->max_instances;
    struct provider *p;
    int r;

    if (geteuid() != 0)
        return provider_probe(e);
    p = xcalloc(1, sizeof(*p) + n * sizeof(p->slots[0]));
    *p = (struct provider){.head.ops = &process_provider,
                           .n_slots = n,
                           .omit = setup->omit,
                           .account = setup->account,
                           .strict = setup->strict,
                           .user_marks = setup->user_marks,
                           .share = setup->share,
                           .discard = setup->discard,
                           .discard_mount = setup->discard_mount,
                           .discard_arg = setup->discard_arg};
    places_init(p);
    r = domain_open(n, &p->domain, e);
    if (r == 0) {
        r = template_open(&p->domain, &p->template, e);
        if (r == 0) {
            r = cgroup_place_open(setup->server, setup->tenant, &p->place, e);
            if (r < 0)
                template_close(&p->template);
        }
        if (r < 0)
            domain_close(&p->domain);
    }
    if (r < 0) {
        free(p);
        if (r == -EPERM)
            provider_probe(e); /* it knows why, mostly */
        return r;
    }
    *ret = p;
    return 0;
}

int instance_destroy(struct instance *i, struct sg_error *e)
{
    int r;

    instance_end(i, 0);
    while ((r = instance_ended(i, e)) == -EAGAIN) {
        struct pollfd p = {.fd = instance_pidfd(i), .events = POLLIN};
        poll(&p, 1, p.fd < 0 ? LOOK_MS : clock_poll_ms(i->end_deadline_ns));
    }
    return r;
}

static int slot_close(struct slot *s, struct sg_error *e)
{
    int r = s->used_by ? instance_destroy(s->used_by, e) : 0, r2 = 0;

    lowers_close(&s->lowers);
    if (s->cgroup)
        r2 = cgroup_destroy(s->cgroup, r < 0 ? NULL : e);
    return r < 0 ? r : r2;
}

/* Reaps the child that the spawner was cloning when it died: nobody has its pidfd, and the holder
 * cannot end before it. */
static void end_strays(struct domain *d)
{
    struct pollfd holder = {.fd = d->holder_pidfd, .events = POLLIN};

    domain_kill(d);
    for (int i = 0; i < STRAY_LOOKS && poll(&holder, 1, i) == 0; i++)
        child_reap_strays();
}

static int provider_close(struct provider *p, struct sg_error *e)
{
    int r = 0;

    if (!p)
        return 0;
    if (p->domain.spawner_pidfd < 0)
        end_strays(&p->domain);
    for (uint32_t i = 0; i < p->n_slots; i++)
        if (p->slots[i].used_by && p->slots[i].used_by->spawning)
            instance_await_spawned(p->slots[i].used_by, NULL);
    /* Kills all instances before it waits for the first. */
    for (uint32_t i = 0; i < p->n_slots; i++)
        if (p->slots[i].used_by)
            child_kill(p->slots[i].used_by->pidfd);
    domain_kill(&p->domain);
    for (uint32_t i = 0; i < p->n_slots; i++) {
        int one = slot_close(&p->slots[i], r < 0 ? NULL : e);
        r = r < 0 ? r : one;
    }
    while (late_close(&p->late))
        ;
    worlds_close(p);
    domain_close(&p->domain);
    template_close(&p->template);
    cgroup_place_close(p->place);
    free(p);
    return r;
}

static int limit_memory(struct provider *p, uint64_t bytes, struct sg_error *e)
{
    return cgroup_place_limit(p->place, bytes, e);
}

static uint64_t memory(const struct provider *p)
{
    return cgroup_place_uses(p->place);
}

static uint64_t ooms(struct provider *p)
{
    return cgroup_place_ooms(p->place);
}

/* Of the mounts of old roots one is closed at a time: each takes the kernel a while. */
static bool idle(struct provider *p)
{
    return late_close(&p->late);
}

static int spawner_fd(const struct provider *p)
{
    return p->domain.spawner_sock;
}

static bool begun(struct provider *p)
{
    return domain_spawn_ready(&p->domain);
}

static int line(const struct instance *i)
{
    return i->channel;
}

static int pause_ask(struct instance *i, bool on, struct sg_error *e)
{
    struct cgroup *cg = i->provider->slots[i->index].cgroup;
    int r = cgroup_ask_freeze(cg, on, e);

    if (r == 0)
        i->frozen = on;
    return r;
}

static bool paused(struct instance *i)
{
    struct cgroup *cg = i->provider->slots[i->index].cgroup;

    return cg->ops->frozen(cg);
}

static uint64_t end_deadline(const struct instance *i)
{
    return i->end_deadline_ns;
}

const struct provider_ops process_provider = {
    .name = "process",
    .probe = provider_probe,
    .open = provider_open,
    .close = provider_close,
    .limit_memory = limit_memory,
    .memory = memory,
    .ooms = ooms,
    .idle = idle,
    .trim = places_trim,
    .begin = instance_begin,
    .fd = spawner_fd,
    .begun = begun,
    .finish = instance_finish,
    .line = line,
    .started = instance_started,
    .connect = instance_connect,
    .line_take = instance_line_take,
    .stats = instance_stats,
    .usage = instance_usage,
    .pause = pause_ask,
    .paused = paused,
    .process = instance_pidfd,
    .was_killed = instance_was_killed,
    .end = instance_end,
    .end_deadline = end_deadline,
    .ended = instance_ended,
    .helpers = &process_helpers,
    .network = &process_network,
    .kernels = &process_kernels,
    .files = &process_files,
    .fork = &process_fork,
    .mount = instance_mount,
};
