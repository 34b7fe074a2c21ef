/* A DNS server for tests, on the loop of who asks it: what it answers is told by the first label of
 * the name. With it, what the guard's DNS needs of the rest of the guard. */
#pragma once

#include <arpa/inet.h>
#include <assert.h>
#include <fcntl.h>
#include <strings.h>
#include <sys/socket.h>
#include <uv.h>

#include "lib/base/clock.h"
#include "lib/text/strbuf.h"
#include "guard/dns_message.h"
#include "guard/dns_names.h"
#include "guard/guard.h"
#include "lib/uv/handle.h"
#include "guard/resolver.h"

#define V4(a, b, c, d) ((const uint8_t[4]){a, b, c, d})

struct upstream_rig {
    uv_loop_t *loop;
    int udp, tcp;
    uv_poll_t *udp_watch, *tcp_watch, *conn_watch;
    int conn;
    uint16_t port;
    bool silent;
    unsigned asked, asked_tcp;
    uint16_t ports[64], ids[64]; /* that questions came from */
    char names[64][256];         /* as they were asked, with their case */
    /* A reply that is sent on demand. */
    struct sockaddr_in held_to;
    struct strbuf held;
};

/* ---- this machine, as the resolver asks for it ----------------------------------------------- */

static bool rig_v4 = true, rig_v6 = true;

int hosts_new(struct hosts **ret, struct sg_error *e)
{
    (void)ret, (void)e;
    return -ENOSYS;
}

void hosts_free(struct hosts *h)
{
    (void)h;
}

int hosts_fd(const struct hosts *h)
{
    (void)h;
    return -1;
}

void hosts_update(struct hosts *h)
{
    (void)h;
}

bool hosts_has(const struct hosts *h, const struct net_addr *a)
{
    (void)h, (void)a;
    return false;
}

bool hosts_has_v4(const struct hosts *h)
{
    (void)h;
    return rig_v4;
}

bool hosts_has_v6(const struct hosts *h)
{
    (void)h;
    return rig_v6;
}

/* ---- writing answers ------------------------------------------------------------------------- */

struct reply {
    struct strbuf out;
    unsigned n;
};

/* The head and the question of a query, as they came. */
static void reply_begin(struct reply *r, const uint8_t *q, size_t name_len, unsigned flags)
{
    *r = (struct reply){0};
    strbuf_init(&r->out, DNS_MESSAGE_MAX);
    strbuf_add(&r->out, q, 2);
    dns_put16(&r->out, (uint16_t)(0x8180 | flags));
    dns_put16(&r->out, 1);
    dns_put32(&r->out, 0);
    dns_put16(&r->out, 0);
    strbuf_add(&r->out, q + 12, name_len + 4);
}

static void reply_record(struct reply *r, const char *owner, unsigned type, uint32_t ttl,
                         const void *data, size_t len)
{
    if (owner)
        dns_name_write(owner, &r->out);
    else
        dns_put16(&r->out, 0xc00c);
    dns_put16(&r->out, (uint16_t)type);
    dns_put16(&r->out, 1);
    dns_put32(&r->out, ttl);
    dns_put16(&r->out, (uint16_t)len);
    strbuf_add(&r->out, data, len);
    r->n++;
}

static void reply_cname(struct reply *r, const char *owner, const char *target)
{
    AUTO(strbuf_done) struct strbuf name = {0};

    strbuf_init(&name, 300);
    dns_name_write(target, &name);
    reply_record(r, owner, DNS_CNAME, 77, name.buf, name.len);
}

static void reply_end(struct reply *r)
{
    r->out.buf[6] = (char)(r->n >> 8);
    r->out.buf[7] = (char)r->n;
}

static void reply_address(struct reply *r, const char *text)
{
    uint8_t ip[16];

    if (inet_pton(AF_INET, text, ip) == 1)
        reply_record(r, NULL, DNS_A, 77, ip, 4);
    else if (inet_pton(AF_INET6, text, ip) == 1)
        reply_record(r, NULL, DNS_AAAA, 77, ip, 16);
}

