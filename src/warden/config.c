/* Reads a server's settings, and opens the files and sockets that they name. */
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/fd.h"
#include "lib/settings/address.h"
#include "lib/log/log.h"
#include "warden/server.h"

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

static int read_config(const char *path, struct settings *s, struct sg_error *e)
{
    AUTO(close_p) int fd = open(path ? path : SERVE_CONFIG, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    AUTO(free_p) char *text = NULL;
    size_t len;
    int r;

    if (fd < 0 && !path && errno == ENOENT)
        return 0;
    path = path ? path : SERVE_CONFIG;
    if (fd < 0)
        return err_errno(e, "cannot open configuration '%.128s'", path);
    r = check_config_file(fd, path, e);
    if (r < 0)
        return r;
    r = fd_read_all(fd, SETTINGS_TEXT_MAX, &text, &len);
    if (r < 0)
        return err_set(e, err_kind_of(-r), r, "cannot read configuration '%.128s': %s", path,
                       strerror(-r));
    if (strlen(text) != len)
        return err_set(e, SG_ERR_INVALID, -EINVAL, "configuration '%.128s' has a NUL byte", path);
    return settings_parse_text(s, path, text, e);
}

int serve_settings(const struct serve_call *call, struct settings *ret, struct sg_error *e)
{
    struct settings s;
    int r;

    settings_init(&s);
    r = read_config(call->config, &s, e);
    if (r == 0)
        r = settings_parse_env(&s, e);
    for (enum setting k = 0; k < SETTING_MAX_ && r == 0; k++) {
        char flag[SETTINGS_ENV_MAX], what[SETTINGS_ENV_MAX + 2];
        setting_flag(k, flag);
        snprintf(what, sizeof(what), "--%s", flag);
        if (call->flags[k])
            r = settings_set(&s, k, what, call->flags[k], e);
    }
    if (r == 0)
        r = settings_check(&s, e);
    if (r == 0)
        *ret = s;
    return r;
}

void tls_text_done(struct tls_text *t)
{
    if (t->key)
        explicit_bzero(t->key, t->key_len);
    free(t->cert);
    free(t->key);
    *t = (struct tls_text){0};
}

static int read_text(const char *what, const char *path, size_t max, char **ret, size_t *ret_len,
                     struct sg_error *e)
{
    int r = file_read(AT_FDCWD, path, max, ret, ret_len);

    return r < 0
               ? err_set(e, err_kind_of(-r), r, "cannot read %s '%s': %s", what, path, strerror(-r))
               : 0;
}

static int read_pem(const char *what, const char *path, char **ret, size_t *ret_len,
                    struct sg_error *e)
{
    int r = read_text(what, path, PEM_MAX, ret, ret_len, e);

    if (r < 0)
        return r;
    if (!strstr(*ret, "-----BEGIN "))
        return err_set(e, SG_ERR_INVALID, -EINVAL, "%s '%s' is not in PEM form", what, path);
    return 0;
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

int serve_tls(const struct settings *settings, struct tls_text *ret, struct sg_error *e)
{
    AUTO(tls_text_done) struct tls_text t = {0};
    int r = 0;

    if (settings->tls_cert[0]) {
        r = read_pem("tls_cert", settings->tls_cert, &t.cert, &t.cert_len, e);
        if (r == 0)
            r = check_private(settings->tls_key, e);
        if (r == 0)
            r = read_pem("tls_key", settings->tls_key, &t.key, &t.key_len, e);
    }
    if (r < 0)
        return r;
    *ret = t;
    t = (struct tls_text){0};
    return 0;
}

void extra_text_done(struct extra_text *t)
{
    free(t->roots);
    free(t->patterns);
    *t = (struct extra_text){0};
}

int serve_extra(const struct settings *settings, struct extra_text *ret, struct sg_error *e)
{
    AUTO(extra_text_done) struct extra_text t = {0};
    int r = 0;

    if (settings->egress_roots[0])
        r = read_pem("egress_roots", settings->egress_roots, &t.roots, &t.roots_len, e);
    if (r == 0 && settings->sanitise_patterns[0])
        r = read_text("sanitise_patterns", settings->sanitise_patterns, PATTERNS_MAX, &t.patterns,
                      &t.patterns_len, e);
    if (r < 0)
        return r;
    *ret = t;
    t = (struct extra_text){0};
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

/* what: the setting's name; with - in place of _ it is the flag's. */
static int listen_on_all(struct server *s, const char *what, const char *flag, const char *list,
                         const char *how, struct sg_error *e)
{
    struct address a;
    int r;

    while ((r = address_next(what, &list, &a, e)) > 0) {
        char text[ADDRESS_TEXT_MAX];
        if (s->n_listeners == LISTENERS_MAX)
            return err_set(e, SG_ERR_INVALID, -E2BIG, "more than %d addresses to listen on",
                           LISTENERS_MAX);
        int fd = listen_on(&a, flag, e);
        if (fd < 0)
            return fd;
        s->listeners[s->n_listeners++] = fd;
        a.len = sizeof(a.addr);
        getsockname(fd, (struct sockaddr *)&a.addr, &a.len); /* the kernel has replaced port 0 */
        address_format(&a, text);
        log_line(LEVEL_INFO, "listening on %s%s", text, how);
    }
    return r;
}

/* Metrics contain no secrets, but they tell how busy a server is. */
static void warn_of_metrics(const char *list)
{
    struct address a;

    while (address_next("metrics_listen", &list, &a, NULL) > 0) {
        char text[ADDRESS_TEXT_MAX];
        address_format(&a, text);
        if (!a.loopback)
            log_line(LEVEL_WARN,
                     "metrics_listen: everybody who reaches %s can read this server's metrics: "
                     "restrict it with a firewall, or use metrics_token",
                     text);
    }
}

int serve_listen(struct server *s, struct sg_error *e)
{
    const struct settings *t = &s->settings;
    int r = listen_on_all(s, "listen", "listen", t->listen, s->tls.cert ? " with TLS" : "", e);

    s->n_plain_listeners = s->n_listeners;
    if (r < 0 || !t->metrics_listen[0])
        return r;
    warn_of_metrics(t->metrics_listen);
    return listen_on_all(s, "metrics_listen", "metrics-listen", t->metrics_listen,
                         " for metrics alone", e);
}
