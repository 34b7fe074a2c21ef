/* sandglass-front: the part of `sandglass serve` that speaks HTTP. The warden starts it in the
 * front's own directory, with the socket between the two as descriptor 3; wire/warden.h has the
 * messages on that socket. This program is also the front's workers (wire/worker.h), the database
 * worker and the exporter, and, because it has the store, the verbs `sandglass key`, `tenant`,
 * `backup` and `restore`. */
#include <fcntl.h>
#include <jansson.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

#include "front/acp/agents.h"
#include "lib/base/fd.h"
#include "lib/ipc/ipc.h"
#include "front/builds/build.h"
#include "front/contexts/context.h"
#include "front/contexts/usage.h"
#include "front/core/request_log.h"
#include "front/core/checkpoint.h"
#include "front/core/copies.h"
#include "front/core/egress.h"
#include "front/core/figures.h"
#include "front/core/events.h"
#include "front/core/guard.h"
#include "front/core/lifecycle.h"
#include "front/core/living.h"
#include "front/core/node.h"
#include "front/core/output_filter.h"
#include "front/core/standby.h"
#include "front/core/team_metrics.h"
#include "front/core/webhooks.h"
#include "front/core/workload.h"
#include "front/core/volumes.h"
#include "front/core/warden.h"
#include "front/core/warm.h"
#include "front/core/wipe.h"
#include "lib/log/log.h"
#include "wire/worker.h"
#include "front/main/backup.h"
#include "front/main/banner.h"
#include "front/main/confine.h"
#include "front/main/dispatch.h"
#include "front/main/drain.h"
#include "front/main/key.h"
#include "front/main/local_names.h"
#include "front/main/world_builder.h"
#include "front/main/tenant.h"
#include "front/main/world.h"
#include "front/store/dbworker.h"
#include "front/store/dbworker_process.h"
#include "front/store/keys_shared.h"
#include "front/store/store.h"
#include "front/store/sync.h"
#include "front/telemetry/exporter.h"
#include "front/telemetry/exporter_wire.h"
#include "front/telemetry/trace.h"
#include "front/volumes/watch.h"
#include "lib/vault/vault.h"
#include "wire/world_builder.h"

#define ORDER_FD      3
#define LISTENERS_MAX 16
#define PEM_MAX       (1024u * 1024)
#define LONG_BODY     (512u * 1024)
#define PATTERNS_MAX  (256u * 1024)

struct listener {
    int fd;
    enum http_security security;
    bool metrics;
};

/* Everything that the warden told before TELL_READY. */
static struct {
    struct listener listeners[LISTENERS_MAX];
    size_t n;
    bool ready;
    bool first;          /* found by the front itself: the server has had no tenant yet */
    unsigned local_port; /* of the first listener with names below localhost; 0: none */
} told;

/* The database worker is there only if the settings name a database. The exporter is always there:
 * settings may name targets for traces and events later. */
static struct dbworker *dbworker;
static struct exporter *exporter;

/* Tells the warden the reason too: this may be the last front that it starts. */
static _Noreturn void give_up(const struct sg_error *e)
{
    struct order o = {.magic = ORDER_MAGIC, .op = ORDER_FAILED};

    log_line(LEVEL_ERROR, "front: %s", e->message);
    snprintf(o.message, sizeof(o.message), "%.255s", e->message);
    ipc_send(ORDER_FD, &o, sizeof(o), NULL, 0);
    exit(1);
}

static void log_dbworker(bool bad, const char *line)
{
    log_line(bad ? LEVEL_WARN : LEVEL_INFO, "%s", line);
}

/* A mistake in the file does not stop a server that runs, but keeps a new one from starting. */
static void take_patterns(struct front *f, int fd)
{
    AUTO(free_p) char *text = NULL;
    struct sg_error e = {0};
    size_t len;

    if (fd >= 0 && (lseek(fd, 0, SEEK_SET) < 0 || fd_read_all(fd, PATTERNS_MAX, &text, &len) < 0))
        err_set(&e, SG_ERR_INTERNAL, -EIO, "cannot read the file of sanitise_patterns");
    else
        output_filter_set_patterns(f, text ? text : "", &e);
    if (e.kind == SG_ERR_NONE)
        return;
    if (!told.ready)
        give_up(&e);
    log_line(LEVEL_ERROR,
             "the patterns of the sanitiser were not reloaded, the old ones stay in force: %s",
             e.message);
}

