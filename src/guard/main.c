/* sandglass-guard: see guard.h. The warden starts it, with the socket between them as descriptor 3
 * and the guard's own directory as working directory. `sandglass audit` is here too, since this
 * program writes the record. */
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "lib/audit/audit.h"
#include "lib/ipc/ipc.h"
#include "lib/base/filter.h"
#include "guard/audit_cmd.h"
#include "lib/uv/handle.h"
#include "guard/pipes.h"
#include "guard/resolver_impl.h"
#include "guard/warden_link.h"
#include "lib/log/log.h"
#include "lib/vault/vault.h"

#define WARDEN_FD   3
#define FLUSH_MS    100
#define DESCRIPTORS (64 + 2 * PIPES_MAX + RESOLVER_FLIGHTS_MAX) /* besides flows, sandboxes */
#define TRUST_KEY   "seal.key"
#define AUDIT_DIR   "audit"

static struct guard guard;

static _Noreturn void give_up(const struct sg_error *e)
{
    struct guard_message m = {.magic = GUARD_MAGIC, .what = GUARD_FAILED};

    log_line(LEVEL_ERROR, "guard: %s", e->message);
    snprintf(m.message, sizeof(m.message), "%.255s", e->message);
    ipc_send(WARDEN_FD, &m, sizeof(m), NULL, 0);
    exit(1);
}

static int open_record(struct guard *g, struct sg_error *e)
{
    struct audit_limits limits = {.file_bytes = g->settings.audit_size,
                                  .files = g->settings.audit_files};
    AUTO(close_p) int dir = -1;

    if (mkdirat(g->dir, AUDIT_DIR, 0700) < 0 && errno != EEXIST)
        return err_errno(e, "make the directory of the record");
    dir = openat(g->dir, AUDIT_DIR, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return err_errno(e, "open the directory of the record");
    return audit_open(dir, &limits, &g->audit, e);
}

/* Warns once when the record cannot be written, and again only after it could be written in
 * between. */
static void told_record(int r)
{
    static bool failed;

    if (r < 0 && !failed)
        log_line(LEVEL_ERROR, "guard: the record cannot be written: %s", strerror(-r));
    failed = r < 0;
}

static void sync_work(uv_work_t *w)
{
    audit_sync_run(w->data);
}

static void after_sync(uv_work_t *w, int status)
{
    int r = audit_sync_end(guard.audit, w->data);

    if (status == 0 && r < 0)
        told_record(r);
    free(w);
}

/* A disk can take seconds to sync, so a thread waits for it. */
static void sync_record(struct guard *g)
{
    struct audit_sync *s = audit_sync_begin(g->audit);
    uv_work_t *w;

    if (!s)
        return;
    w = NEW(uv_work_t, .data = s);
    if (uv_queue_work(g->loop, w, sync_work, after_sync) < 0)
        after_sync(w, UV_EAGAIN);
}

static void on_flush(uv_timer_t *t)
{
    struct guard *g = t->data;

    told_record(audit_flush(g->audit));
    sync_record(g);
}

static void on_hosts(uv_poll_t *w, int status UNUSED, int events UNUSED)
{
    struct guard *g = w->data;

    hosts_update(g->hosts);
}

static void close_record(void)
{
    audit_close(steal_ptr(&guard.audit));
}

/* Loads the filter. The only sockets that the guard makes after this go to the internet. */
static int confine(struct sg_error *e)
{
    static const int refused[] = {SYS_bind, SYS_listen, SYS_socketpair, SYS_kill, SYS_tkill};
    static const int families[] = {AF_INET, AF_INET6};

    return filter_load(&(struct filter){.refused = refused,
                                        .n_refused = ARRAY_SIZE(refused),
                                        .families = families,
                                        .n_families = ARRAY_SIZE(families)},
                       "guard", e);
}

static size_t pairs_that_fit(void)
{
    struct rlimit files = {0};

    getrlimit(RLIMIT_NOFILE, &files);
    return files.rlim_cur > 2 * DESCRIPTORS ? (size_t)(files.rlim_cur - DESCRIPTORS) / 2
                                            : (size_t)files.rlim_cur / 4;
}

static int start(struct guard *g, struct sg_error *e)
{
    int r = hosts_new(&g->hosts, e);

    if (r == 0)
        r = warden_link_open(g, WARDEN_FD, e);
    if (r == 0)
        r = vault_key_open(g->dir, TRUST_KEY, &g->key, e);
    if (r == 0)
        r = open_record(g, e);
    return r < 0 ? r : confine(e);
}

static int serve(void)
{
    struct guard *g = &guard;
    struct sg_error e = {0};
    uv_timer_t *flush;
    uv_poll_t *hosts;

    if (fcntl(WARDEN_FD, F_SETFD, FD_CLOEXEC) < 0) {
        fprintf(stderr,
                "sandglass-guard: this program is started by 'sandglass serve', not by hand\n");
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    log_to_inherited_file();
    prctl(PR_SET_NAME, "sg-guard");
    vault_harden_process();
    umask(077);
    g->loop = uv_default_loop();
    g->max_pairs = pairs_that_fit();
    g->dir = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (start(g, &e) < 0)
        give_up(&e);
    atexit(close_record);
    flush = alarm_new(g->loop, g);
    uv_timer_start(flush, on_flush, FLUSH_MS, FLUSH_MS);
    hosts = watch_new(g->loop, hosts_fd(g->hosts), g);
    watch_for(hosts, UV_READABLE, on_hosts);
    warden_link_start(g, WARDEN_FD);
    return uv_run(g->loop, UV_RUN_DEFAULT);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "audit") == 0)
        return audit_main(argc - 1, argv + 1);
    return serve();
}
