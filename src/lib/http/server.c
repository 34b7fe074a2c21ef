/* The server: its listeners, the list of connections, and the clock that they share. */
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <time.h>

#include "lib/base/fd.h"
#include "lib/base/fds.h"
#include "lib/http/impl.h"

#define ACCEPTS_MAX 64 /* for one event, so that those who are connected have their turn too */

/* ---- clock ----------------------------------------------------------------------------------- */

const char *server_date(struct http_server *s)
{
    time_t now = time(NULL);
    struct tm tm;

    if (now != s->date_at || s->date[0] == '\0') {
        gmtime_r(&now, &tm);
        strftime(s->date, sizeof(s->date), "%a, %d %b %Y %H:%M:%S GMT", &tm);
        s->date_at = now;
    }
    return s->date;
}

static void on_listener(uv_poll_t *poll, int status, int events);

static void on_tick(uv_timer_t *timer)
{
    struct http_server *s = timer->data;
    uint64_t now = uv_now(s->loop);

    LIST_EACH(struct http_conn, c, &s->conns, in_server)
        conn_tick(c, now);
    if (s->draining)
        server_wake(s);
    LIST_EACH(struct listener, l, &s->listeners, in_server)
        if (l->resting && uv_poll_start(&l->poll, UV_READABLE, on_listener) == 0)
            l->resting = false;
}

/* Whether anything that was under way when the drain began still is. */
static bool is_busy(const struct http_server *s)
{
    return LIST_FIND(struct http_conn, c, &s->conns, in_server, c->awaited && conn_is_busy(c));
}

static void on_idle(uv_idle_t *idle)
{
    struct http_server *s = idle->data;

    /* Connections that wake up meanwhile have their turn in the next round. */
    for (size_t n = s->n_dirty; n > 0 && !list_empty(&s->dirty); n--) {
        struct http_conn *c = LIST_POP(struct http_conn, &s->dirty, in_dirty);

        s->n_dirty--;
        c->dirty = false;
        conn_settle(c);
    }
    if (s->freed)
        return;
    if (s->draining && s->drained && !is_busy(s)) {
        void (*drained)(void *) = s->drained;

        s->drained = NULL;
        drained(s->drained_arg);
        if (s->freed)
            return;
    }
    if (list_empty(&s->dirty))
        uv_idle_stop(&s->idle);
}

void server_wake(struct http_server *s)
{
    if (!s->freed)
        uv_idle_start(&s->idle, on_idle);
}

/* ---- connections ----------------------------------------------------------------------------- */

static void free_memory(struct http_server *s)
{
    SSL_CTX_free(s->tls);
    free(s->buf);
    free(s);
}

void server_unref(struct http_server *s)
{
    if (--s->n_handles == 0 && s->freed)
        free_memory(s);
}

static void on_conn_freed(uv_handle_t *handle)
{
    struct http_conn *c = CONTAINER_OF(handle, struct http_conn, poll);
    struct http_server *s = c->server;

    free(c);
    server_unref(s);
}

void server_conn_closed(struct http_server *s, struct http_conn *c)
{
    if (c->dirty) {
        list_remove(&c->in_dirty);
        s->n_dirty--;
        c->dirty = false;
    }
    list_remove(&c->in_server);
    work_drop(&c->reading);
    peers_leave(&s->peers, &c->ip);
    uv_close((uv_handle_t *)&c->poll, on_conn_freed);
    if (c->awaited)
        server_wake(s);
    /* With the last connection gone nobody needs the clock, except a listener that rests. */
    if (--s->n_conns == 0 && !s->freed &&
        !LIST_FIND(struct listener, l, &s->listeners, in_server, l->resting))
        uv_timer_stop(&s->tick);
}

static void set_options(int fd)
{
    const int on = 1, idle = 60, interval = 15, count = 4;

    /* These fail on a unix socket, which needs none of them. */
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof(interval));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof(count));
}

/* Makes room for the next connection: drops the client that has asked nothing for longest, since it
 * can connect again. */