static void take_settings(struct front *f, int fd)
{
    AUTO(free_p) char *text = NULL;
    struct settings s;
    struct sg_error e = {0};
    size_t len;

    settings_init(&s);
    if (lseek(fd, 0, SEEK_SET) < 0 || fd_read_all(fd, SETTINGS_TEXT_MAX, &text, &len) < 0)
        err_set(&e, SG_ERR_INTERNAL, -EIO, "cannot read the warden's settings");
    else if (settings_parse_text(&s, "settings", text, &e) == 0)
        f->settings = s;
    local_domain(&f->settings, told.local_port);
    standby_end_all();
    log_set(&f->settings);
    if (e.kind != SG_ERR_NONE)
        give_up(&e);
    trace_configure(&f->settings, exporter, f->loop);
    webhooks_configure(f);
}

static void take_tls(struct front *f, int cert_fd, int key_fd)
{
    AUTO(free_p) char *cert = NULL, *key = NULL;
    struct sg_error e = {0};
    size_t cert_len, key_len;

    if (lseek(cert_fd, 0, SEEK_SET) < 0 || lseek(key_fd, 0, SEEK_SET) < 0 ||
        fd_read_all(cert_fd, PEM_MAX, &cert, &cert_len) < 0 ||
        fd_read_all(key_fd, PEM_MAX, &key, &key_len) < 0) {
        err_set(&e, SG_ERR_INTERNAL, -EIO, "cannot read certificate and key");
        give_up(&e);
    }
    int r = http_server_set_tls(f->http, cert, cert_len, key, key_len, &e);
    explicit_bzero(key, key_len);
    if (r == 0)
        return;
    if (!told.ready)
        give_up(&e);
    log_line(LEVEL_ERROR, "the certificate was not reloaded, the old one stays in force: %s",
             e.message);
}

static int open_contexts(struct front *f, struct ctx_store **ret, struct sg_error *e)
{
    enum settings_store where = settings_store(&f->settings);

    if (where != STORE_POSTGRES)
        return ctx_store_sqlite(f->loop, where == STORE_SQLITE ? f->store : NULL, ret, e);
    if (!dbworker)
        dbworker = dbworker_new(f->loop, log_dbworker);
    dbworker_connect(dbworker, hidden_reveal(&f->settings.store));
    keys_shared_start(f->loop, f->store, dbworker);
    *ret = ctx_store_postgres(f->loop, dbworker);
    return 0;
}

/* Serves the first connection only now that everything a client may count on is there. */
static void open_doors(struct front *f)
{
    struct sg_error e = {0};

    if (banner_print(f, told.n > 0 ? told.listeners[0].fd : -1, told.first, &e) < 0)
        give_up(&e);
    for (const struct listener *l = told.listeners; l < told.listeners + told.n; l++) {
        int r = l->metrics ? metrics_listen(f, l->fd, &e)
                           : http_server_listen(f->http, l->fd, l->security, &e);
        if (r < 0)
            give_up(&e);
    }
    figures_start(f);
    metrics_start(f);
    checkpoints_watch_age(f);
    agents_start(f);
    volumes_watch(f);
    workload_start(f, settings_store(&f->settings) == STORE_POSTGRES ? dbworker : NULL);
    told.ready = true;
    warden_order(f, &(struct order){.op = ORDER_READY}, -1, NULL, NULL);
}

static void on_synced(void *arg, int r)
{
    struct front *f = arg;
    struct sg_error e;

    if (r < 0) {
        err_code(&e, r, "write the database to the disk");
        give_up(&e);
    }
    http_server_kept(f->http);
    warden_kept(f);
}

