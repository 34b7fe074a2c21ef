/* Datagrams of sandboxes. The first datagram of a flow comes to the sandbox's listener. The warden
 * then makes a socket inside the sandbox, bound to the datagram's destination and connected to its
 * source, so that answers come from the right address. The kernel gives that socket the rest of the
 * flow.
 *
 *   first datagram -> judged -> socket asked for (a few datagrams wait) -> both ways -> idle: ended
 *
 * Questions to port 53 are answered from the listener itself, which has that port. */
#include <netinet/in.h>
#include <sys/socket.h>

#include "lib/base/clock.h"
#include "guard/dial.h"
#include "guard/dns.h"
#include "guard/flow.h"
#include "lib/uv/handle.h"
#include "guard/learned.h"
#include "guard/policy.h"
#include "guard/resolver.h"
#include "guard/warden_link.h"

#define DATAGRAM_MAX 65535
#define TURN_MAX     64 /* datagrams read from one socket in a turn */
#define WAITING_MAX  4  /* datagrams that wait while the socket is made */
#define UDP_IDLE_NS  120000000000ull
#define ASK_NS       2000000000ull

struct datagram {
    struct list link;
    size_t len;
    uint8_t bytes[];
};

struct udp_flow {
    struct sandbox *sandbox;
    struct policy *policy; /* the policy that judged the flow */
    struct list link;
    struct map_node by_ends, by_seq; /* in `flows`, and in `asking` until the socket came */
    struct net_addr dst, dialled;
    struct sockaddr_storage local, peer; /* of its datagrams: destination, source */
    char name[POLICY_NAME_MAX + 1];      /* the name that dst stands for; "": none */
    uint64_t seq;                        /* of the question to the warden */
    int inside, outside;
    uv_poll_t *in_watch, *out_watch;
    uv_timer_t *timer;
    struct resolver_query *query;
    struct list waiting; /* datagrams */
    unsigned n_waiting;
    const char *rule, *error;
    bool allowed;
    uint64_t up, down, began_ns, used_ms;
};

static uint8_t bytes[DATAGRAM_MAX]; /* used by the loop's thread only */

/* ---- finding a flow -------------------------------------------------------------------------- */

static struct map flows;  /* of all sandboxes */
static struct map asking; /* flows that wait for a socket */

static uint64_t hash_ends(const struct sandbox *s, const struct sockaddr_storage *local,
                          const struct sockaddr_storage *peer)
{
    uint64_t h = hash_bytes((uintptr_t)s, local, sizeof(struct sockaddr_in6));

    return hash_bytes(h, peer, sizeof(struct sockaddr_in6));
}

static struct udp_flow *find(struct sandbox *s, const struct sockaddr_storage *local,
                             const struct sockaddr_storage *peer)
{
    return MAP_FIND(struct udp_flow, u, &flows, hash_ends(s, local, peer), by_ends,
                    u->sandbox == s && memcmp(&u->local, local, sizeof(*local)) == 0 &&
                        memcmp(&u->peer, peer, sizeof(*peer)) == 0);
}

static void list(struct udp_flow *u)
{
    map_add(&flows, &u->by_ends, hash_ends(u->sandbox, &u->local, &u->peer));
    list_push(&u->sandbox->udp_flows, &u->link);
}

static void unlist(struct udp_flow *u)
{
    map_remove(&flows, &u->by_ends);
    map_remove(&asking, &u->by_seq);
    list_remove(&u->link);
}

/* ---- the end of a flow ----------------------------------------------------------------------- */

static void udp_end(struct udp_flow *u)
{
    struct sandbox *s = u->sandbox;

    RECORD(s, .kind = "flow", .protocol = "udp", .allowed = u->allowed, .rule = u->rule,
           .name = u->name[0] ? u->name : learned_name(s, &u->dst),
           .address = u->dialled.port ? &u->dialled : &u->dst, .detail = u->error, .up = u->up,
           .down = u->down, .ms = (clock_ns() - u->began_ns) / 1000000, .policy = u->policy);
    unlist(u);
    if (u->query)
        resolver_cancel(u->query);
    watch_drop(&u->in_watch);
    watch_drop(&u->out_watch);
    alarm_drop(&u->timer);
    close_p(&u->inside);
    close_p(&u->outside);
    LIST_EACH(struct datagram, g, &u->waiting, link)
        free(g);
    quota_give_flow(s);
    policy_unref(u->policy);
    free(u);
    sandbox_unref(s);
}

static void refuse(struct udp_flow *u, const char *rule)
{
    u->allowed = false;
    u->rule = rule;
    udp_end(u);
}

/* ---- passing on datagrams -------------------------------------------------------------------- */

