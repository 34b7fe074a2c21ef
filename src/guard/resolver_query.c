#include "guard/resolver_query.h"

#include <sys/random.h>
#include <sys/socket.h>

#include "guard/dns_names.h"
#include "lib/uv/handle.h"

#define DATAGRAM_MAX   4096
#define DATAGRAMS_TURN 16 /* datagrams read before others have their turn */

struct upstream {
    uv_loop_t *loop;
    struct net_addr server;
    upstream_done done;
    void *arg;
    uv_poll_t *watch;
    int fd;
    uint16_t id, type;
    char name[POLICY_NAME_MAX + 1]; /* in the random case that the answer must repeat */
    /* Used over TCP only. */
    bool sent;
    uint8_t *in; /* the answer; NULL until its length is known */
    uint8_t prefix[2];
    size_t len, have;
};

/* Chooses a random id and a random case for every letter: bits that only somebody who has seen the
 * question knows. */
static int make_secret(struct upstream *u, const char *name)
{
    uint8_t random[(POLICY_NAME_MAX + 7) / 8 + 1];

    if (getrandom(&u->id, sizeof(u->id), 0) != sizeof(u->id) ||
        getrandom(random, sizeof(random), 0) != sizeof(random))
        return -EIO;
    for (size_t i = 0; name[i] && i < POLICY_NAME_MAX; i++) {
        char c = name[i];
        bool up = random[i / 8] >> (i % 8) & 1;

        u->name[i] = (char)(up && c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
    }
    return 0;
}

static int open_socket(struct upstream *u, int kind)
{
    struct sockaddr_storage to;
    socklen_t len = net_addr_to(&u->server, &to);

    u->fd = socket(to.ss_family, kind | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (u->fd < 0)
        return -errno;
    /* On a connected socket the kernel picks the port, and accepts datagrams of this server
     * alone. */
    if (connect(u->fd, (struct sockaddr *)&to, len) < 0 && errno != EINPROGRESS)
        return -errno;
    u->watch = watch_new(u->loop, u->fd, u);
    return 0;
}

static int send_question(struct upstream *u, bool tcp)
{
    AUTO(strbuf_done) struct strbuf q = strbuf_upto(512);
    AUTO(strbuf_done) struct strbuf framed = strbuf_upto(512);

    dns_query_write(u->id, u->name, u->type, &q);
    if (tcp)
        dns_put16(&framed, (uint16_t)q.len);
    strbuf_add(&framed, q.buf, q.len);
    ssize_t n = send(u->fd, framed.buf, framed.len, MSG_NOSIGNAL);
    if (n < 0)
        return -errno;
    return (size_t)n == framed.len ? 0 : -EIO;
}

static void close_socket(struct upstream *u)
{
    watch_drop(&u->watch);
    close_p(&u->fd);
    u->fd = -1;
}

/* ---- TCP ------------------------------------------------------------------------------------- */

/* Reads until `want` bytes are there: 1; or 0 if more must come. */
static int fill(struct upstream *u, uint8_t *to, size_t want)
{
    while (u->have < want) {
        ssize_t n = recv(u->fd, to + u->have, want - u->have, 0);

        if (n == 0)
            return -ECONNRESET;
        if (n < 0)
            return errno == EAGAIN || errno == EINTR ? 0 : -errno;
        u->have += (size_t)n;
    }
    return 1;
}

static int read_stream(struct upstream *u, struct dns_answer *a)
{
    int r;

    if (!u->in) {
        r = fill(u, u->prefix, sizeof(u->prefix));
        if (r <= 0)
            return r;
        u->len = dns_get16(u->prefix);
        u->have = 0;
        u->in = xcalloc(1, u->len + 1);
    }
    r = fill(u, u->in, u->len);
    if (r <= 0)
        return r;
    r = dns_answer_read(u->in, u->len, u->id, u->name, u->type, a);
    return r < 0 || a->truncated ? -EBADMSG : 1;
}

static void on_stream(uv_poll_t *w, int status, int events UNUSED)
{
    struct upstream *u = w->data;
    struct dns_answer a;
    int r = 0;

    if (status < 0)
        r = -EIO;
    else if (u->sent)
        r = read_stream(u, &a);
    else
        r = send_question(u, true);
    if (r < 0) {
        u->done(u->arg, u, r, NULL);
    } else if (r > 0) {
        u->done(u->arg, u, 0, &a);
    } else if (!u->sent) {
        u->sent = true;
        watch_for(u->watch, UV_READABLE, on_stream);
    }
}

static int go_on_with_stream(struct upstream *u)
{
    close_socket(u);
    int r = open_socket(u, SOCK_STREAM);
    if (r == 0)
        watch_for(u->watch, UV_WRITABLE, on_stream);
    return r;
}

/* ---- UDP ------------------------------------------------------------------------------------- */

static void on_datagram(uv_poll_t *w, int status, int events UNUSED)
{
    struct upstream *u = w->data;
    struct dns_answer a;
    uint8_t p[DATAGRAM_MAX];
    int r = status < 0 ? -EIO : 0;

    for (int i = 0; r == 0 && i < DATAGRAMS_TURN; i++) {
        ssize_t n = recv(u->fd, p, sizeof(p), MSG_TRUNC);

        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (n < 0) {
            r = -errno;
        } else if ((size_t)n <= sizeof(p) &&
                   dns_answer_read(p, (size_t)n, u->id, u->name, u->type, &a) == 0) {
            r = a.truncated ? go_on_with_stream(u) : 1;
            if (r == 0)
                return;
        }
    }
    if (r > 0)
        u->done(u->arg, u, 0, &a);
    else if (r < 0)
        u->done(u->arg, u, r, NULL);
}

int upstream_ask(uv_loop_t *loop, const struct net_addr *server, const char *name, uint16_t type,
                 upstream_done done, void *arg, struct upstream **ret)
{
    int r;
    struct upstream *u = NEW(struct upstream, .loop = loop, .server = *server, .done = done,
                             .arg = arg, .fd = -1, .type = type);

    r = make_secret(u, name);
    if (r == 0)
        r = open_socket(u, SOCK_DGRAM);
    if (r == 0)
        r = send_question(u, false);
    if (r < 0) {
        upstream_free(u);
        return r;
    }
    watch_for(u->watch, UV_READABLE, on_datagram);
    *ret = u;
    return 0;
}

void upstream_free(struct upstream *u)
{
    if (!u)
        return;
    close_socket(u);
    free(u->in);
    free(u);
}