/* Where only this machine comes in and no certificate was given, both TLS and plain HTTP do. */
static void name_locally(struct front *f)
{
    bool certificates = false;

    for (struct listener *l = told.listeners; l < told.listeners + told.n; l++) {
        unsigned port = l->metrics || l->security != HTTP_PLAIN ? 0 : local_port(l->fd);

        if (port == 0)
            continue;
        if (told.local_port == 0) {
            told.local_port = port;
            certificates = local_certificates(f->http);
        }
        if (certificates)
            l->security = HTTP_EITHER;
    }
    local_domain(&f->settings, told.local_port);
}

static void begin(struct front *f, bool again)
{
    struct ctx_store *contexts = NULL;
    struct sg_error e = {0};
    uint32_t tenants = 0;

    if (told.n > 0)
        banner_url(&f->settings, told.listeners[0].fd, f->url, sizeof(f->url));
    name_locally(f);
    if (store_open(".", &f->store, &e) < 0 ||
        store_sync_start(f->store, f->loop, &f->commits, on_synced, f, &e) < 0 ||
        sandboxes_forget_loose_snapshots(f, &e) < 0 || volumes_forget_loose(f, &e) < 0)
        give_up(&e);
    /* Before keys of other servers come from their database. */
    if (store_tenants_count(f->store, &tenants, &e) < 0)
        give_up(&e);
    told.first = tenants == 0;
    if (events_start(f, &e) < 0 || node_start(f, again, &e) < 0)
        give_up(&e);
    team_metrics_start(f);
    if (builds_start(f, &e) < 0)
        give_up(&e);
    copies_start(f);
    webhooks_start(f, exporter);
    living_match(f, again);
    checkpoints_match_store(f);
    sandboxes_finish_rewinds(f);
    if (open_contexts(f, &contexts, &e) < 0 || contexts_start(f, contexts, open_doors, &e) < 0)
        give_up(&e);
}

static void leave(void *arg UNUSED)
{
    exit(0);
}

static void on_usage_told(void *arg)
{
    webhooks_flush();
    events_flush(arg);
    team_metrics_flush(arg);
    trace_flush(leave, NULL);
}

static void on_signed_off(void *arg)
{
    usage_finish(arg, on_usage_told, arg);
}

static void on_tell(struct front *f, const struct order_answer *a, int *fds, size_t n)
{
    switch ((enum order_tell)a->tell) {
    case TELL_LISTENER:
        if (n == 1 && told.n < LISTENERS_MAX)
            told.listeners[told.n++] =
                (struct listener){.fd = steal_fd(&fds[0]),
                                  .security = a->flags & TELL_TLS_HERE ? HTTP_TLS : HTTP_PLAIN,
                                  .metrics = a->flags & TELL_METRICS_HERE};
        break;
    case TELL_SETTINGS:
        if (n > 0) {
            take_settings(f, fds[0]);
            take_patterns(f, n > 1 ? fds[1] : -1);
        }
        break;
    case TELL_GUARD:
        if (n == 1)
            guard_set_socket(f, steal_fd(&fds[0]));
        break;
    case TELL_DBWORKER:
        if (n == 1 && !dbworker)
            dbworker = dbworker_new(f->loop, log_dbworker);
        if (n == 1)
            dbworker_set_socket(dbworker, steal_fd(&fds[0]));
        break;
    case TELL_EXPORTER:
        if (n == 1)
            exporter_set_socket(exporter, steal_fd(&fds[0]));
        break;
    case TELL_TLS:
        if (n == 2)
            take_tls(f, fds[0], fds[1]);
        break;
    case TELL_SANDBOX:
        sandbox_told_sandbox(f, a, n > 0 ? steal_fd(&fds[0]) : -1, n > 1 ? steal_fd(&fds[1]) : -1);
        break;
    case TELL_CHECKPOINT:
        checkpoint_told(f, a, n > 0 ? steal_fd(&fds[0]) : -1);
        break;
    case TELL_KERNELS_LOST:
        checkpoint_told_lost(f, a);
        break;
    case TELL_COLD:
        sandbox_told_cold(f, a);
        break;
    case TELL_CHECKPOINT_GONE:
        checkpoint_told_gone(f, a);
        break;
    case TELL_READY:
        begin(f, a->flags & TELL_AGAIN);
        break;
    case TELL_ENDED:
        sandbox_told_ended(f, a);
        break;
    case TELL_PAUSED:
        sandbox_told_paused(f, a);
        break;
    case TELL_DRAIN:
        living_stopping(f);
        drain_begin(f, on_signed_off);
        break;
    case TELL_REPLY:
    case TELL_BEAT:
    case TELL_MAX_:
        break;
    }
    for (size_t i = 0; i < n; i++)
        close_p(&fds[i]);
}