/* Sends a datagram; if that fails it is lost, as datagrams may be. The first try can fail with the
 * error that the datagram before has met, so there is a second. */
static void pass_on(int to, const uint8_t *p, size_t len)
{
    if (send(to, p, len, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 && errno == ECONNREFUSED)
        send(to, p, len, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Counts and passes on the datagram in `bytes`. False: the flow has ended. */
static bool take_datagram(struct udp_flow *u, int to, size_t len, uint64_t *total)
{
    *total += len;
    u->used_ms = uv_now(u->sandbox->guard->loop);
    if (!quota_count(u->sandbox, len)) {
        u->error = "quota of bytes";
        udp_end(u);
        return false;
    }
    pass_on(to, bytes, len);
    return true;
}

static void copy(struct udp_flow *u, int from, int to, uint64_t *total)
{
    for (unsigned i = 0; i < TURN_MAX; i++) {
        ssize_t n = recv(from, bytes, sizeof(bytes), 0);
        if (n < 0 && errno == EAGAIN)
            return;
        if (n < 0 && errno != ECONNREFUSED) {
            u->error = "broken";
            udp_end(u);
            return;
        }
        /* An error is no end: the next datagram may find somebody listening. */
        if (n >= 0 && !take_datagram(u, to, (size_t)n, total))
            return;
    }
}

static void on_event(uv_poll_t *w, int status UNUSED, int events UNUSED)
{
    struct udp_flow *u = w->data;

    if (w == u->in_watch)
        copy(u, u->inside, u->outside, &u->up);
    else
        copy(u, u->outside, u->inside, &u->down);
}

static void on_idle(uv_timer_t *t)
{
    struct udp_flow *u = t->data;
    uint64_t since_ns = (uv_now(u->sandbox->guard->loop) - u->used_ms) * 1000000;

    if (u->inside < 0 || since_ns >= UDP_IDLE_NS)
        udp_end(u);
    else
        alarm_set(t, UDP_IDLE_NS - since_ns, on_idle);
}

void udp_got_socket(struct guard *g, uint64_t seq, int code, int fd)
{
    struct udp_flow *u = MAP_FIND(struct udp_flow, at, &asking, hash_bytes(0, &seq, sizeof(seq)),
                                  by_seq, at->seq == seq);
    struct datagram *d;

    if (!u) { /* the flow has ended meanwhile */
        close_p(&fd);
        return;
    }
    map_remove(&asking, &u->by_seq);
    if (code < 0 || fd < 0) {
        u->error = "no socket inside";
        udp_end(u);
        return;
    }
    u->inside = fd;
    u->in_watch = watch_new(g->loop, u->inside, u);
    u->out_watch = watch_new(g->loop, u->outside, u);
    watch_for(u->in_watch, UV_READABLE, on_event);
    watch_for(u->out_watch, UV_READABLE, on_event);
    alarm_set(u->timer, UDP_IDLE_NS, on_idle);
    while ((d = LIST_POP(struct datagram, &u->waiting, link))) {
        u->up += d->len;
        pass_on(u->outside, d->bytes, d->len);
        free(d);
    }
}

/* ---- the beginning of a flow ----------------------------------------------------------------- */

static void wait_with(struct udp_flow *u, const uint8_t *p, size_t len)
{
    struct datagram *d;

    if (u->n_waiting == WAITING_MAX || !quota_count(u->sandbox, len))
        return;
    d = xcalloc(1, sizeof(*d) + len);
    d->len = len;
    memcpy(d->bytes, p, len);
    list_append(&u->waiting, &d->link);
    u->n_waiting++;
}

static void open_ends(struct udp_flow *u, const struct net_addr *to)
{
    struct guard *g = u->sandbox->guard;
    const char *why;

    u->outside = dial_udp(g, to, &why);
    if (u->outside < 0) {
        if (why) {
            refuse(u, why);
            return;
        }
        u->error = "no route to the host";
        u->outside = -1;
        udp_end(u);
        return;
    }
    u->seq = warden_link_ask_udp(g->link, u->sandbox, &u->local, &u->peer);
    map_add(&asking, &u->by_seq, hash_bytes(0, &u->seq, sizeof(u->seq)));
}

static void on_resolved(void *arg, const struct resolved *res)
{
    struct udp_flow *u = arg;
    struct judgement j = {0};

    u->query = NULL;
    if (res->r == -EACCES) {
        refuse(u, res->dropped ? res->dropped : "internal address");
        return;
    }
    if (res->r < 0) {
        u->error = "the name cannot be resolved";
        udp_end(u);
        return;
    }
    /* A name that no entry allows leads only to addresses that are allowed themselves. */
    for (size_t i = 0; i < res->n && j.verdict != VERDICT_ALLOW; i++) {
        policy_judge_name(u->policy, u->name, &res->addrs[i], &j);
        u->dialled = res->addrs[i];
    }
    u->dialled.port = u->dst.port;
    if (j.verdict == VERDICT_ALLOW)
        open_ends(u, &u->dialled);
    else
        refuse(u, j.rule);
}

static const char *refused_protocol(const struct guard *g, const struct net_addr *dst)
{
    if (dst->port == 443 && !g->settings.egress_quic)
        return "QUIC";
    if (dst->port == 853 && !g->settings.egress_dot)
        return "DNS over TLS";
    return NULL;
}

/* Judges by address, or by the name that a fake address stands for: datagrams carry no other
 * name. */
static void judge(const struct udp_flow *u, const struct policy *p, struct judgement *ret)
{
    const struct guard *g = u->sandbox->guard;
    const struct net_addr *to = u->dialled.port ? &u->dialled : u->name[0] ? NULL : &u->dst;
    struct judgement fallback = {0};
    const char *why = refused_protocol(g, &u->dst);

    if (u->name[0])
        policy_judge_name(p, u->name, to, ret);
    else
        policy_judge_address(p, &u->dst, ret, &fallback);
    if (ret->verdict == VERDICT_NAME)
        *ret = fallback;
    if (!why && u->name[0])
        why = deny_set_name(g->deny, u->name);
    if (!why && to)
        why = guard_refuses(g, to);
    if (!why && p->proxy)
        why = "UDP cannot go through the egress proxy";
    if (why)
        *ret = (struct judgement){VERDICT_DENY, why};
}

static void begin(struct udp_flow *u)
{
    struct guard *g = u->sandbox->guard;
    const char *name = fake_is(&u->dst) ? fake_name(u->sandbox, &u->dst) : NULL;
    struct judgement j;

    if (name)
        memcpy(u->name, name, strlen(name) + 1);
    judge(u, u->policy, &j);
    if (j.verdict != VERDICT_ALLOW) {
        refuse(u, j.rule);
        return;
    }
    u->allowed = true;
    u->rule = j.rule;
    u->timer = alarm_new(g->loop, u);
    alarm_set(u->timer, RESOLVER_NS + ASK_NS, on_idle);
    if (name) {
        struct resolver_query *q = resolver_lookup(g->resolver, name, on_resolved, u);
        if (q)
            u->query = q;
        return;
    }
    open_ends(u, &u->dst);
}

/* Handles a datagram that came to the listener; it is in `bytes`. */
static void take(struct sandbox *s, const struct sockaddr_storage *local,
                 const struct sockaddr_storage *peer, size_t len)
{
    struct udp_flow *u = find(s, local, peer);
    struct net_addr dst;

    if (u && u->inside >= 0) { /* the datagram was on its way when the socket was made */
        take_datagram(u, u->outside, len, &u->up);
        return;
    }
    if (u) {
        wait_with(u, bytes, len);
        return;
    }
    if (net_addr_from((const struct sockaddr *)local, &dst) < 0 || !quota_take_flow(s))
        return;
    u = NEW(struct udp_flow, .sandbox = sandbox_ref(s), .policy = policy_ref(s->policy), .dst = dst,
            .local = *local, .peer = *peer, .inside = -1, .outside = -1, .began_ns = clock_ns(),
            .used_ms = uv_now(s->guard->loop));
    list(u);
    wait_with(u, bytes, len);
    begin(u);
}

/* ---- the listener ---------------------------------------------------------------------------- */

struct question {
    struct sandbox *sandbox;
    struct list link;
    struct sockaddr_storage local, peer;
    struct dns_pending *pending;
    bool *gone; /* set if the question is freed while dns_serve runs */
};

static void question_free(struct question *q)
{
    struct sandbox *s = q->sandbox;

    if (q->gone)
        *q->gone = true;
    list_remove(&q->link);
    free(q);
    sandbox_unref(s);
}

/* Sets the source address of a reply. The listener is an IPv6 socket, except on a machine without
 * IPv6. */
static void put_source(struct msghdr *m, const struct question *q)
{
    const struct in6_addr *local = &((const struct sockaddr_in6 *)&q->local)->sin6_addr;
    struct in6_pktinfo v6 = {.ipi6_addr = *local};
    struct in_pktinfo v4 = {0};
    struct cmsghdr *c = CMSG_FIRSTHDR(m);
    bool old = q->peer.ss_family == AF_INET;
    size_t len = old ? sizeof(v4) : sizeof(v6);

    memcpy(&v4.ipi_spec_dst, local->s6_addr + 12, 4);
    c->cmsg_level = old ? IPPROTO_IP : IPPROTO_IPV6;
    c->cmsg_type = old ? IP_PKTINFO : IPV6_PKTINFO;
    c->cmsg_len = CMSG_LEN(len);
    memcpy(CMSG_DATA(c), old ? (void *)&v4 : (void *)&v6, len);
    m->msg_controllen = CMSG_SPACE(len);
    m->msg_namelen = old ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
}

/* Sends a reply from the address that was asked; the port is the listener's own. */
static void answer(void *arg, const uint8_t *p, size_t len)
{
    struct question *q = arg;
    struct iovec io = {.iov_base = (void *)(uintptr_t)p, .iov_len = len};
    union {
        struct cmsghdr align;
        char room[CMSG_SPACE(sizeof(struct in6_pktinfo))];
    } control = {0};
    struct msghdr m = {.msg_name = &q->peer,
                       .msg_iov = &io,
                       .msg_iovlen = 1,
                       .msg_control = &control,
                       .msg_controllen = sizeof(control.room)};

    put_source(&m, q);
    sendmsg(q->sandbox->udp, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
    question_free(q);
}

static void ask(struct sandbox *s, const struct sockaddr_storage *local,
                const struct sockaddr_storage *peer, const uint8_t *p, size_t len)
{
    struct question *q = xcalloc(1, sizeof(*q));
    struct dns_pending *pending;
    bool gone = false;

    *q =
        (struct question){.sandbox = sandbox_ref(s), .local = *local, .peer = *peer, .gone = &gone};
    list_push(&s->questions, &q->link);
    pending = dns_serve(s, p, len, false, answer, q);
    if (gone)
        return;
    q->gone = NULL;
    q->pending = pending;
    if (!pending) /* it was no question: no reply will come */
        question_free(q);
}

/* Maps an IPv4 address to the form that the listener uses, which is an IPv6 socket. */
static void as_v6(const struct sockaddr_in *v4, struct sockaddr_storage *ret)
{
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = v4->sin_port};

    v6.sin6_addr.s6_addr[10] = v6.sin6_addr.s6_addr[11] = 0xff;
    memcpy(v6.sin6_addr.s6_addr + 12, &v4->sin_addr, 4);
    memset(ret, 0, sizeof(*ret));
    memcpy(ret, &v6, sizeof(v6));
}

static bool original_destination(struct msghdr *m, struct sockaddr_storage *ret)
{
    struct sockaddr_in v4;

    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
        if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_ORIGDSTADDR) {
            memcpy(&v4, CMSG_DATA(c), sizeof(v4));
            as_v6(&v4, ret);
            return true;
        }
        if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_ORIGDSTADDR) {
            memset(ret, 0, sizeof(*ret));
            memcpy(ret, CMSG_DATA(c), sizeof(struct sockaddr_in6));
            return true;
        }
    }
    return false;
}