static void drop_idlest(struct http_server *s)
{
    struct http_conn *idlest = NULL;

    LIST_EACH(struct http_conn, c, &s->conns, in_server)
        if (c->state == CONN_IDLE && !c->gone && (!idlest || c->since < idlest->since))
            idlest = c;
    if (idlest)
        conn_lose(idlest);
}

static void refuse_conn(struct http_conn *c)
{
    SSL_free(c->ssl);
    close(c->fd);
    free(c);
}

void server_adopt(struct http_server *s, int fd, enum http_security security,
                  const struct sockaddr *addr)
{
    enum fds_level level = fds_level();
    struct http_conn *c =
        NEW(struct http_conn, .server = s, .fd = fd, .scarce = level >= FDS_SCARCE);

    peer_read(c, addr);
    if (c->scarce)
        drop_idlest(s);
    if (s->freed || level == FDS_LAST || s->n_conns >= s->limits.conns_max ||
        (security == HTTP_TLS && !(c->ssl = tls_open(s->tls, fd))) ||
        !peers_enter(&s->peers, &c->ip, s->limits.conns_per_ip)) {
        refuse_conn(c);
        return;
    }
    set_options(fd);
    if (uv_poll_init(s->loop, &c->poll, fd) < 0) {
        peers_leave(&s->peers, &c->ip);
        refuse_conn(c);
        return;
    }
    s->n_handles++;
    list_push(&s->conns, &c->in_server);
    if (s->n_conns++ == 0)
        uv_timer_start(&s->tick, on_tick, HTTP_TICK_MS, HTTP_TICK_MS);
    conn_start(c, security);
}

/* ---- listeners ------------------------------------------------------------------------------- */

static void rest(struct listener *l)
{
    l->resting = true;
    uv_poll_stop(&l->poll);
    if (!uv_is_active((uv_handle_t *)&l->server->tick))
        uv_timer_start(&l->server->tick, on_tick, HTTP_TICK_MS, HTTP_TICK_MS);
}

static void on_listener(uv_poll_t *poll, int status UNUSED, int events UNUSED)
{
    struct listener *l = CONTAINER_OF(poll, struct listener, poll);
    struct http_server *s = l->server;

    for (unsigned i = 0; i < ACCEPTS_MAX && l->fd >= 0; i++) {
        struct sockaddr_storage addr = {0};
        socklen_t len = sizeof(addr);
        int fd = accept4(l->fd, (struct sockaddr *)&addr, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);

        if (fd >= 0) {
            server_adopt(s, fd, l->security, (const struct sockaddr *)&addr);
            continue;
        }
        if (errno == EAGAIN)
            return;
        if (errno != EINTR && errno != ECONNABORTED) {
            /* Out of descriptors or memory: without a rest the event would come again and again. */
            rest(l);
            return;
        }
    }
}

static void on_listener_freed(uv_handle_t *handle)
{
    struct listener *l = CONTAINER_OF(handle, struct listener, poll);
    struct http_server *s = l->server;

    free(l);
    server_unref(s);
}

static void close_listeners(struct http_server *s)
{
    LIST_EACH(struct listener, l, &s->listeners, in_server) {
        list_remove(&l->in_server);
        uv_close((uv_handle_t *)&l->poll, on_listener_freed);
        close(steal_fd(&l->fd));
    }
}

int http_server_listen(struct http_server *s, int fd, enum http_security security,
                       struct sg_error *e)
{
    AUTO(close_p) int own = fd;
    int r = fd_set_nonblock(fd, true);

    if (security != HTTP_PLAIN && !s->tls)
        return err_invalid(e, "a TLS listener needs a certificate and key");
    struct listener *l = NEW(struct listener, .server = s, .security = security);
    if (r == 0)
        r = uv_poll_init(s->loop, &l->poll, fd);
    if (r < 0) {
        free(l);
        return err_set(e, SG_ERR_INTERNAL, r, "watch the listening socket: %s", uv_strerror(r));
    }
    l->fd = steal_fd(&own);
    s->n_handles++;
    list_push(&s->listeners, &l->in_server);
    uv_poll_start(&l->poll, UV_READABLE, on_listener);
    return 0;
}

