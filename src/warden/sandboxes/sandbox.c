#include "warden/sandboxes/sandbox.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "lib/base/clock.h"
#include "wire/ends.h"
#include "lib/log/log.h"
#include "warden/sandboxes/diff.h"
#include "warden/sandboxes/teardown.h"
#include "warden/sandboxes/sandbox_impl.h"
#include "warden/processes/domain_processes.h"
#include "warden/sandboxes/kernels.h"
#include "warden/sandboxes/zygotes.h"
#include "warden/server.h"
#include "warden/sandboxes/fork_start.h"

/* How many kernels a sandbox may ask for within ASKS_NS. */
#define ASKS_MAX 50
#define ASKS_NS  1000000000ull

/* ---- the table ------------------------------------------------------------------------------- */

struct sandbox *sandbox_find(struct server *s, const char *id)
{
    return MAP_FIND(struct sandbox, g, &s->sandboxes, hash_text(0, id), by_id,
                    strcmp(g->id, id) == 0);
}

const char *sandbox_tenant(const struct sandbox *g)
{
    return g->tenant;
}

bool sandbox_is_ending(const struct sandbox *g)
{
    return g->ending != 0;
}

static void drop_waiters(struct list *list)
{
    LIST_EACH(struct waiter, w, list, link)
        free(w);
}

static void sandbox_free(struct sandbox *g)
{
    struct server *s = g->server;

    map_remove(&s->sandboxes, &g->by_id);
    loop_timer_cancel(&s->loop, &g->timer);
    loop_unwatch(&s->loop, &g->process);
    loop_unwatch(&s->loop, &g->line);
    budget_give_back(&s->budget, &g->share, 0);
    snapshot_release(g->snapshot);
    snapshot_release(g->new_snapshot);
    checkpoint_release(g->fork.checkpoint);
    sandbox_volumes_done(&g->volumes);
    close_p(&g->fork.report);
    drop_waiters(&g->waiting);
    drop_waiters(&g->kills);
    close_p(&g->note);
    sandbox_network_done(g);
    free(g);
}

/* ---- a sandbox's instance -------------------------------------------------------------------- */

/* Finds whose limit made the kernel kill. The group of all sandboxes and the tenant's group tell of
 * it themselves. Else it was the sandbox's own limit, if that was reached since the last look; and
 * if not, the machine had no memory left at all. */
static void judge_kills(struct sandbox *g, const struct instance_stats *now)
{
    uint64_t n = now->oom_kills - g->oom.seen;

    if (n > 0 && pressure_full_ns(g->server) >= g->oom.looked_ns)
        g->oom.machine += n;
    else if (n > 0 && tenant_pool_full_ns(g->tenant_pool) >= g->oom.looked_ns)
        g->oom.tenant += n;
    else if (n > 0 && now->was_full)
        g->oom.own += n;
    else
        g->oom.machine += n;
    g->oom.seen = now->oom_kills;
    g->oom.looked_ns = clock_ns();
}

/* pid 1 has ended. Nobody inside can kill it. So if it was killed, and the kernel has killed for
 * want of memory here since the last look, it died of that. */
static enum order_end why_died(struct sandbox *g)
{
    struct instance_stats now;
    uint64_t machine = g->oom.machine, tenant = g->oom.tenant, own = g->oom.own;

    if (!OPS(g->instance)->was_killed(g->instance))
        return END_DIED;
    OPS(g->instance)->stats(g->instance, &now);
    judge_kills(g, &now);
    return g->oom.machine > machine ? END_MACHINE
           : g->oom.tenant > tenant ? END_TENANT
           : g->oom.own > own       ? END_MEMORY
                                    : END_DIED;
}

static void end_with_holder(struct sandbox *g)
{
    if (g->phase == BOOTING) {
        sandbox_mount_lost(g);
        return;
    }
    if (g->ending == 0)
        g->ending_text = "the holder of its tenant was killed";
    sandbox_end(g, END_FAILED);
}

