#include "engine/egress.h"

#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/base/list.h"
#include "lib/ipc/ipc.h"
#include "lib/text/json.h"
#include "lib/base/sys.h"
#include "wire/policy_document.h"
#include "wire/text_fd.h"
#include "engine/sandbox.h"
#include "warden/host/child.h"
#include "warden/host/netpath_plan.h"
#include "warden/host/program.h"

#define GUARD_NAME "sandglass-guard"
#define GUARD_DISK "67108864"
#define END_MS     5000
#define PAUSE_MS   200
#define FLOWS      512
#define ASK_MS     10000
#define ANSWER_MAX (sizeof(struct ask) + GUARD_PAYLOAD_MAX + 1)

/* A sandbox that has a way out. */
struct sandbox_out {
    struct list link;
    char id[ID_LEN + 1];
    struct instance *instance;
    uint64_t life;
    char *document;
    size_t len;
};

struct egress {
    char program[PATH_MAX];
    char *settings, *roots;
    uint32_t uid, gid;
    int dir;               /* the guard's directory: the next guard takes its keys from there */
    enum egress_path path; /* the way out that the first sandbox got; 0: none yet */
    pthread_t thread;
    int stop; /* an eventfd, readable when the thread must end */

    pthread_mutex_t lock; /* protects the fields below */
    int pidfd, sock;      /* -1: no guard at the moment */
    bool over;
    uint64_t lives;
    struct list sandboxes; /* of struct sandbox_out */
};

/* ---- the process ----------------------------------------------------------------------------- */

/* Finds the guard's program: beside the calling program, as with `sandglass`, or where a package
 * installs it. */
static int find_program(struct egress *g, const char *given, struct sg_error *e)
{
    static const char *const places[] = {"/usr/local/libexec/sandglass/" GUARD_NAME,
                                         "/usr/libexec/sandglass/" GUARD_NAME};
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    const char *slash;

    if (given) {
        snprintf(g->program, sizeof(g->program), "%s", given);
        return 0;
    }
    self[n < 0 ? 0 : n] = '\0';
    slash = strrchr(self, '/');
    if (slash &&
        (size_t)snprintf(g->program, sizeof(g->program), "%.*s/../libexec/sandglass/%s",
                         (int)(slash - self), self, GUARD_NAME) < sizeof(g->program) &&
        access(g->program, X_OK) == 0)
        return 0;
    for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
        snprintf(g->program, sizeof(g->program), "%s", places[i]);
        if (access(g->program, X_OK) == 0)
            return 0;
    }
    return err_set(e, SG_ERR_UNSUPPORTED, -ENOENT,
                   "a network needs the egress guard, and the program " GUARD_NAME
                   " is not installed: install all of sandglass, or block the network");
}