/* ---- life ------------------------------------------------------------------------------------ */

void http_server_on_over(struct http_server *s, void (*over)(struct http_req *req))
{
    s->on_over = over;
}

void http_server_commits(struct http_server *s, const struct commits *c)
{
    s->commits = c;
}

void http_server_kept(struct http_server *s)
{
    LIST_EACH(struct http_conn, c, &s->conns, in_server) {
        if (c->awaits == 0 || c->awaits > s->commits->kept)
            continue;
        c->awaits = 0;
        c->out_since = uv_now(s->loop);
        conn_wake(c);
    }
}

void http_server_around(struct http_server *s, void (*around)(struct http_req *req, bool in))
{
    s->around = around;
}

struct http_server *http_server_new(uv_loop_t *loop, const struct http_limits *limits,
                                    void (*on_request)(struct http_req *req), void *arg)
{
    static const struct commits none;
    struct http_server *s =
        NEW(struct http_server, .loop = loop, .commits = &none, .on_request = on_request,
            .arg = arg, .limits = limits ? *limits : (struct http_limits)HTTP_LIMITS_DEFAULT,
            .buf = xcalloc(1, HTTP_READ_SIZE), .n_handles = 2);

    s->works = works_new(loop, s->limits.turn_ns);
    uv_timer_init(loop, &s->tick);
    uv_idle_init(loop, &s->idle);
    s->tick.data = s->idle.data = s;
    return s;
}

void *http_server_arg(const struct http_server *s)
{
    return s->arg;
}

struct works *http_server_works(const struct http_server *s)
{
    return s->works;
}

size_t http_server_conns_max(const struct http_server *s)
{
    return s->limits.conns_max;
}

size_t http_server_connections(const struct http_server *s)
{
    return s->n_conns;
}

int http_server_set_tls(struct http_server *s, const char *cert_pem, size_t cert_len,
                        const char *key_pem, size_t key_len, struct sg_error *e)
{
    SSL_CTX *ctx;
    int r = tls_context(cert_pem, cert_len, key_pem, key_len, &ctx, e);

    if (r < 0)
        return r;
    SSL_CTX_free(s->tls);
    s->tls = ctx;
    return 0;
}

int http_server_set_certificates(struct http_server *s, int (*show)(struct ssl_st *ssl, void *arg),
                                 void *arg, struct sg_error *e)
{
    SSL_CTX *ctx;
    int r = tls_context_by_name(show, arg, &ctx, e);

    if (r < 0)
        return r;
    SSL_CTX_free(s->tls);
    s->tls = ctx;
    return 0;
}

void http_server_drain(struct http_server *s, void (*done)(void *arg), void *arg)
{
    s->draining = true;
    s->drained = done;
    s->drained_arg = arg;
    LIST_EACH(struct http_conn, c, &s->conns, in_server)
        c->awaited = conn_is_busy(c);
    server_wake(s);
}

static void on_server_handle_freed(uv_handle_t *handle)
{
    server_unref(handle->data);
}

/* A connection that code is at work on is left out: it closes when that code returns. */
static struct http_conn *first_to_close(struct http_server *s)
{
    LIST_EACH(struct http_conn, c, &s->conns, in_server) {
        c->gone = true;
        if (!c->entered)
            return c;
    }
    return NULL;
}

void http_server_free(struct http_server *s)
{
    struct http_conn *c;

    if (!s || s->freed)
        return;
    s->freed = s->draining = true;
    close_listeners(s);
    uv_close((uv_handle_t *)&s->tick, on_server_handle_freed);
    uv_close((uv_handle_t *)&s->idle, on_server_handle_freed);
    while ((c = first_to_close(s)))
        conn_settle(c);
    works_free(s->works);
}