static void on_process(struct loop_source *src, uint32_t events UNUSED)
{
    struct sandbox *g = CONTAINER_OF(src, struct sandbox, process);

    if (helper_holder_gone(g->tenant_pool))
        end_with_holder(g);
    else if (g->phase == BOOTING)
        sandbox_mount_lost(g);
    else
        sandbox_end(g, why_died(g));
}

/* The broker makes copies at no cost to the sandbox. So the rate is limited: beyond it, the agent
 * starts kernels itself. */
static bool may_ask(struct sandbox *g)
{
    uint64_t now = clock_ns();

    if (now - g->asks_since_ns >= ASKS_NS) {
        g->asks_since_ns = now;
        g->n_asks = 0;
    }
    return ++g->n_asks <= ASKS_MAX;
}

/* A sandbox that stands still, or that gets another root, would have the new kernel in its old
 * root. */
static bool may_get_kernel(const struct sandbox *g)
{
    return g->instance && !phase_rules[g->phase].no_kernels;
}

void sandbox_ask_again(struct sandbox *g)
{
    if (!g->asks || !may_get_kernel(g))
        return;
    g->asks = snapshot_world(g->snapshot)
                  ? !zygotes_want(g->tenant_pool, g->snapshot, g->instance, g->id)
                  : !kernels_want(g->tenant_pool, g->instance);
}

void sandbox_kernel_is_cold(struct sandbox *g, const char *why)
{
    struct order_answer a = {.tell = TELL_COLD};

    memcpy(a.id, g->id, sizeof(a.id));
    snprintf(a.message, sizeof(a.message), "%s", why);
    front_tell(g->server, &a, NULL, 0);
}

static void on_line(struct loop_source *src, uint32_t events UNUSED)
{
    struct sandbox *g = CONTAINER_OF(src, struct sandbox, line);
    struct sg_error e;
    enum line_news news;
    int code = 0, r = OPS(g->instance)->line_take(g->instance, &news, &code);

    if (r == 0 && news == LINE_ROOT_DONE)
        sandbox_happens(g, ON_ROOTED, &(struct happening){.r = code});
    else if (r == 0 && news == LINE_MOUNT_DONE)
        sandbox_mount_answered(g, code);
    else if (r == 0 && may_ask(g)) {
        g->asks = true;
        sandbox_ask_again(g);
    } else if (r == 0)
        OPS(g->instance)->kernels->refuse(g->instance, &e);
    else if (r != -EAGAIN)
        loop_unwatch(&g->server->loop, &g->line); /* its process tells of its end */
}

void sandboxes_ask_again(struct server *s, struct tenant_pool *w)
{
    MAP_EACH(struct sandbox, g, &s->sandboxes, by_id)
        if (g->tenant_pool == w)
            sandbox_ask_again(g);
}

uint32_t sandbox_step(struct sandbox *g)
{
    uint64_t now = clock_ns(), usec = (now - g->step_ns) / 1000;

    g->step_ns = now;
    return usec < UINT32_MAX ? (uint32_t)usec : UINT32_MAX;
}

void sandbox_adopt(struct sandbox *g, struct instance *i)
{
    g->instance = i;
    USER(i) = g;
    g->started_ns = g->oom.looked_ns = clock_ns();
    g->oom.seen = g->oom.own = g->oom.tenant = g->oom.machine = 0;
    g->process.fn = on_process;
    g->line.fn = on_line;
    loop_watch(&g->server->loop, &g->process, OPS(i)->process(i), EPOLLIN);
    loop_watch(&g->server->loop, &g->line, OPS(i)->line(i), EPOLLIN);
    g->step_ns = g->started_ns;
    sandbox_network_begin(g);
    g->steps.network = sandbox_step(g);
    if (!g->kernel || kernel_has(i))
        return;
    if (!snapshot_world(g->snapshot))
        kernels_feed(g->tenant_pool, i);
    else if (!zygotes_feed(g->tenant_pool, g->snapshot, i))
        zygotes_expect(g->tenant_pool, g->snapshot);
}

