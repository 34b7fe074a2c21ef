#include "warden/processes/domain_processes.h"

#include "lib/log/log.h"
#include "warden/processes/faults.h"
#include "warden/sandboxes/sandbox.h"
#include "warden/server.h"
#include "warden/sandboxes/tenant_pool.h"

static const struct heartbeat_kind kinds[PROCESS_MAX_];

static struct tenant_pool *tenant_pool_of(struct heartbeat *b, enum process *ret)
{
    *ret = (enum process)(b->kind - kinds);
    return CONTAINER_OF(b - *ret, struct tenant_pool, hearts[0]);
}

bool helper_holder_gone(const struct tenant_pool *w)
{
    return OPS(w->provider)->helpers && OPS(w->provider)->helpers->holder_gone(w->provider);
}

/* A holder takes all processes of the domain along when it ends, and can be reaped only when they
 * have been. Frozen processes do not end by themselves. */
static void look_at_holder(struct tenant_pool *w)
{
    if (!list_linked(&w->hearts[PROCESS_HOLDER].link) || !helper_holder_gone(w))
        return;
    heartbeat_stop(&w->hearts[PROCESS_HOLDER]);
    fault_count(w->server, PROCESS_HOLDER, PROCESS_KILLED);
    log_line(LEVEL_ERROR, "the holder of a tenant was killed: all sandboxes of the tenant end");
    tenant_pool_give_up(w);
    sandboxes_holder_gone(w->server, w);
}

static void beat(struct heartbeat *b)
{
    enum process h;
    struct tenant_pool *w = tenant_pool_of(b, &h);

    look_at_holder(w);
    if (OPS(w->provider)->helpers->heard(w->provider, h))
        heartbeat_heard(b);
    OPS(w->provider)->helpers->beat(w->provider, h);
}

static void kill_helper(struct heartbeat *b, enum process_fault why UNUSED)
{
    enum process h;
    struct tenant_pool *w = tenant_pool_of(b, &h);

    log_line(LEVEL_ERROR, "%s %d is killed and replaced", process_name(b->kind->process), b->pid);
    w->hung[h] = true;
    OPS(w->provider)->helpers->kill(w->provider, h);
}

static void continue_helper(struct heartbeat *b, enum process_fault why UNUSED)
{
    enum process h;
    struct tenant_pool *w = tenant_pool_of(b, &h);

    log_line(LEVEL_WARN,
             "holder %d was stopped and is continued: its tenant's sandboxes depend on it", b->pid);
    OPS(w->provider)->helpers->go_on(w->provider, h);
}

static const struct heartbeat_kind kinds[PROCESS_MAX_] = {
    [PROCESS_HOLDER] = {.process = PROCESS_HOLDER, .beat = beat, .hung = continue_helper},
    [PROCESS_SPAWNER] = {.process = PROCESS_SPAWNER, .beat = beat, .hung = kill_helper},
    [PROCESS_BROKER] = {.process = PROCESS_BROKER, .beat = beat, .hung = kill_helper},
};

void helper_watch(struct tenant_pool *w, enum process h)
{
    if (!OPS(w->provider)->helpers)
        return;
    w->hung[h] = false;
    heartbeat_start(w->server, &w->hearts[h], &kinds[h],
                    OPS(w->provider)->helpers->pid(w->provider, h));
}

void helper_heard(struct tenant_pool *w, enum process h)
{
    heartbeat_heard(&w->hearts[h]);
}

void helper_ended(struct tenant_pool *w, enum process h)
{
    enum process p = kinds[h].process;
    char text[FAULT_TEXT];
    struct child_exit how;
    bool alone;

    if (!OPS(w->provider)->helpers)
        return;
    look_at_holder(w);
    alone = list_linked(&w->hearts[PROCESS_HOLDER].link);
    heartbeat_stop(&w->hearts[h]);
    OPS(w->provider)->helpers->ended(w->provider, h, &how);
    if (alone && !w->hung[h])
        fault_count_end(w->server, p, &how);
    fault_describe(&how, text);
    log_line(LEVEL_WARN, "the %s of a tenant has ended: it %s", process_name(p), text);
}

void domain_processes_stop(struct tenant_pool *w)
{
    for (enum process h = 0; h < PROCESS_MAX_; h++)
        heartbeat_stop(&w->hearts[h]);
}