/* Makes a file system in memory that no path leads to. It goes with the guard, even if we crash. */
static int make_directory(const struct egress *g, struct sg_error *e)
{
    AUTO(close_p) int fs = sys_fsopen("tmpfs");
    char uid[16], gid[16];
    int dir;

    snprintf(uid, sizeof(uid), "%u", g->uid);
    snprintf(gid, sizeof(gid), "%u", g->gid);
    if (fs < 0 || sys_fsconfig_string(fs, "uid", uid) < 0 ||
        sys_fsconfig_string(fs, "gid", gid) < 0 || sys_fsconfig_string(fs, "mode", "0700") < 0 ||
        sys_fsconfig_string(fs, "size", GUARD_DISK) < 0 || sys_fsconfig_create(fs) < 0)
        return err_errno(e, "make the guard's directory");
    dir = sys_fsmount(fs, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
    return dir < 0 ? err_errno(e, "make the guard's directory") : dir;
}

static int tell(struct egress *g, struct guard_message *m, const int *fds, size_t n_fds)
{
    m->magic = GUARD_MAGIC;
    return g->sock < 0 ? -EPIPE : ipc_send(g->sock, m, sizeof(*m), fds, n_fds);
}

static void tell_settings(struct egress *g)
{
    struct guard_message m = {.what = GUARD_SETTINGS, .code = GUARD_OF_ONE_CALLER};
    AUTO(close_p) int settings = text_memfd(g->settings, strlen(g->settings), NULL);
    AUTO(close_p) int roots = text_memfd(g->roots, strlen(g->roots), NULL);
    AUTO(close_p) int patterns = text_memfd("", 0, NULL);

    if (settings >= 0 && roots >= 0 && patterns >= 0)
        tell(g, &m, (int[]){settings, roots, patterns}, 3);
}

static int tell_sandbox(struct egress *g, const struct sandbox_out *b)
{
    struct guard_message m = {.what = GUARD_SANDBOX, .life = b->life, .epoch = 1};
    AUTO(close_p) int document = text_memfd(b->document, b->len, NULL);
    struct network_sockets sockets;

    OPS(b->instance)->network->sockets(b->instance, &sockets);
    m.path = sockets.path;
    memcpy(m.id, b->id, sizeof(m.id));
    memcpy(m.tenant, b->id, sizeof(m.tenant));
    return document < 0 ? document : tell(g, &m, (int[]){sockets.tcp, sockets.udp, document}, 3);
}

static int start(struct egress *g, struct sg_error *e)
{
    struct program program = {.name = "guard",
                              .path = g->program,
                              .uid = g->uid,
                              .gid = g->gid,
                              .dir = g->dir,
                              .memlock = GUARD_MEMLOCK};
    struct program_ends ends;
    int r = program_start(&program, &ends, e);

    if (r < 0)
        return r;
    g->pidfd = ends.pidfd;
    g->sock = ends.sock;
    tell_settings(g);
    LIST_EACH(const struct sandbox_out, b, &g->sandboxes, link)
        tell_sandbox(g, b);
    return 0;
}

/* ---- the thread ------------------------------------------------------------------------------ */

static const struct sandbox_out *find_sandbox(const struct egress *g, const char *id, uint64_t life)
{
    return LIST_FIND(const struct sandbox_out, b, &g->sandboxes, link,
                     strcmp(b->id, id) == 0 && b->life == life);
}

static int answer_udp(struct egress *g, struct guard_message *m)
{
    struct guard_message answer = {.what = GUARD_UDP, .seq = m->seq, .life = m->life};
    const struct sandbox_out *b;
    AUTO(close_p) int sock = -1;

    m->id[ID_LEN] = '\0';
    b = find_sandbox(g, m->id, m->life);
    answer.code = sock =
        b ? OPS(b->instance)->network->udp(b->instance, &m->local, &m->peer, NULL) : -ENOENT;
    if (sock >= 0)
        answer.code = 0;
    memcpy(answer.id, m->id, sizeof(answer.id));
    return tell(g, &answer, &sock, sock >= 0 ? 1 : 0);
}

/* Takes one message of the guard. An error means that the guard has ended, or misbehaves. */
static int take(struct egress *g)
{
    struct guard_message m;
    ssize_t got = ipc_take(g->sock, GUARD_MAGIC, &m, sizeof(m), sizeof(m), NULL);

    if (got < 0)
        return got == -EAGAIN ? 0 : (int)got;
    return m.what == GUARD_ASK_UDP ? answer_udp(g, &m) : 0;
}

static void end_guard(struct egress *g)
{
    child_end(&g->pidfd, END_MS, NULL);
    close_p(&g->sock);
    g->sock = -1;
}

static void *attend(void *arg)
{
    struct egress *g = arg;
    bool over = false;

    while (!over) {
        struct pollfd p[2] = {{.fd = g->stop, .events = POLLIN}, {.fd = g->sock, .events = POLLIN}};
        poll(p, 2, g->sock < 0 ? PAUSE_MS : -1);
        pthread_mutex_lock(&g->lock);
        over = g->over;
        if (!over && g->sock < 0)
            start(g, NULL);
        else if (!over && p[1].revents && take(g) < 0)
            end_guard(g);
        pthread_mutex_unlock(&g->lock);
    }
    return NULL;
}

/* Starts the thread with all signals blocked: signals belong to the caller's threads. */
static int start_thread(struct egress *g, struct sg_error *e)
{
    sigset_t all, old;
    int r;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    r = -pthread_create(&g->thread, NULL, attend, g);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return r < 0 ? err_code(e, r, "start a thread for the guard") : 0;
}

/* ---- for the library ------------------------------------------------------------------------- */

static void egress_free(struct egress *g)
{
    end_guard(g);
    close_p(&g->stop);
    close_p(&g->dir);
    pthread_mutex_destroy(&g->lock);
    free(g->settings);
    free(g->roots);
    free(g);
}

int egress_open(const struct sg_options *o, struct egress **ret, struct sg_error *e)
{
    struct egress *g = xcalloc(1, sizeof(*g));
    int r;

    netpath_plan_use();
    g->pidfd = g->sock = g->dir = -1;
    g->stop = eventfd(0, EFD_CLOEXEC);
    g->settings =
        xstrdup(o->guard_settings ? o->guard_settings : "log = text\nlog_level = error\n");
    g->roots = xstrdup(o->guard_roots ? o->guard_roots : "");
    pthread_mutex_init(&g->lock, NULL);
    r = g->stop < 0 ? err_errno(e, "make an eventfd") : find_program(g, o->guard_program, e);
    if (r == 0)
        r = program_user("guard_user", "", GUARD_USER, GUARD_ID, &g->uid, &g->gid, e);
    if (r == 0)
        r = g->dir = make_directory(g, e);
    if (r >= 0)
        r = start(g, e);
    if (r == 0)
        r = start_thread(g, e);
    if (r < 0) {
        egress_free(g);
        return r;
    }
    *ret = g;
    return 0;
}

static bool has_names(const char *const *list)
{
    for (; list && *list; list++)
        if (network_entry_is_name(*list))
            return true;
    return false;
}

static char *print_document(const char *id, const struct sg_options *o, char *const *placeholders,
                            size_t *ret_len, struct sg_error *e)
{
    AUTO(free_p) struct egress_secret *secrets = xcalloc(o->n_secrets + 1, sizeof(*secrets));
    struct egress_document d = {.tenant = id,
                                .sandbox_id = id,
                                .default_deny = o->network == SG_NETWORK_LIST,
                                .allow = o->network_allow,
                                .deny = o->network_deny,
                                .secrets = secrets,
                                .n_secrets = o->n_secrets,
                                .flows = FLOWS};
    AUTO(strbuf_wipe) struct strbuf text = strbuf_upto(GUARD_DOCUMENT_MAX);

    for (size_t i = 0; i < o->n_secrets; i++)
        secrets[i] = (struct egress_secret){.name = o->secrets[i].name,
                                            .value = o->secrets[i].value,
                                            .placeholder = placeholders[i],
                                            .hosts = o->secrets[i].hosts};
    /* A protocol such as SSH does not name its host. Fake addresses let the guard tell the name
     * there too. */
    d.fake_ip = d.default_deny && has_names(o->network_allow);
    if (o->n_secrets > 0)
        strbuf_reserve(&text);
    egress_document_print(&d, &text);
    if (text.truncated) {
        err_set(e, SG_ERR_INVALID, -E2BIG, "the network list is too long: its limit is %u KiB",
                GUARD_DOCUMENT_MAX / 1024);
        return NULL;
    }
    return strbuf_detach(&text, ret_len);
}

/* Opens the fastest way out that this host can make. The first sandbox finds out which one that
 * is. */
static int open_way(struct egress *g, struct instance *i, struct sg_error *e)
{
    int r = -ENOTSUP;

    if (g->path)
        return OPS(i)->network->open(i, g->path, e);
    for (enum egress_path p = PATH_SK_LOOKUP; r < 0 && p < PATH_MAX_; p++) {
        r = OPS(i)->network->open(i, p, e);
        if (r == 0)
            g->path = p;
        else if (r == -ESRCH)
            break;
    }
    return r;
}

static void sandbox_free(struct sandbox_out *b)
{
    if (b->document)
        explicit_bzero(b->document, b->len);
    free(b->document);
    free(b);
}

int egress_admit(struct egress *g, struct instance *i, const char *id, const struct sg_options *o,
                 char *const *placeholders, struct sg_error *e)
{
    struct sandbox_out *b = xcalloc(1, sizeof(*b));
    int r = open_way(g, i, e);

    b->instance = i;
    memcpy(b->id, id, sizeof(b->id));
    if (r == 0) {
        b->document = print_document(id, o, placeholders, &b->len, e);
        r = b->document ? 0 : -E2BIG;
    }
    if (r < 0) {
        sandbox_free(b);
        return r;
    }
    pthread_mutex_lock(&g->lock);
    b->life = ++g->lives;
    list_push(&g->sandboxes, &b->link);
    tell_sandbox(g, b); /* without a guard nothing is sent; the next guard is told */
    pthread_mutex_unlock(&g->lock);
    return 0;
}

/* ---- the guard's certificates ---------------------------------------------------------------- */

/* Takes a string out of the guard's own JSON, which escapes line ends and nothing else. */
static char *take_string(const char *json, const char *key)
{
    const char *p = strstr(json, key), *end;
    char *text, *to;

    if (!p || !(end = strchr(p += strlen(key), '"')))
        return NULL;
    to = text = xcalloc((size_t)(end - p) + 1, 1);
    for (; p < end; p++)
        if (*p == '\\' && p[1] == 'n')
            *to++ = '\n', p++;
        else
            *to++ = *p;
    return text;
}

static int ask_guard(int sock, const char *id, const struct strbuf *question, char *answer,
                     size_t cap)
{
    struct ask ask = {
        .magic = GUARD_MAGIC, .what = ASK_CA, .seq = 1, .len = (uint32_t)question->len};
    struct iovec parts[2] = {{&ask, sizeof(ask)}, {question->buf, question->len}};
    struct pollfd p = {.fd = sock, .events = POLLIN};
    uint64_t until = clock_ns() + ASK_MS * 1000000ull;
    ssize_t n;
    int r;

    memcpy(ask.id, id, sizeof(ask.id));
    r = ipc_send_parts(sock, parts, NULL, 0);
    if (r < 0)
        return r;
    do { /* skips the guard's other messages */
        if (poll(&p, 1, clock_poll_ms(until)) <= 0)
            return -ETIMEDOUT;
        n = ipc_take(sock, GUARD_MAGIC, answer, sizeof(ask), cap - 1, NULL);
        if (n < 0)
            return (int)n;
        memcpy(&ask, answer, sizeof(ask));
    } while (ask.seq != 1);
    answer[n] = '\0';
    memmove(answer, answer + sizeof(ask), (size_t)n - sizeof(ask) + 1);
    return ask.code;
}

static void print_names(const char *const *hosts, struct strbuf *out)
{
    struct json j = {.out = out};

    jw_object_begin(&j);
    jw_array_begin(jw_key(&j, "names"));
    for (; *hosts; hosts++)
        jw_string(&j, *hosts);
    jw_array_end(&j);
    jw_object_end(&j);
}

int egress_certificate(struct egress *g, const char *id, const char *const *hosts, char **ret_pem,
                       char ret_hash[16], struct sg_error *e)
{
    struct guard_message m = {.what = GUARD_FRONT};
    AUTO(strbuf_done) struct strbuf question = strbuf_upto(GUARD_PAYLOAD_MAX);
    AUTO(free_p) char *answer = xcalloc(1, ANSWER_MAX);
    AUTO(free_p) char *pem = NULL;
    AUTO(free_p) char *hash = NULL;
    int ends[2], r;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return err_errno(e, "make a socket for the guard");
    print_names(hosts, &question);
    pthread_mutex_lock(&g->lock);
    r = tell(g, &m, &ends[1], 1);
    pthread_mutex_unlock(&g->lock);
    close(ends[1]);
    if (r >= 0)
        r = ask_guard(ends[0], id, &question, answer, ANSWER_MAX);
    close(ends[0]);
    if (r >= 0) {
        pem = take_string(answer, "\"pem\":\"");
        hash = take_string(answer, "\"hash\":\"");
        r = pem && hash && strlen(hash) < 16 ? 0 : -EPROTO;
    }
    if (r < 0)
        return err_set(e, SG_ERR_INTERNAL, r,
                       "the guard could not make a certificate for the secrets: %s", strerror(-r));
    snprintf(ret_hash, 16, "%s", hash);
    *ret_pem = steal_ptr(&pem);
    return 0;
}

/* ---- the end --------------------------------------------------------------------------------- */

void egress_dismiss(struct egress *g, const char *id)
{
    struct guard_message m = {.what = GUARD_GONE};
    struct sandbox_out *gone;

    if (!g)
        return;
    pthread_mutex_lock(&g->lock);
    gone = LIST_FIND(struct sandbox_out, b, &g->sandboxes, link, strcmp(b->id, id) == 0);
    if (gone) {
        list_remove(&gone->link);
        memcpy(m.id, gone->id, sizeof(m.id));
        m.life = gone->life;
        tell(g, &m, NULL, 0);
        sandbox_free(gone);
    }
    pthread_mutex_unlock(&g->lock);
}

void egress_kill(struct egress *g)
{
    static const uint64_t one = 1;

    if (!g)
        return;
    pthread_mutex_lock(&g->lock);
    g->over = true;
    child_kill(g->pidfd);
    pthread_mutex_unlock(&g->lock);
    fd_write_all(g->stop, &one, sizeof(one));
}

void egress_close(struct egress *g)
{
    if (!g)
        return;
    egress_kill(g);
    pthread_join(g->thread, NULL);
    LIST_EACH(struct sandbox_out, b, &g->sandboxes, link)
        sandbox_free(b);
    egress_free(g);
}
