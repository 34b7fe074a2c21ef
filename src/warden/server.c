#include "warden/server.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>

#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/base/fds.h"
#include "lib/log/log.h"
#include "warden/providers/provider.h"
#include "warden/sandboxes/teardown.h"
#include "warden/sandboxes/discard.h"
#include "warden/processes/guard_process.h"
#include "warden/sandboxes/sandbox.h"
#include "warden/sandboxes/snapshot.h"
#include "warden/sandboxes/volume.h"
#include "warden/sandboxes/checkpoint.h"
#include "warden/processes/notify.h"
#include "warden/orders.h"
#include "warden/sandboxes/tenant_pool.h"
#include "warden/processes/workers.h"
#include "warden/host/cgroup_place.h"
#include "warden/host/privileges.h"
#include "warden/host/slots.h"
#include "warden/layers/attach.h"
#include "warden/layers/scratch_store.h"

#define DRAIN_GRACE_NS 10000000000ull /* for the front's work after the last answer */
#define GUARD_GRACE_MS 2000           /* the guard has its record to finish */
#define OOM_SCORE      "-900"

/* State of the main loop, which the parts of the server do not share. */
struct run {
    struct server server;
    const struct serve_call *call;
    struct loop_source signals;
    struct loop_timer patience; /* draining: when it is given up */
    bool draining, over;
    bool reading, read_again; /* the settings; again: a signal came meanwhile */
};

/* ---- the budget ------------------------------------------------------------------------------ */

/* If the new limit is below the memory in use, some kernels refuse it, and none enforces it at
 * once. */
static void set_budget(struct server *s)
{
    struct sg_error e = {0};
    uint64_t wanted = s->settings.machine_memory;

    s->budget.limit = wanted ? wanted : budget_of_machine(pressure_machine());
    s->budget.tenant_limit = s->settings.tenant_memory;
    if (cgroup_place_limit(s->place, s->budget.limit, &e) < 0)
        log_line(LEVEL_WARN, "%s", e.message);
    tenant_pools_limit(s);
}

/* ---- signals --------------------------------------------------------------------------------- */

static void take_settings(struct server *s, struct settings_answer *a)
{
    free(s->told);
    s->told = a;
    s->settings = a->settings;
    log_set(&s->settings);
}

static void reload(struct run *run);

static void on_settings(struct server *s, struct settings_answer *a)
{
    struct run *run = CONTAINER_OF(s, struct run, server);
    AUTO(serve_texts_done) struct serve_texts texts = {0};
    int r = a->r;

    run->reading = false;
    for (size_t i = 0; r == 0 && i < a->n_changed; i++)
        log_line(LEVEL_WARN, "the setting %s has changed: restart the server to apply it",
                 a->changed[i]);
    if (r == 0 && !a->settings.tls_cert[0] != !s->texts.cert.text)
        r = err_set(&a->error, SG_ERR_INVALID, -EINVAL,
                    "TLS can only be switched on or off by a restart");
    if (r == 0)
        r = serve_texts_read(&a->settings, &texts, &a->error);
    if (r < 0) {
        log_line(LEVEL_ERROR, "the settings were not reloaded, the old ones stay in force: %s",
                 a->error.message);
        free(a);
    } else {
        serve_texts_done(&s->texts);
        s->texts = texts;
        texts = (struct serve_texts){0};
        take_settings(s, a);
        set_budget(s);
        tenant_pools_renew(s);
        guard_tell_settings(s);
        orders_tell_settings(s);
        log_line(LEVEL_INFO, "the settings were reloaded");
    }
    if (run->read_again)
        reload(run);
}

/* One child at a time, so that the last signal's settings are the last that are applied. */
static void reload(struct run *run)
{
    run->read_again = run->reading;
    if (run->reading)
        return;
    run->reading = true;
    serve_read_settings(&run->server, run->call, &run->server.settings, on_settings);
}

static void on_patience(struct loop_timer *timer)
{
    struct run *run = CONTAINER_OF(timer, struct run, patience);

    log_line(LEVEL_WARN, "the front has not finished in time and is killed");
    run->over = true;
}

static void close_listeners(struct server *s)
{
    while (s->n_listeners > 0)
        close(s->listeners[--s->n_listeners]);
}

