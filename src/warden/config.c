/* Has a server's settings read, and opens the files and sockets that they name. */
#include <fcntl.h>
#include <grp.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "lib/base/fd.h"
#include "lib/log/log.h"
#include "warden/processes/task.h"
#include "warden/server.h"

#define SETTINGS_ID 0x0fff0003u /* belongs to nobody: below all ids of sandboxes */

#define PEM_MAX      (1024u * 1024)
#define PATTERNS_MAX (256u * 1024)
#define BACKLOG      4096

/* The configuration decides where the server listens and as which user it runs: only root, or the
 * user who starts the server, may write it. */
static int check_config_file(int fd, const char *path, struct sg_error *e)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return err_errno(e, "configuration '%.128s'", path);
    if (!S_ISREG(st.st_mode))
        return err_set(e, SG_ERR_INVALID, -EINVAL, "configuration '%.128s' is not a regular file",
                       path);
    if ((st.st_uid != 0 && st.st_uid != geteuid()) || (st.st_mode & (S_IWGRP | S_IWOTH)))
        return err_set(e, SG_ERR_DENIED, -EPERM,
                       "configuration '%.128s' can be written by others than root: chown root and "
                       "chmod go-w it",
                       path);
    return 0;
}

int serve_open_config(const char *path, int *ret, struct sg_error *e)
{
    AUTO(close_p) int fd = open(path ? path : SERVE_CONFIG, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    int r;

    if (fd < 0 && (path || errno != ENOENT))
        return err_errno(e, "cannot open configuration '%.128s'", path ? path : SERVE_CONFIG);
    r = fd < 0 ? 0 : check_config_file(fd, path ? path : SERVE_CONFIG, e);
    if (r == 0)
        *ret = steal_fd(&fd);
    return r;
}

/* ---- settings, read by a child --------------------------------------------------------------- */

/* In memory that the child and the warden share. */
struct reading_result {
    struct settings_answer answer;
    struct prepared prepared; /* at the start */
};

struct reading {
    struct server *server;
    struct settings_source from;
    const struct settings *now;
    settings_done done;
    struct reading_result *result;
};

/* Runs in the child. */
static int read_settings(const int *fds, void *arg)
{
    struct reading *rd = arg;
    struct settings_answer *a = &rd->result->answer;

    if (geteuid() == 0 &&
        (setgroups(0, NULL) < 0 || setresgid(SETTINGS_ID, SETTINGS_ID, SETTINGS_ID) < 0 ||
         setresuid(SETTINGS_ID, SETTINGS_ID, SETTINGS_ID) < 0))
        return -errno;
    settings_answer(&rd->from, fds[0], rd->now, a);
    if (a->r == 0 && !rd->now)
        a->r = privileges_compile(&rd->result->prepared.filter, &a->error);
    if (a->r == 0 && !rd->now)
        netpath_plan_make(&rd->result->prepared.plan);
    return 0;
}

/* Whether a reader of the answer stays inside of its arrays. */
static bool is_sound(struct settings_answer *a, const struct prepared *p)
{
    for (size_t i = 0; i < BATCH_MAX_ * 2; i++)
        if (p->plan.batches[i / 2][i % 2].len > sizeof(p->plan.batches[0][0].bytes))
            return false;
    a->error.message[sizeof(a->error.message) - 1] = '\0';
    for (size_t i = 0; i < SETTING_MAX_; i++)
        a->changed[i][SETTINGS_ENV_MAX - 1] = '\0';
    return a->n_changed <= SETTING_MAX_ && a->n_addresses <= SETTINGS_ADDRESSES_MAX &&
           a->n_plain <= a->n_addresses && a->front.len <= SETTINGS_TEXT_MAX &&
           a->guard.len <= SETTINGS_TEXT_MAX && p->filter.len <= SECCOMP_PROG_MAX &&
           p->plan.n_lookup <= LOOKUP_MAX && p->plan.map < LOOKUP_MAX;
}

static void on_read(void *arg, int status)
{
    struct reading *rd = arg;
    struct settings_answer *a = xcalloc(1, sizeof(*a));

    if (status == 0)
        memcpy(a, &rd->result->answer, sizeof(*a));
    if (status != 0 || !is_sound(a, &rd->result->prepared))
        a->r = err_set(&a->error, SG_ERR_INTERNAL, -ECHILD,
                       "the settings cannot be read: the child that reads them has failed");
    else if (!rd->now)
        rd->server->prepared = rd->result->prepared;
    if (rd->result != MAP_FAILED)
        munmap(rd->result, sizeof(*rd->result));
    rd->done(rd->server, a);
    free(rd);
}

void serve_read_settings(struct server *s, const struct serve_call *call,
                         const struct settings *now, settings_done done)
{
    struct reading *rd = xcalloc(1, sizeof(*rd));
    AUTO(close_p) int fd = -1;
    int r = -ENOMEM;

    *rd = (struct reading){.server = s, .from = call->settings, .now = now, .done = done};
    rd->result =
        mmap(NULL, sizeof(*rd->result), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (rd->result != MAP_FAILED)
        rd->result->answer.r = r =
            serve_open_config(rd->from.config, &fd, &rd->result->answer.error);
    if (!rd->from.config)
        rd->from.config = SERVE_CONFIG;
    if (r < 0)
        on_read(rd, rd->result == MAP_FAILED);
    else
        task_start(s, &fd, 1, read_settings, on_read, rd);
}

/* ---- files that the settings name ------------------------------------------------------------ */

void serve_texts_done(struct serve_texts *t)
{
    if (t->key.text)
        explicit_bzero(t->key.text, t->key.len);
    free(t->cert.text);
    free(t->key.text);
    free(t->roots.text);
    free(t->patterns.text);
    *t = (struct serve_texts){0};
}

/* Does nothing if no file is named. */
static int read_text(const char *what, const char *path, size_t max, struct file_text *ret,
                     struct sg_error *e)
{
    int r = path[0] ? file_read(AT_FDCWD, path, max, &ret->text, &ret->len) : 0;

    return r < 0
               ? err_set(e, err_kind_of(-r), r, "cannot read %s '%s': %s", what, path, strerror(-r))
               : 0;
}

static int read_pem(const char *what, const char *path, struct file_text *ret, struct sg_error *e)
{
    int r = read_text(what, path, PEM_MAX, ret, e);

    if (r == 0 && ret->text && !strstr(ret->text, "-----BEGIN "))
        return err_set(e, SG_ERR_INVALID, -EINVAL, "%s '%s' is not in PEM form", what, path);
    return r;
}

/* Packages of certificates give a group access to the key, so that is allowed; access for everybody
 * is not. */
static int check_private(const char *path, struct sg_error *e)
{
    struct stat st;

    if (stat(path, &st) < 0)
        return err_errno(e, "stat tls_key '%s'", path);
    if (st.st_mode & S_IRWXO)
        return err_set(e, SG_ERR_DENIED, -EACCES,
                       "tls_key '%s' can be used by every user of this machine: chmod o= it", path);
    return 0;
}

int serve_texts_read(const struct settings *settings, struct serve_texts *ret, struct sg_error *e)
{
    AUTO(serve_texts_done) struct serve_texts t = {0};
    int r = read_pem("tls_cert", settings->tls_cert, &t.cert, e);

    if (r == 0 && t.cert.text)
        r = check_private(settings->tls_key, e);
    if (r == 0 && t.cert.text)
        r = read_pem("tls_key", settings->tls_key, &t.key, e);
    if (r == 0)
        r = read_pem("egress_roots", settings->egress_roots, &t.roots, e);
    if (r == 0)
        r = read_text("sanitise_patterns", settings->sanitise_patterns, PATTERNS_MAX, &t.patterns,
                      e);
    if (r < 0)
        return r;
    *ret = t;
    t = (struct serve_texts){0};
    return 0;
}

static int listen_on(const struct address *a, const char *flag, struct sg_error *e)
{
    AUTO(close_p)
    int fd = socket(a->addr.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    char text[ADDRESS_TEXT_MAX];
    int on = 1;

    address_format(a, text);
    if (fd < 0)
        return err_errno(e, "make a socket for %s", text);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (a->addr.ss_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
    if (bind(fd, (const struct sockaddr *)&a->addr, a->len) < 0)
        return err_errno(
            e, errno == EADDRINUSE ? "listen on %s (choose another with --%s)" : "listen on %s",
            text, flag);
    if (listen(fd, BACKLOG) < 0)
        return err_errno(e, "listen on %s", text);
    return steal_fd(&fd);
}

int serve_listen(struct server *s, struct sg_error *e)
{
    s->n_plain_listeners = s->told->n_plain;
    for (size_t i = 0; i < s->told->n_addresses; i++) {
        struct address a = s->told->addresses[i];
        bool metrics = i >= s->n_plain_listeners;
        char text[ADDRESS_TEXT_MAX];

        address_format(&a, text);
        if (metrics && !a.loopback) /* they contain no secrets, but tell how busy a server is */
            log_line(LEVEL_WARN,
                     "metrics_listen: everybody who reaches %s can read this server's metrics: "
                     "restrict it with a firewall, or use metrics_token",
                     text);
        int fd = listen_on(&a, metrics ? "metrics-listen" : "listen", e);
        if (fd < 0)
            return fd;
        s->listeners[s->n_listeners++] = fd;
        a.len = sizeof(a.addr);
        getsockname(fd, (struct sockaddr *)&a.addr, &a.len); /* the kernel has replaced port 0 */
        address_format(&a, text);
        log_line(LEVEL_INFO, "listening on %s%s", text,
                 metrics              ? " for metrics alone"
                 : s->texts.cert.text ? " with TLS"
                                      : "");
    }
    return 0;
}