/* Those of the list that are of the type asked for. */
static void reply_list(struct reply *r, unsigned type, const char *const *list)
{
    for (; *list; list++)
        if ((strchr(*list, ':') ? DNS_AAAA : DNS_A) == type)
            reply_address(r, *list);
}

/* ---- what each name does --------------------------------------------------------------------- */

static const char *const rig_public[] = {"93.184.216.34", "2606:2800::1", NULL};
static const char *const rig_inside[] = {"127.0.0.1",        "10.9.9.9", "169.254.169.254",
                                         "::ffff:10.9.9.9",  "fe80::1",  "::1",
                                         "64:ff9b::a09:909", NULL};
static const char *const rig_mixed[] = {"10.0.0.1", "93.184.216.34", "fd00::1", "2606:2800::1",
                                        NULL};

static const uint8_t rig_https[] = {0, 1, 0,                       /* priority, target: itself */
                                    0, 0, 0, 2,  0,   4,           /* mandatory: ipv4hint */
                                    0, 1, 0, 3,  2,   'h', '2',    /* alpn */
                                    0, 4, 0, 4,  10,  0,   0,   1, /* ipv4hint */
                                    0, 5, 0, 2,  'e', 'c',         /* ech */
                                    0, 6, 0, 16, 0,   0,   0,   0, 0, 0,
                                    0, 0, 0, 0,  0,   0,   0,   0, 0, 1};

static void fill_chain(struct reply *r, bool loop)
{
    reply_cname(r, NULL, "c1.test");
    reply_cname(r, "c2.test", loop ? "c1.test" : "c3.test");
    reply_cname(r, "c1.test", "c2.test");
    reply_record(r, "c3.test", DNS_A, 77, V4(93, 184, 216, 35), 4);
    /* What nobody has asked for. */
    reply_record(r, "other.test", DNS_A, 77, V4(93, 184, 216, 36), 4);
}

/* The plain answer to a name. */
static void fill(struct reply *r, const char *kind, unsigned type)
{
    if (strcmp(kind, "empty") == 0)
        return;
    if (strcmp(kind, "rebind") == 0)
        reply_list(r, type, rig_inside);
    else if (strcmp(kind, "mixed") == 0)
        reply_list(r, type, rig_mixed);
    else if (strcmp(kind, "v6only") == 0 && type == DNS_AAAA)
        reply_address(r, "2606:2800::1");
    else if (strcmp(kind, "v6only") == 0)
        return;
    else if (strcmp(kind, "chain") == 0 || strcmp(kind, "loop") == 0)
        fill_chain(r, kind[0] == 'l');
    else if (type == DNS_TXT)
        reply_record(r, NULL, DNS_TXT, 77, "\5hello", 6);
    else if (type == DNS_HTTPS)
        reply_record(r, NULL, DNS_HTTPS, 77, rig_https, sizeof(rig_https));
    else if (type == DNS_PTR)
        reply_record(r, NULL, DNS_PTR, 77, "\3one\4test", 10);
    else
        reply_list(r, type, rig_public);
}

/* Datagrams that are not the answer, each for another reason. */
static unsigned make_lie(unsigned which, const struct reply *truth, size_t name_len,
                         struct strbuf *out)
{
    strbuf_reset(out);
    strbuf_add(out, truth->out.buf, truth->out.len);
    switch (which) {
    case 0: /* id */
        out->buf[1] ^= 1;
        break;
    case 1: /* case of one letter */
        for (size_t i = 13; i < 12 + name_len; i++)
            if (out->buf[i] >= 'A') {
                out->buf[i] ^= 0x20;
                break;
            }
        break;
    case 2: /* another name */
        out->buf[13] = out->buf[13] == 'x' ? 'y' : 'x';
        break;
    case 3: /* another type */
        out->buf[12 + name_len + 1] ^= 2;
        break;
    case 4: /* cut */
        out->len -= 3;
        break;
    case 5: /* something behind it */
        strbuf_add(out, "junk", 4);
        break;
    case 6: /* a question */
        out->buf[2] &= 0x7f;
        break;
    case 7: /* more records than there are */
        out->buf[7] = 99;
        break;
    case 8:
        out->len = 5;
        break;
    default:
        return 0;
    }
    return 1;
}