/* The listeners stay open: the front tells new clients when to come again. */
static void drain(struct run *run)
{
    uint64_t drain_ns = run->server.settings.drain_timeout_ms * 1000000ull;

    if (run->draining) {
        log_line(LEVEL_INFO, "second signal to end: ending now");
        run->over = true;
        return;
    }
    run->draining = true;
    log_line(LEVEL_INFO, "draining: new work is refused, requests under way have %llu s",
             (unsigned long long)(drain_ns / 1000000000));
    notify_tell("STOPPING=1");
    front_process_drain(&run->server);
    run->patience.fn = on_patience;
    loop_timer_set(&run->server.loop, &run->patience, clock_ns() + drain_ns + DRAIN_GRACE_NS);
}

static void on_signal(struct loop_source *src, uint32_t events UNUSED)
{
    struct run *run = CONTAINER_OF(src, struct run, signals);
    struct signalfd_siginfo info;

    if (read(src->fd, &info, sizeof(info)) != sizeof(info))
        return;
    if (info.ssi_signo == SIGHUP)
        reload(run);
    else
        drain(run);
}

static int watch_signals(struct run *run, struct sg_error *e)
{
    sigset_t set;
    int fd;

    sigemptyset(&set);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd < 0)
        return err_errno(e, "make a signalfd");
    run->signals = (struct loop_source){.fd = -1, .fn = on_signal};
    loop_watch(&run->server.loop, &run->signals, fd, EPOLLIN);
    return 0;
}

/* ---- start and end --------------------------------------------------------------------------- */

/* Makes the kernel kill this process, and those that it starts, last when memory is short. That
 * takes CAP_SYS_RESOURCE; without it, processes in sandboxes still have a higher score
 * (warden/host/domain.c). */
static void survive_oom(void)
{
    if (file_write(AT_FDCWD, "/proc/self/oom_score_adj", OOM_SCORE) < 0)
        log_line(LEVEL_DEBUG, "the server cannot lower its own oom_score_adj");
}

/* Raises the limit of descriptors, because a sandbox takes about fifteen; and forbids core dumps,
 * because one would contain the server's key. */
static void set_limits(void)
{
    struct rlimit none = {0};

    umask(022);
    setrlimit(RLIMIT_CORE, &none);
    fds_raise_limit();
}

static void on_no_room(void)
{
    log_line(LEVEL_WARN, "no room to watch another descriptor: until there is some, nothing new "
                         "is begun (see fs.epoll.max_user_watches)");
}

static void on_idle(struct loop *l)
{
    struct server *s = CONTAINER_OF(l, struct server, loop);

    if (discards_idle(s) || tenant_pools_idle(s))
        loop_want_idle(l);
}

/* Removes what a killed server has left: processes, groups, id ranges. Leaves those of running
 * servers alone. */
static void sweep(void)
{
    struct sg_error e = {0};
    int n = slots_sweep_all(&e);

    if (n < 0)
        log_line(LEVEL_WARN, "%s", e.message);
    else if (n > 0)
        log_line(LEVEL_INFO, "cleaned up after a server that was killed: %d id ranges", n);
}

static void choose_path(struct server *s)
{
    static const enum egress_path wishes[] = {[EGRESS_PATH_AUTO] = 0,
                                              [EGRESS_PATH_SK_LOOKUP] = PATH_SK_LOOKUP,
                                              [EGRESS_PATH_TPROXY] = PATH_TPROXY,
                                              [EGRESS_PATH_REDIRECT] = PATH_REDIRECT};
    struct sg_error e = {0};
    char why[NETWORK_WHY];

    netpath_use(&s->prepared.plan);
    if (!s->provider->network)
        return;
    if (s->provider->network->choose(wishes[s->settings.egress_path], &s->path, why, &e) < 0)
        log_line(LEVEL_ERROR, "sandboxes will have no network: %s", e.message);
    else if (why[0])
        log_line(LEVEL_WARN, "sandboxes' connections take a slower path: %s", why);
}

static int start_state(struct server *s, bool anew, struct sg_error *e)
{
    int r = state_open(&s->state, s->settings.state, e);

    if (r == 0)
        r = state_check_database(&s->state, anew, e);

    if (r == 0)
        r = state_give(&s->state, s->front.dir, s->front.uid, s->front.gid, e);
    if (r == 0)
        r = state_give(&s->state, s->guard.dir, s->guard.uid, s->guard.gid, e);
    if (r == 0 && !s->state.maps_ids)
        log_line(LEVEL_WARN,
                 "the file system of '%s' has no id-mapped mounts: snapshots and pauses without "
                 "memory will be refused; use a --state on ext4, xfs or btrfs",
                 s->state.path);
    return r;
}