/* The front can serve nothing without the warden, and a new warden starts a new front. */
static void on_warden_gone(struct front *f UNUSED, bool unreadable)
{
    struct sg_error e = {0};

    if (unreadable) {
        err_set(&e, SG_ERR_INTERNAL, -EPROTO,
                "the running server has another version than this program: restart it");
        give_up(&e);
    }
    exit(0);
}

static int serve(void)
{
    static const struct http_limits limits = HTTP_LIMITS_DEFAULT;
    static const struct warden_handlers handlers = {.on_tell = on_tell, .on_gone = on_warden_gone};
    static struct front front;
    struct sg_error e = {0};

    if (fcntl(ORDER_FD, F_SETFD, FD_CLOEXEC) < 0) {
        fprintf(stderr,
                "sandglass-front: this program is started by 'sandglass serve', not by hand\n");
        return 2;
    }
    prctl(PR_SET_NAME, "sandglass-front"); /* executed by descriptor, it has no name */
    signal(SIGPIPE, SIG_IGN);
    log_to_inherited_file();
    wipe_json_memory();
    /* Set before the threads start, which read JSON. One thread allocates and another frees: memory
     * of a thread's own arena would never go back to the kernel, nor would long bodies that lie
     * between other allocations. */
    json_object_seed(0);
    mallopt(M_ARENA_MAX, 1);
    mallopt(M_MMAP_THRESHOLD, LONG_BODY);
    vault_harden_process();
    front.on_secret_changed = egress_secret_changed;
    contexts_have_figures();
    agents_have_figures();
    front.loop = uv_default_loop();
    exporter = exporter_new(front.loop);
    settings_init(&front.settings);
    front.http = http_server_new(front.loop, &limits, dispatch_request, &front);
    http_server_on_over(front.http, request_log_over);
    http_server_around(front.http, dispatch_around);
    http_server_commits(front.http, &front.commits);
    warden_open(&front, ORDER_FD, &handlers);
    if (confine_front(&e) < 0)
        give_up(&e);
    return uv_run(front.loop, UV_RUN_DEFAULT);
}

/* ---- its workers ----------------------------------------------------------------------------- */

static void become_worker(const char *name)
{
    if (fcntl(WORKER_CONTROL, F_SETFD, FD_CLOEXEC) < 0)
        _exit(2);
    prctl(PR_SET_NAME, name);
    signal(SIGPIPE, SIG_IGN);
    vault_harden_process();
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "key") == 0)
        return key_main(argc - 1, argv + 1);
    if (argc > 1 && strcmp(argv[1], "tenant") == 0)
        return tenant_main(argc - 1, argv + 1);
    if (argc > 1 && strcmp(argv[1], "world") == 0)
        return world_main(argc - 1, argv + 1);
    if (argc > 1 && strcmp(argv[1], "backup") == 0)
        return backup_main(argc - 1, argv + 1);
    if (argc > 1 && strcmp(argv[1], "restore") == 0)
        return restore_main(argc - 1, argv + 1);
    if (argc > 1 && strcmp(argv[1], BUILDER_ARGUMENT) == 0)
        builder_main();
    if (argc > 1 && strcmp(argv[1], "--clerk") == 0) {
        become_worker("sandglass-clerk");
        dbworker_process(WORKER_CONTROL, -1, confine_dbworker);
    }
    if (argc > 1 && strcmp(argv[1], "--herald") == 0) {
        become_worker("sandglass-herald");
        exporter_process(WORKER_CONTROL, -1, confine_exporter);
    }
    return serve();
}
