/* The calls that wait (warden/providers/waiting.h), made of the steps of the others. */
#include <poll.h>
#include <string.h>

#include "lib/base/clock.h"
#include "warden/host/cgroup_wait.h"
#include "warden/host/child.h"
#include "warden/providers/process/process_impl.h"
#include "warden/providers/waiting.h"

#define DEFAULT_HOSTNAME "sandbox"
#define START_MS         15000

/* Whether the spec differs from others in its limits only. */
static bool is_plain(const struct instance_spec *spec)
{
    return spec->n_mounts == 0 && !spec->layer && !spec->line &&
           strcmp(spec->hostname, DEFAULT_HOSTNAME) == 0;
}

/* Whether the next instance, prepared like the last, suits this spec. */
static bool same_as_last(const struct provider *p, const struct instance_spec *spec)
{
    return p->have_last && is_plain(spec) &&
           memcmp(&spec->limits, &p->last, sizeof(spec->limits)) == 0;
}

static void remember(struct provider *p, const struct instance_spec *spec)
{
    p->have_last = is_plain(spec);
    p->last = spec->limits;
}

/* Takes the instance that was prepared, or begins a new one. */
static int take_next(struct provider *p, const struct instance_spec *spec, struct instance **ret,
                     struct sg_error *e)
{
    struct instance *i = p->next;
    int r;

    p->next = NULL;
    if (i && !i->spawning && same_as_last(p, spec)) {
        *ret = i;
        return 0;
    }
    if (i && !i->spawning) {
        instance_destroy(i, NULL);
        i = NULL;
    }
    r = i ? 0 : instance_begin(p, &i, e);
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

static int instance_create(struct provider *p, const struct instance_spec *spec,
                           struct instance **ret, struct sg_error *e)
{
    int r;

    if (spec->n_mounts > STAGE_MOUNTS_MAX)
        return err_set(e, SG_ERR_INVALID, -E2BIG, "%zu mounts: at most %d are possible",
                       spec->n_mounts, STAGE_MOUNTS_MAX);
    r = take_next(p, spec, ret, e);
    if (r == 0)
        remember(p, spec);
    return r;
}

/* Waits for the sandbox's own word, on the channel, that it is up. */
static int await_reply(struct instance *i, int channel_fd, struct sg_error *e)
{
    uint64_t deadline = clock_ns() + START_MS * 1000000ull;
    int r;

    while ((r = instance_take_reply(i, channel_fd, e)) == -EAGAIN) {
        struct pollfd p = {.fd = channel_fd, .events = POLLIN};
        if (poll(&p, 1, clock_poll_ms(deadline)) == 0)
            return err_set(e, SG_ERR_INTERNAL, -ETIMEDOUT, "the sandbox did not start in %d s",
                           START_MS / 1000);
    }
    return r;
}

static int instance_await(struct instance *i, int channel_fd, struct sg_error *e)
{
    struct provider *p = i->provider;
    int r = await_reply(i, channel_fd, e);

    /* Prepares one ahead, unless this is a one-shot. If that fails, the next creation will say
     * so. */
    if (r == 0 && p->n_slots > 1 && !p->next)
        instance_begin(p, &p->next, NULL);
    return r;
}

static int instance_take_channel(struct instance *i)
{
    return steal_fd(&i->channel);
}

static void instance_events(struct instance *i, struct instance_events *ret)
{
    struct slot *s = &i->provider->slots[i->index];
    struct cgroup_stats now;

    cgroup_stats(s->cgroup, &now);
    *ret = (struct instance_events){.memory_peak = cgroup_peak(s->cgroup),
                                    .oom_kills = now.oom_kills - s->seen.oom_kills,
                                    .pids_hits = now.pids_hits - s->seen.pids_hits};
    s->seen = now;
}

static int instance_freeze(struct instance *i, bool on, struct sg_error *e)
{
    struct cgroup *cg = i->provider->slots[i->index].cgroup;
    int r = cgroup_freeze(cg, on, e);

    if (r == 0)
        i->frozen = on;
    return r;
}

static void instance_kill(struct instance *i)
{
    child_kill(i->pidfd);
}

/* Prepares the next instance while another ends, which takes the kernel a while. It is prepared
 * like the last one, because most are alike; a request for something else then starts anew. */
static void prepare_next(struct provider *p)
{
    struct instance_spec like = {.limits = p->last, .hostname = DEFAULT_HOSTNAME};

    if (!p->next || !p->next->spawning || !p->have_last || !domain_spawn_ready(&p->domain))
        return;
    if (instance_finish(p->next, &like, NULL) < 0) {
        struct instance *failed = p->next;
        p->next = NULL;
        instance_destroy(failed, NULL);
    }
}

static int destroy(struct instance *i, struct sg_error *e)
{
    instance_end(i, 0);
    prepare_next(i->provider);
    return instance_destroy(i, e);
}

const struct provider_waiting provider_waiting = {
    .ops = &process_provider,
    .create = instance_create,
    .take_channel = instance_take_channel,
    .await = instance_await,
    .events = instance_events,
    .pause = instance_freeze,
    .kill = instance_kill,
    .destroy = destroy,
};