/* Starts the guard first, so that the front finds it. A server without a guard still serves;
 * nothing leaves its sandboxes. */
static int start_child_programs(struct server *s, struct sg_error *e)
{
    struct sg_error own = {0};

    if (child_program_start(&s->guard, &own) < 0)
        log_line(LEVEL_ERROR, "sandboxes have no network for now: %s", own.message);
    workers_start(s);
    int r = child_program_start(&s->front, e);
    if (r == 0)
        workers_say_trouble(s);
    return r;
}

/* Tries once, before anybody is let in, what every sandbox needs: control groups, and a domain with
 * its namespaces. If they cannot be had, no later start succeeds either. */
static int try_host(struct server *s, struct sg_error *e)
{
    struct provider_setup setup = {.max_instances = 1, .server = s->state.name, .tenant = "start"};
    struct provider *p = NULL;
    int r = s->provider->probe(e);

    if (r == 0)
        r = cgroup_place_open(s->state.name, NULL, &s->place, e);
    if (r == 0)
        r = s->provider->open(&setup, &p, e);
    if (r == 0)
        return OPS(p)->close(p, e);
    if (e->kind != SG_ERR_LIMIT)
        e->kind = SG_ERR_UNSUPPORTED;
    return err_wrap(e, r, "no sandbox can be made on this host");
}

/* Sandboxes have their disks in memory if there is no scratch store. Says so in the log, and for `sandglass
 * doctor`. */
static void open_scratch_store(struct server *s)
{
    bool chosen = s->settings.worlds_disk == SETTINGS_AUTO;
    struct scratch_store_spec spec = {.dir = s->state.dir,
                                      .bytes =
                                          chosen ? SCRATCH_STORE_AUTO : s->settings.worlds_disk,
                                      .maker = slot_first_id(s->files.slot.first),
                                      .discard = discard,
                                      .discard_arg = s};
    struct sg_error e = {0};
    char said[DISKS_MAX] = "in memory\n";
    int r = spec.bytes == 0 ? 0 : -EOPNOTSUPP;

    if (r < 0 && s->state.maps_ids && !files_workers_serve(s, s->state.snapshots))
        err_set(&e, SG_ERR_UNSUPPORTED, r, "the state directory has no user attributes");
    else if (r < 0)
        r = scratch_store_open(&spec, &s->scratch_store, &e);
    if (s->scratch_store)
        snprintf(said, sizeof(said), "%llu MiB of the state directory (%s)\n",
                 (unsigned long long)(s->scratch_store->bytes >> 20),
                 scratch_store_kind(s->scratch_store));
    else if (r < 0) /* doctor warns of the first, since somebody wished otherwise */
        snprintf(said, sizeof(said), "in memory%s %.*s\n", chosen ? ", since" : ":", DISKS_MAX - 24,
                 e.message);
    log_line(r < 0 && !chosen ? LEVEL_WARN : LEVEL_INFO, "disks of sandboxes: %.*s",
             (int)strcspn(said, "\n"), said);
    AUTO(close_p)
    int fd = openat(s->state.dir, DISKS_NAME, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC,
                    0644);
    if (fd < 0 || fd_write_all(fd, said, strlen(said)) < 0)
        log_line(LEVEL_WARN, "cannot write '" DISKS_NAME "' in the state directory: %s",
                 strerror(errno));
}

static int start(struct run *run, struct sg_error *e)
{
    struct server *s = &run->server;
    const struct serve_call *call = run->call;
    const char *front = s->settings.front_program, *guard = s->settings.guard_program;
    int r = watch_signals(run, e);

    s->loop.idle = on_idle;
    s->loop.no_room = on_no_room;
    s->provider = providers[0];
    if (r == 0)
        r = serve_texts_read(&s->settings, &s->texts, e);
    if (r == 0)
        r = front_process_init(s, front[0] ? front : call->front_program, e);
    if (r == 0)
        r = workers_init(s, e);
    if (r == 0)
        r = guard_process_init(s, guard[0] ? guard : call->guard_program, e);
    if (r == 0)
        r = attach_begin(false, e); /* before anything is opened that is cloned later */
    if (r == 0)
        r = start_state(s, call->anew, e);
    if (r < 0)
        return r;
    logfile_open(&s->log, s);
    sweep();
    choose_path(s);
    r = try_host(s, e);
    if (r == 0)
        r = files_workers_open(s, e);
    if (r < 0)
        return r;
    open_scratch_store(s);
    files_workers_choose(s);
    set_budget(s);
    log_line(LEVEL_INFO, "memory for all sandboxes together: %llu MiB",
             (unsigned long long)(s->budget.limit >> 20));
    pressure_look(s);
    r = snapshots_load(s, e);
    if (r == 0)
        r = volumes_load(s, e);
    if (r == 0)
        r = serve_listen(s, e);
    if (r == 0)
        r = privileges_drop(&s->prepared.filter, e);
    if (r == 0)
        heartbeats_start(s);
    if (r == 0)
        r = start_child_programs(s, e);
    if (r == 0)
        readiness_start(s);
    return r;
}