int sandbox_connect(struct sandbox *g, struct sg_error *e)
{
    int socks[2], r;

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, socks) < 0)
        return err_errno(e, "make a channel");
    r = OPS(g->instance)->connect(g->instance, socks[1], e);
    close(socks[1]);
    if (r == 0)
        return socks[0];
    close(socks[0]);
    return r;
}

static void add_usage(struct sandbox *g, const struct instance_stats *now, struct order_stats *ret)
{
    uint64_t kept = now->memory_bytes > now->memory_reclaimable
                        ? now->memory_bytes - now->memory_reclaimable
                        : 0;

    if (kept > g->memory_peak)
        g->memory_peak = kept;
    *ret = (struct order_stats){.cpu_usec = g->spent.cpu_usec + now->cpu_usec,
                                .memory_cache = now->memory_cache,
                                .memory_total = g->limits.memory_bytes,
                                .oom_kills = g->oom.own,
                                .tenant_kills = g->oom.tenant,
                                .machine_kills = g->oom.machine,
                                .pids_hits = now->pids_hits};
    if (now->memory_bytes > now->memory_cache)
        ret->memory_used = now->memory_bytes - now->memory_cache;
}

void sandbox_usage(struct sandbox *g, struct order_stats *ret)
{
    struct instance_stats now;

    *ret = g->spent;
    if (!g->instance)
        return;
    OPS(g->instance)->usage(g->instance, &now);
    add_usage(g, &now, ret);
}

/* Reads the sandbox's usage first: the counters start again at 0 for the next sandbox in its
 * group. */
void sandbox_drop_instance(struct sandbox *g, teardown_done done)
{
    struct instance *i = g->instance;

    sandbox_usage(g, &g->spent);
    budget_give_back(&g->server->budget, &g->share, g->memory_peak);
    g->memory_peak = 0;
    sandbox_network_end(g);
    USER(i) = NULL;
    loop_unwatch(&g->server->loop, &g->process);
    loop_unwatch(&g->server->loop, &g->line);
    loop_timer_cancel(&g->server->loop, &g->timer);
    g->instance = NULL;
    g->asks = false;
    g->volumes.pending = 0;
    teardown_begin(g->tenant_pool, i, done, g);
}

/* ---- a sandbox's end ------------------------------------------------------------------------- */

static void sandbox_ended(const struct sandbox *g, struct sandbox_ended *ret)
{
    *ret = (struct sandbox_ended){.why = g->ending, .text = g->ending_text};
    snprintf(ret->id, sizeof(ret->id), "%s", g->id);
    snprintf(ret->tenant, sizeof(ret->tenant), "%s", g->tenant);
}

static void describe_end(const struct sandbox_ended *end, struct order_answer *ret)
{
    *ret = (struct order_answer){.tell = TELL_ENDED, .end = end->why};
    snprintf(ret->id, sizeof(ret->id), "%s", end->id);
    snprintf(ret->tenant, sizeof(ret->tenant), "%s", end->tenant);
    snprintf(ret->message, sizeof(ret->message), "%s", end->text ? end->text : "");
}

static void answer_kills(struct sandbox *g)
{
    LIST_EACH(struct waiter, w, &g->kills, link)
        front_answer(g->server, &w->ticket, NULL, -1);
}

void action_gone(struct sandbox *g, const struct happening *h UNUSED)
{
    struct server *s = g->server;
    const struct end_kind *kind = end_kind(g->ending);
    struct sandbox_ended *end = &s->ends[s->ended++ % ENDS_KEPT];
    struct order_answer a;

    sandbox_ended(g, end);
    log_sandbox(kind->wanted ? LEVEL_DEBUG : LEVEL_WARN, kind->fault, g->id, "ended: %s",
                end_text(g->ending, g->ending_text));
    checkpoints_sandbox_gone(s, g->id);
    describe_end(end, &a);
    sandbox_usage(g, &a.stats);
    front_tell(s, &a, NULL, 0);
    answer_kills(g);
    sandbox_free(g);
}

/* If the instance is lost, that is logged, and the front hears that it is gone. */
static void on_gone(void *arg)
{
    sandbox_happens(arg, ON_GONE, NULL);
}