bool udp_receive(struct sandbox *s)
{
    for (unsigned i = 0; i < TURN_MAX; i++) {
        struct sockaddr_storage peer = {0}, local;
        union {
            struct cmsghdr align;
            char room[512];
        } control;
        struct iovec io = {.iov_base = bytes, .iov_len = sizeof(bytes)};
        struct msghdr m = {.msg_name = &peer,
                           .msg_namelen = sizeof(peer),
                           .msg_iov = &io,
                           .msg_iovlen = 1,
                           .msg_control = &control,
                           .msg_controllen = sizeof(control)};
        ssize_t n = recvmsg(s->udp, &m, MSG_DONTWAIT);

        if (n < 0)
            return true;
        if (!original_destination(&m, &local))
            continue;
        if (((struct sockaddr_in6 *)&local)->sin6_port == htons(53))
            ask(s, &local, &peer, bytes, (size_t)n);
        else
            take(s, &local, &peer, (size_t)n);
    }
    return false;
}

/* ---- a new policy ---------------------------------------------------------------------------- */

void udp_judge_again(struct sandbox *s)
{
    LIST_EACH(struct udp_flow, u, &s->udp_flows, link) {
        struct judgement j;
        judge(u, s->policy, &j);
        if (j.verdict != VERDICT_ALLOW) {
            u->error = "policy changed";
            udp_end(u);
            continue;
        }
        u->rule = j.rule;
        policy_unref(u->policy);
        u->policy = policy_ref(s->policy);
    }
}

void udp_reset_all(struct sandbox *s)
{
    LIST_EACH(struct udp_flow, u, &s->udp_flows, link) {
        u->error = "the sandbox has ended";
        udp_end(u);
    }
    LIST_EACH(struct question, q, &s->questions, link) {
        if (q->pending)
            dns_cancel(q->pending);
        question_free(q);
    }
}