static void rig_send(struct upstream_rig *u, const struct sockaddr_in *to, const struct strbuf *b)
{
    ssize_t n = sendto(u->udp, b->buf, b->len, 0, (const struct sockaddr *)to, sizeof(*to));

    assert(n == (ssize_t)b->len);
}

static void rig_reply_udp(struct upstream_rig *u, const uint8_t *q, size_t name_len,
                          const char *kind, unsigned type, const struct sockaddr_in *from)
{
    struct reply r;
    struct strbuf lie;

    reply_begin(&r, q, name_len,
                strcmp(kind, "nx") == 0         ? DNS_NXDOMAIN
                : strcmp(kind, "servfail") == 0 ? DNS_SERVFAIL
                : strncmp(kind, "cut", 3) == 0  ? DNS_FLAG_TC
                                                : 0);
    if (strcmp(kind, "nx") != 0 && strcmp(kind, "servfail") != 0 && strncmp(kind, "cut", 3) != 0)
        fill(&r, kind, type);
    reply_end(&r);
    strbuf_init(&lie, DNS_MESSAGE_MAX);
    if (strcmp(kind, "lies") == 0 || strcmp(kind, "between") == 0)
        for (unsigned i = 0; make_lie(i, &r, name_len, &lie); i++)
            rig_send(u, from, &lie);
    strbuf_done(&lie);
    if (strcmp(kind, "held") == 0) {
        strbuf_done(&u->held);
        u->held = r.out;
        u->held_to = *from;
        return;
    }
    if (strcmp(kind, "lies") != 0)
        rig_send(u, from, &r.out);
    strbuf_done(&r.out);
}

/* First label and length of the name of a query. */
static size_t rig_parse(const uint8_t *q, size_t len, char kind[64], char name[256])
{
    size_t at = 12, used = 0;

    assert(len > 17);
    while (q[at]) {
        assert(at + 1 + q[at] < len && used + q[at] + 1 < 256);
        memcpy(name + used, q + at + 1, q[at]);
        used += q[at];
        name[used++] = '.';
        at += 1u + q[at];
    }
    name[used > 0 ? used - 1 : 0] = '\0';
    size_t n = strcspn(name, ".-");
    for (size_t i = 0; i < n && i < 63; i++)
        kind[i] = (char)(name[i] | 0x20);
    kind[n < 63 ? n : 63] = '\0';
    return at + 1 - 12;
}

static bool rig_take(struct upstream_rig *u)
{
    struct sockaddr_in from;
    socklen_t from_len = sizeof(from);
    uint8_t q[2048];
    char kind[64], name[256];
    ssize_t n = recvfrom(u->udp, q, sizeof(q), 0, (struct sockaddr *)&from, &from_len);

    if (n < 0)
        return false;
    size_t name_len = rig_parse(q, (size_t)n, kind, name);
    unsigned type = dns_get16(q + 12 + name_len);
    if (u->asked < 64) {
        u->ports[u->asked] = ntohs(from.sin_port);
        u->ids[u->asked] = dns_get16(q);
        snprintf(u->names[u->asked], 256, "%s", name);
    }
    u->asked++;
    if (!u->silent && strcmp(kind, "silent") != 0 &&
        (strcmp(kind, "slow6") != 0 || type != DNS_AAAA))
        rig_reply_udp(u, q, name_len, kind, type, &from);
    return true;
}

static void rig_on_udp(uv_poll_t *w, int status, int events)
{
    (void)status, (void)events;
    while (rig_take(w->data))
        ;
}