void action_end(struct sandbox *g, const struct happening *h)
{
    sandbox_abandon_job(g, h->was);
    if (g->instance)
        sandbox_drop_instance(g, on_gone);
    else
        sandbox_happens(g, ON_GONE, NULL);
}

void sandbox_end(struct sandbox *g, enum order_end why)
{
    if (g->ending == 0)
        g->ending = why;
    sandbox_happens(g, ON_END, NULL);
}

void sandbox_kill(struct sandbox *g, const struct ticket *t)
{
    struct waiter *w = xcalloc(1, sizeof(*w));

    w->ticket = *t;
    list_push(&g->kills, &w->link);
    sandbox_end(g, END_KILLED);
}

/* ---- a sandbox's beginning ------------------------------------------------------------------- */

void sandbox_describe(const struct sandbox *g, struct order_answer *ret)
{
    snprintf(ret->id, sizeof(ret->id), "%s", g->id);
    snprintf(ret->tenant, sizeof(ret->tenant), "%s", g->tenant);
    ret->deadline_ns = g->deadline_ns;
    ret->started_ns = g->started_ns;
    ret->state = phase_rules[g->phase == SAVING ? g->job.from : g->phase].told;
}

void sandbox_answer_not_started(struct sandbox *g, const struct happening *h)
{
    struct sg_error e = *h->e;

    if (e.kind == SG_ERR_INVALID || e.kind == SG_ERR_NOT_FOUND || e.kind == SG_ERR_DENIED)
        e.kind = SG_ERR_INTERNAL;
    front_answer_error(g->server, &g->job.ticket, h->r, &e);
    g->job.answered = true;
}

/* No front has been told of this sandbox yet, so none needs to hear of its end. */
void action_not_made(struct sandbox *g, const struct happening *h)
{
    sandbox_answer_not_started(g, h);
    sandbox_abandon_job(g, MAKING);
    answer_kills(g);
    sandbox_free(g);
}

void action_unwanted(struct sandbox *g, const struct happening *h)
{
    struct sg_error e = {0};
    int r = err_set(&e, SG_ERR_GONE, -ECANCELED, "the sandbox was ended before it had started");

    teardown_begin(g->tenant_pool, h->instance, NULL, NULL);
    action_not_made(g, &(struct happening){.r = r, .e = &e});
}

void action_failed(struct sandbox *g, const struct happening *h)
{
    bool clients = h->e->kind == SG_ERR_INVALID; /* a volume's path */
    struct sg_error e;
    int r = sandbox_judge(g, h, &e);

    log_sandbox(clients ? LEVEL_DEBUG : LEVEL_WARN, clients ? FAULT_CLIENT : FAULT_INFRASTRUCTURE,
                g->id, "%s", e.message);
    front_answer_error(g->server, &g->job.ticket, r, &e);
    g->job.answered = true;
    if (g->ending == 0)
        g->ending = clients ? END_KILLED : END_FAILED;
    action_end(g, h);
}

void sandbox_made(struct sandbox *g, uint32_t flags, int channel)
{
    struct order_answer a = {.flags = flags, .steps = g->steps};

    g->server->made++;
    g->server->pooled += g->steps.pooled;
    sandbox_describe(g, &a);
    front_answer(g->server, &g->job.ticket, &a, channel);
    close(channel);
    log_sandbox(LEVEL_DEBUG, FAULT_SANDBOX, g->id, "created");
}

void action_made(struct sandbox *g, const struct happening *h)
{
    sandbox_made(g, 0, h->fd);
}

static void on_made(void *arg, struct instance *i, const struct sg_error *e)
{
    struct sandbox *g = arg;
    struct happening h = {.instance = i, .r = i ? 0 : e->code, .e = e};
    struct sg_error own = {0};

    if (!i || g->ending || !ticket_valid(g->server, &g->job.ticket)) {
        sandbox_happens(g, i ? ON_UNWANTED : ON_NOT_STARTED, &h);
        return;
    }
    uint32_t usec = sandbox_step(g), files = g->request.files_usec;
    g->steps = (struct order_steps){
        .take = usec > files ? usec - files : 0, .files = files, .pooled = g->request.pooled};
    sandbox_adopt(g, i);
    if (g->fork.checkpoint) {
        sandbox_happens(g, ON_STARTED_BRANCH, &h);
        return;
    }
    if (g->volumes.n > 0) {
        sandbox_happens(g, ON_TO_MOUNT, NULL);
        return;
    }
    h = (struct happening){.fd = sandbox_connect(g, &own), .e = &own};
    h.r = h.fd < 0 ? h.fd : 0;
    sandbox_happens(g, h.fd < 0 ? ON_FAILED : ON_STARTED, &h);
}