static int turns(struct run *run, struct sg_error *e)
{
    struct server *s = &run->server;

    while (!run->over && !(run->draining && !child_program_lives(&s->front))) {
        int r = loop_turn(&s->loop);
        if (r < 0)
            return err_set(e, SG_ERR_INTERNAL, r, "wait for events: %s", strerror(-r));
        if (child_program_failed(&s->front))
            return err_set(e, SG_ERR_UNSUPPORTED, -ECHILD, "the front cannot start: %s",
                           s->front.why);
        if (child_program_failed(&s->dbworker))
            return err_set(e, SG_ERR_UNSUPPORTED, -ECHILD, "the clerk cannot start: %s",
                           s->dbworker.why);
    }
    return 0;
}

static void finish(struct run *run)
{
    struct server *s = &run->server;

    heartbeats_stop(s);
    child_program_end(&s->front, 0);
    workers_end(s);
    close_listeners(s);
    s->closing = true;
    pressure_stop(s);
    sandboxes_close(s);
    budget_done(&s->budget);
    checkpoints_close(s);
    discards_close(s);
    teardowns_close(s);
    tenant_pools_close(s);
    cgroup_place_close(s->place);
    child_program_end(&s->guard, GUARD_GRACE_MS);
    snapshots_unload(s);
    volumes_close(s);
    files_workers_close(s);
    scratch_store_close(s->scratch_store);
    logfile_close(&s->log);
    state_close(&s->state);
    serve_texts_done(&s->texts);
    free(s->told);
    close_p(&run->signals.fd);
    loop_done(&s->loop);
}

static void on_first_settings(struct server *s, struct settings_answer *a)
{
    if (a->r == 0)
        take_settings(s, a);
    else
        s->told = a;
}

/* There is nothing else to do yet, so it waits. */
static int read_settings(struct run *run, struct sg_error *e)
{
    struct server *s = &run->server;
    int r = 0;

    if (loop_init(&s->loop, 1) < 0)
        return err_errno(e, "make an epoll");
    serve_read_settings(s, run->call, NULL, on_first_settings);
    while (!s->told && r == 0)
        r = loop_turn(&s->loop);
    if (!s->told)
        return err_set(e, SG_ERR_INTERNAL, r, "wait for the settings: %s", strerror(-r));
    if (s->told->r < 0)
        *e = s->told->error;
    return s->told->r;
}

int serve_run(const struct serve_call *call, struct sg_error *e)
{
    AUTO(free_p) struct run *run = xcalloc(1, sizeof(*run));
    int r;

    *run = (struct run){.server = {.loop.epoll_fd = -1,
                                   .state = STATE_NONE,
                                   .log = LOGFILE_NONE,
                                   .files = FILES_WORKERS_NONE,
                                   .front = CHILD_PROGRAM_NONE,
                                   .guard = CHILD_PROGRAM_NONE,
                                   .dbworker = CHILD_PROGRAM_NONE,
                                   .exporter = CHILD_PROGRAM_NONE,
                                   .journal = -1},
                        .call = call,
                        .signals.fd = -1};
    r = read_settings(run, e);
    if (r == 0 && geteuid() != 0)
        r = err_set(e, SG_ERR_DENIED, -EPERM,
                    "a server needs root: run it with sudo, or as a root service");
    if (r < 0) {
        free(run->server.told);
        loop_done(&run->server.loop);
        return r;
    }
    set_limits();
    notify_open();
    survive_oom();
    r = start(run, e);
    if (r == 0)
        r = turns(run, e);
    finish(run);
    if (r == 0)
        log_line(LEVEL_INFO, "the server has ended");
    return r;
}