/* Over TCP: 300 addresses, or an answer that is cut again. */
static void rig_on_conn(uv_poll_t *w, int status, int events)
{
    struct upstream_rig *u = w->data;
    uint8_t q[2048];
    char kind[64], name[256];
    ssize_t n = recv(u->conn, q, sizeof(q), 0);
    struct reply r;

    (void)status, (void)events;
    if (n > 2 + 17) {
        size_t name_len = rig_parse(q + 2, (size_t)n - 2, kind, name);
        unsigned type = dns_get16(q + 2 + 12 + name_len);

        u->asked_tcp++;
        reply_begin(&r, q + 2, name_len, strcmp(kind, "cutcut") == 0 ? DNS_FLAG_TC : 0);
        for (unsigned i = 0; type == DNS_A && i < 300; i++)
            reply_record(&r, NULL, DNS_A, 77, V4(93, 184, (uint8_t)(i / 200), (uint8_t)(i % 200)),
                         4);
        reply_end(&r);
        uint8_t prefix[2] = {(uint8_t)(r.out.len >> 8), (uint8_t)r.out.len};
        /* In two pieces, one of them half of the length. */
        n = send(u->conn, prefix, 1, MSG_NOSIGNAL);
        n += send(u->conn, prefix + 1, 1, MSG_NOSIGNAL);
        n += send(u->conn, r.out.buf, r.out.len, MSG_NOSIGNAL);
        assert(n == (ssize_t)r.out.len + 2);
        strbuf_done(&r.out);
    }
    watch_drop(&u->conn_watch);
    close_p(&u->conn);
    u->conn = -1;
}

static void rig_on_tcp(uv_poll_t *w, int status, int events)
{
    struct upstream_rig *u = w->data;
    int conn = accept4(u->tcp, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

    (void)status, (void)events;
    if (conn < 0)
        return;
    watch_drop(&u->conn_watch);
    close_p(&u->conn);
    u->conn = conn;
    u->conn_watch = watch_new(u->loop, u->conn, u);
    watch_for(u->conn_watch, UV_READABLE, rig_on_conn);
}

static void rig_start(struct upstream_rig *u, uv_loop_t *loop)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t len = sizeof(a);
    int r = -1;

    /* The same port for both, which may be taken for one. */
    for (int i = 0; i < 50 && r < 0; i++) {
        *u = (struct upstream_rig){.loop = loop, .conn = -1};
        a.sin_port = 0;
        u->udp = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        u->tcp = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        r = bind(u->udp, (struct sockaddr *)&a, sizeof(a));
        assert(r == 0);
        getsockname(u->udp, (struct sockaddr *)&a, &len);
        r = bind(u->tcp, (struct sockaddr *)&a, sizeof(a));
        if (r < 0) {
            close(u->udp);
            close(u->tcp);
        }
    }
    assert(r == 0 && listen(u->tcp, 8) == 0);
    u->port = ntohs(a.sin_port);
    u->udp_watch = watch_new(loop, u->udp, u);
    u->tcp_watch = watch_new(loop, u->tcp, u);
    watch_for(u->udp_watch, UV_READABLE, rig_on_udp);
    watch_for(u->tcp_watch, UV_READABLE, rig_on_tcp);
}

static void rig_stop(struct upstream_rig *u)
{
    watch_drop(&u->udp_watch);
    watch_drop(&u->tcp_watch);
    watch_drop(&u->conn_watch);
    close_p(&u->udp);
    close_p(&u->tcp);
    close_p(&u->conn);
    strbuf_done(&u->held);
}

static void rig_tick(uv_timer_t *t)
{
    (void)t;
}

/* Runs the loop until *flag, at most `seconds`. */
static void rig_run(uv_loop_t *loop, const bool *flag, unsigned seconds)
{
    uint64_t end = clock_ns() + seconds * 1000000000ull;
    uv_timer_t *tick = alarm_new(loop, NULL);

    while (!*flag && clock_ns() < end) {
        alarm_set(tick, 50000000, rig_tick);
        uv_run(loop, UV_RUN_ONCE);
    }
    alarm_drop(&tick);
}

/* All that was begun has ended, and nothing is left. */
static void rig_end_loop(uv_loop_t *loop)
{
    while (uv_run(loop, UV_RUN_NOWAIT))
        ;
    int r = uv_loop_close(loop);
    assert(r == 0);
}