void sandbox_moved(void *arg, struct tenant_pool *to)
{
    struct sandbox *g = arg;

    g->tenant_pool = to;
}

int sandbox_take_share(struct sandbox *g, struct sg_error *e)
{
    return budget_take(&g->server->budget, g->tenant, g->template, &g->share, e);
}

void sandbox_create(struct server *s, const struct ticket *t, const struct order *o,
                    struct snapshot *snapshot, struct checkpoint *checkpoint, int note,
                    const struct policy_text *policy, const struct sandbox_volumes *volumes)
{
    struct sandbox *g =
        NEW(struct sandbox, .server = s, .phase = MAKING,
            .snapshot = snapshot ? snapshot_use(snapshot) : NULL, .limits = o->limits, .note = note,
            .deadline_ns = o->deadline_ns, .on_expiry = (enum order_expiry)o->on_expiry,
            .kernel = (o->flags & ORDER_KERNEL) != 0 && !checkpoint,
            .fork = {.checkpoint = checkpoint ? checkpoint_use(checkpoint) : NULL, .report = -1},
            .volumes = *volumes, .process.fd = -1, .line.fd = -1, .step_ns = clock_ns(),
            .job = {.event = ON_STARTED, .ticket = *t, .order = *o});
    struct sg_error e = {0};
    int r;

    sandbox_network_init(g, policy);
    snprintf(g->id, sizeof(g->id), "%s", o->id);
    map_add(&s->sandboxes, &g->by_id, hash_text(0, g->id));
    snprintf(g->tenant, sizeof(g->tenant), "%s", o->tenant);
    /* All checkpoints share one name in the budget: there are many, with few sandboxes of each. */
    snprintf(g->template, sizeof(g->template), "%s", checkpoint ? "checkpoint" : o->snapshot);
    r = sandbox_take_share(g, &e);
    if (r == 0)
        r = tenant_pool_get(s, g->tenant, &g->tenant_pool, &e);
    if (r < 0) {
        sandbox_happens(g, ON_NOT_STARTED, &(struct happening){.r = r, .e = &e});
        return;
    }
    /* A branch gets its files when it runs, unless it needs a world from the start. */
    bool rooted = false, branch = checkpoint && !snapshot_world(g->snapshot);
    /* A fork start has kernels already, and volumes come before these. */
    struct instance *ready = checkpoint && checkpoint->fork_start && g->volumes.n == 0
                                 ? fork_start_take(steal_ptr(&checkpoint->fork_start),
                                                   g->tenant_pool, &g->limits, &rooted)
                                 : NULL;
    if (ready) {
        g->steps = (struct order_steps){.take = sandbox_step(g), .pooled = 1};
        sandbox_adopt(g, ready);
        sandbox_happens(g, ON_STARTED_BRANCH, &(struct happening){.ready = true, .rooted = rooted});
        return;
    }
    g->request = (struct tenant_pool_request){.limits = g->limits,
                                              .snapshot = branch ? NULL : g->snapshot,
                                              .bare = checkpoint != NULL,
                                              .done = on_made,
                                              .on_moved = sandbox_moved,
                                              .arg = g};
    tenant_pool_request(g->tenant_pool, &g->request);
}

/* ---- orders that are done at once ------------------------------------------------------------ */

void sandbox_note(struct sandbox *g, const struct ticket *t, int note)
{
    close_p(&g->note);
    g->note = note;
    front_answer(g->server, t, NULL, -1);
}

