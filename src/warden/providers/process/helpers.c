/* The helper processes of a domain, for those who watch them: see warden/host/domain.h. */
#include "warden/providers/process/process_impl.h"

static int pid(const struct provider *p, enum process h)
{
    return domain_helper_pid(&p->domain, h);
}

static void beat(struct provider *p, enum process h)
{
    domain_beat(&p->domain, h);
}

/* A message that waits in the spawner's socket is a sign of life too: reading it may be left to
 * idle work. */
static bool heard(struct provider *p, enum process h)
{
    return h == PROCESS_HOLDER ? domain_beat_answered(&p->domain, h)
                               : h == PROCESS_SPAWNER && domain_spawn_ready(&p->domain);
}

static void kill_helper(struct provider *p, enum process h)
{
    domain_helper_kill(&p->domain, h);
}

static void go_on(struct provider *p, enum process h)
{
    domain_helper_continue(&p->domain, h);
}

static bool holder_gone(const struct provider *p)
{
    return domain_holder_gone(&p->domain);
}

static void ended(struct provider *p, enum process h, struct child_exit *ret)
{
    domain_helper_ended(&p->domain, h, ret);
}

const struct provider_helpers process_helpers = {
    .pid = pid,
    .beat = beat,
    .heard = heard,
    .kill = kill_helper,
    .go_on = go_on,
    .holder_gone = holder_gone,
    .ended = ended,
};
