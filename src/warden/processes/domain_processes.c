#include "warden/processes/domain_processes.h"

#include "lib/log/log.h"
#include "warden/processes/faults.h"
#include "warden/sandboxes/sandbox.h"
#include "warden/server.h"
#include "warden/sandboxes/tenant_pool.h"

static const struct heartbeat_kind kinds[HELPER_MAX_];

static struct tenant_pool *tenant_pool_of(struct heartbeat *b, enum domain_helper *ret)
{
    *ret = (enum domain_helper)(b->kind - kinds);
    return CONTAINER_OF(b - *ret, struct tenant_pool, hearts[0]);
}

bool helper_holder_gone(const struct tenant_pool *w)
{
    return domain_holder_gone(provider_domain(w->provider));
}

/* A holder takes all processes of the domain along when it ends, and can be reaped only when they
 * have been. Frozen processes do not end by themselves. */
static void look_at_holder(struct tenant_pool *w)
{
    if (!w->hearts[HELPER_HOLDER].link || !helper_holder_gone(w))
        return;
    heartbeat_stop(&w->hearts[HELPER_HOLDER]);
    fault_count(w->server, PROCESS_HOLDER, PROCESS_KILLED);
    log_line(LEVEL_ERROR, "the holder of a tenant was killed: all its sandboxes end");
    tenant_pool_give_up(w);
    sandboxes_holder_gone(w->server, w);
}

/* A message that waits in the socket is a sign of life too: reading it may be left to idle work. */
static void beat(struct heartbeat *b)
{
    enum domain_helper h;
    struct tenant_pool *w = tenant_pool_of(b, &h);
    struct domain *d = provider_domain(w->provider);

    look_at_holder(w);
    if (h == HELPER_HOLDER ? domain_beat_answered(d, h)
                           : h == HELPER_SPAWNER && domain_spawn_ready(d))
        heartbeat_heard(b);
    domain_beat(d, h);
}

static void kill_helper(struct heartbeat *b, enum process_fault why)
{
    enum domain_helper h;
    struct tenant_pool *w = tenant_pool_of(b, &h);

    (void)why;
    log_line(LEVEL_ERROR, "%s %d is killed and replaced", process_name(b->kind->process), b->pid);
    w->hung[h] = true;
    domain_helper_kill(provider_domain(w->provider), h);
}

static void continue_helper(struct heartbeat *b, enum process_fault why)
{
    enum domain_helper h;
    struct tenant_pool *w = tenant_pool_of(b, &h);

    (void)why;
    log_line(LEVEL_WARN, "holder %d is continued: its tenant's sandboxes hang on it", b->pid);
    domain_helper_continue(provider_domain(w->provider), h);
}

static const struct heartbeat_kind kinds[HELPER_MAX_] = {
    [HELPER_HOLDER] = {.process = PROCESS_HOLDER, .beat = beat, .hung = continue_helper},
    [HELPER_SPAWNER] = {.process = PROCESS_SPAWNER, .beat = beat, .hung = kill_helper},
    [HELPER_BROKER] = {.process = PROCESS_BROKER, .beat = beat, .hung = kill_helper},
};

void helper_watch(struct tenant_pool *w, enum domain_helper h)
{
    w->hung[h] = false;
    heartbeat_start(w->server, &w->hearts[h], &kinds[h],
                    domain_helper_pid(provider_domain(w->provider), h));
}

void helper_heard(struct tenant_pool *w, enum domain_helper h)
{
    heartbeat_heard(&w->hearts[h]);
}

void helper_ended(struct tenant_pool *w, enum domain_helper h)
{
    enum process p = kinds[h].process;
    char text[FAULT_TEXT];
    struct child_exit how;
    bool alone;

    look_at_holder(w);
    alone = w->hearts[HELPER_HOLDER].link != NULL;
    heartbeat_stop(&w->hearts[h]);
    domain_helper_ended(provider_domain(w->provider), h, &how);
    if (alone && !w->hung[h])
        fault_count_end(w->server, p, &how);
    fault_describe(&how, text);
    log_line(LEVEL_WARN, "the %s of a tenant has ended: it %s", process_name(p), text);
}

void domain_processes_stop(struct tenant_pool *w)
{
    for (enum domain_helper h = 0; h < HELPER_MAX_; h++)
        heartbeat_stop(&w->hearts[h]);
}