void sandbox_deadline(struct sandbox *g, const struct ticket *t, uint64_t deadline_ns,
                      enum order_expiry on_expiry)
{
    g->deadline_ns = deadline_ns;
    g->on_expiry = on_expiry;
    if (g->phase == RUNNING && deadline_ns)
        loop_timer_set(&g->server->loop, &g->timer, deadline_ns);
    else if (g->phase == RUNNING)
        loop_timer_cancel(&g->server->loop, &g->timer);
    front_answer(g->server, t, NULL, -1);
}

int sandbox_diff(const struct sandbox *g, struct snapshot *against, int list,
                 const struct ticket *t, struct sg_error *e)
{
    return diff_begin(g->server, g->instance, g->snapshot, against, list, t, e);
}

void sandbox_stats(struct sandbox *g, const struct ticket *t)
{
    struct order_answer a = {0};
    struct instance_stats now = {0};

    if (g->instance) {
        OPS(g->instance)->stats(g->instance, &now);
        judge_kills(g, &now);
    }
    sandbox_describe(g, &a);
    add_usage(g, &now, &a.stats);
    front_answer(g->server, t, &a, -1);
}

/* ---- all sandboxes --------------------------------------------------------------------------- */

void sandboxes_front_gone(struct server *s)
{
    MAP_EACH(struct sandbox, g, &s->sandboxes, by_id)
        if (!phase_rules[g->phase].known)
            sandbox_end(g, END_KILLED);
}

static void introduce(struct sandbox *g)
{
    struct order_answer a = {.tell = TELL_SANDBOX};
    struct sg_error e;
    int fds[2] = {g->note, -1};

    if (g->instance && g->phase != BOOTING) { /* who wanted it to boot is gone */
        fds[1] = sandbox_connect(g, &e);
        if (fds[1] < 0) {
            log_sandbox(LEVEL_WARN, FAULT_INFRASTRUCTURE, g->id, "%s", e.message);
            sandbox_end(g, END_FAILED);
            return;
        }
    }
    sandbox_describe(g, &a);
    sandbox_usage(g, &a.stats);
    lseek(g->note, 0, SEEK_SET);
    front_tell(g->server, &a, fds, fds[1] < 0 ? 1 : 2);
    close_p(&fds[1]);
}

/* A sandbox that is being made fails by itself, and if possible is made in another tenant pool. */
void sandboxes_holder_gone(struct server *s, struct tenant_pool *w)
{
    MAP_EACH(struct sandbox, g, &s->sandboxes, by_id)
        if (g->tenant_pool == w && g->instance)
            end_with_holder(g);
}

void sandboxes_introduce(struct server *s)
{
    MAP_EACH(struct sandbox, g, &s->sandboxes, by_id)
        if (phase_rules[g->phase].known && g->ending == 0)
            introduce(g);
}

static void tell_end(struct server *s, const struct sandbox_ended *end)
{
    struct order_answer a;

    describe_end(end, &a);
    front_tell(s, &a, NULL, 0);
}

void sandboxes_tell_ends(struct server *s)
{
    for (size_t i = 0; i < ENDS_KEPT; i++)
        if (s->ends[i].id[0])
            tell_end(s, &s->ends[i]);
    MAP_EACH(const struct sandbox, g, &s->sandboxes, by_id)
        if (g->ending != 0) {
            struct sandbox_ended end;

            sandbox_ended(g, &end);
            tell_end(s, &end);
        }
}

void sandboxes_count(const struct server *s, struct order_figures *ret)
{
    MAP_EACH(const struct sandbox, g, &s->sandboxes, by_id) {
        struct order_answer a = {0};

        if (!phase_rules[g->phase].counts)
            continue;
        sandbox_describe(g, &a);
        ret->running += a.state == STATE_RUNNING;
        ret->paused += a.state == STATE_PAUSED;
        ret->stored += a.state == STATE_STORED;
    }
}

void sandboxes_close(struct server *s)
{
    struct sandbox *g;

    while ((g = MAP_FIRST(struct sandbox, &s->sandboxes, by_id))) {
        sandbox_abandon_job(g, g->phase);
        sandbox_free(g);
    }
}
