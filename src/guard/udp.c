/* Datagrams of sandboxes. The first of a flow comes to the sandbox's listener; the warden then
 * makes a socket inside that is bound to where it was going and connected to where it came from, so
 * that answers come from the right place; the kernel gives that socket the rest.
 *
 *   first datagram -> judged -> socket asked for (a few datagrams wait) -> both ways -> idle: ended
 *
 * Questions to port 53 are answered from the listener itself, whose port that is. */
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/fd.h"
#include "guard/dial.h"
#include "guard/dns.h"
#include "guard/flow.h"
#include "guard/handle.h"
#include "guard/learned.h"
#include "guard/policy.h"
#include "guard/resolver.h"
#include "guard/warden_link.h"

#define DATAGRAM_MAX 65535
#define TURN_MAX     64 /* datagrams of one socket in a turn */
#define WAITING_MAX  4  /* while the socket is made */
#define UDP_IDLE_NS  120000000000ull
#define ASK_NS       2000000000ull

struct datagram {
    struct datagram *next;
    size_t len;
    uint8_t bytes[];
};

struct udp_flow {
    struct subject *subject;
    struct policy *policy; /* that it was judged by */
    struct udp_flow *next, **prev;
    struct net_addr dst;
    struct sockaddr_storage local, peer; /* where it was going, where it came from */
    char name[POLICY_NAME_MAX + 1];      /* that dst stands for; "" */
    uint64_t seq;                        /* of what the warden was asked; 0: answered */
    int inside, outside;
    uv_poll_t *in_watch, *out_watch;
    uv_timer_t *timer;
    struct resolver_query *query;
    struct datagram *waiting;
    unsigned n_waiting;
    const char *rule, *error;
    bool allowed;
    uint64_t up, down, began_ns, used_ms;
};

static uint8_t bytes[DATAGRAM_MAX]; /* one thread */

/* ---- its end --------------------------------------------------------------------------------- */

static void udp_end(struct udp_flow *u)
{
    struct subject *s = u->subject;
    struct decision d = {.kind = "flow",
                         .protocol = "udp",
                         .allowed = u->allowed,
                         .rule = u->rule,
                         .name = u->name[0] ? u->name : learned_name(s, &u->dst),
                         .address = &u->dst,
                         .detail = u->error,
                         .up = u->up,
                         .down = u->down,
                         .ms = (clock_ns() - u->began_ns) / 1000000};

    record_decision(s, &d);
    if (u->query)
        resolver_cancel(u->query);
    watch_drop(&u->in_watch);
    watch_drop(&u->out_watch);
    alarm_drop(&u->timer);
    close_p(&u->inside);
    close_p(&u->outside);
    while (u->waiting) {
        struct datagram *g = u->waiting;
        u->waiting = g->next;
        free(g);
    }
    if (u->next)
        u->next->prev = u->prev;
    *u->prev = u->next;
    quota_give_flow(s);
    policy_unref(u->policy);
    free(u);
    subject_unref(s);
}

static void refuse(struct udp_flow *u, const char *rule)
{
    u->allowed = false;
    u->rule = rule;
    udp_end(u);
}

/* ---- both ways ------------------------------------------------------------------------------- */

/* Returns false if the flow is gone. */
static bool copy(struct udp_flow *u, int from, int to, uint64_t *total)
{
    for (unsigned i = 0; i < TURN_MAX; i++) {
        ssize_t n = recv(from, bytes, sizeof bytes, 0);
        if (n < 0 && errno == EAGAIN)
            return true;
        if (n < 0 && errno != ECONNREFUSED) {
            u->error = "broken";
            udp_end(u);
            return false;
        }
        if (n < 0)
            continue; /* the far side said that nobody is there: so will the next answer be none */
        *total += (uint64_t)n;
        u->used_ms = uv_now(u->subject->guard->loop);
        if (!quota_count(u->subject, (uint64_t)n)) {
            u->error = "quota of bytes";
            udp_end(u);
            return false;
        }
        send(to, bytes, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT); /* or it is lost, as UDP may be */
    }
    return true;
}

static void on_event(uv_poll_t *w, int status, int events)
{
    struct udp_flow *u = w->data;

    (void)status, (void)events;
    if (w == u->in_watch)
        copy(u, u->inside, u->outside, &u->up);
    else
        copy(u, u->outside, u->inside, &u->down);
}

static void on_idle(uv_timer_t *t)
{
    struct udp_flow *u = t->data;
    uint64_t since_ns = (uv_now(u->subject->guard->loop) - u->used_ms) * 1000000;

    if (u->inside < 0 || since_ns >= UDP_IDLE_NS)
        udp_end(u);
    else
        alarm_set(t, UDP_IDLE_NS - since_ns, on_idle);
}

void udp_got_socket(struct guard *g, uint64_t seq, int code, int fd)
{
    struct udp_flow *u = NULL;

    for (size_t i = 0; !u && i < ARRAY_SIZE(g->subjects); i++)
        for (struct subject *s = g->subjects[i]; !u && s; s = s->next)
            for (u = s->udp_flows; u && u->seq != seq; u = u->next)
                ;
    if (!u) { /* it has ended meanwhile */
        close_p(&fd);
        return;
    }
    u->seq = 0;
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
    while (u->waiting) {
        struct datagram *d = u->waiting;
        u->waiting = d->next;
        u->up += d->len;
        send(u->outside, d->bytes, d->len, MSG_NOSIGNAL);
        free(d);
    }
}

/* ---- its beginning --------------------------------------------------------------------------- */

static void wait_with(struct udp_flow *u, const uint8_t *p, size_t len)
{
    struct datagram *d, **end = &u->waiting;

    if (u->n_waiting == WAITING_MAX || !quota_count(u->subject, len))
        return;
    d = xcalloc(1, sizeof *d + len);
    d->len = len;
    memcpy(d->bytes, p, len);
    while (*end)
        end = &(*end)->next;
    *end = d;
    u->n_waiting++;
}

static void open_ends(struct udp_flow *u, const struct net_addr *to)
{
    struct guard *g = u->subject->guard;
    const char *why;

    u->outside = dial_udp(g, to, &why);
    if (u->outside < 0) {
        if (why) {
            refuse(u, why);
            return;
        }
        u->error = "no way there";
        u->outside = -1;
        udp_end(u);
        return;
    }
    u->seq = warden_link_ask_udp(g->link, u->subject, &u->local, &u->peer);
}

static void on_resolved(void *arg, const struct resolved *res)
{
    struct udp_flow *u = arg;
    struct net_addr to;

    u->query = NULL;
    if (res->r == -EACCES) {
        refuse(u, res->dropped ? res->dropped : "internal address");
    } else if (res->r < 0) {
        u->error = "the name cannot be resolved";
        udp_end(u);
    } else {
        to = res->addrs[0];
        to.port = u->dst.port;
        open_ends(u, &to);
    }
}

static const char *refused_protocol(const struct guard *g, const struct net_addr *dst)
{
    if (dst->port == 443 && !g->settings.egress_quic)
        return "QUIC";
    if (dst->port == 853 && !g->settings.egress_dot)
        return "DNS over TLS";
    return NULL;
}

/* By address, or by the name that the address stands for: datagrams carry no other. */
static void judge(const struct udp_flow *u, const struct policy *p, struct judgement *ret)
{
    const struct guard *g = u->subject->guard;
    struct judgement fallback = {0};

    if (u->name[0])
        policy_judge_name(p, u->name, NULL, ret);
    else
        policy_judge_address(p, &u->dst, ret, &fallback);
    if (ret->verdict == VERDICT_NAME)
        *ret = fallback;
    if (u->name[0] && deny_set_name(g->deny, u->name))
        *ret = (struct judgement){VERDICT_DENY, deny_set_name(g->deny, u->name)};
    if (refused_protocol(g, &u->dst))
        *ret = (struct judgement){VERDICT_DENY, refused_protocol(g, &u->dst)};
    if (policy_proxy(p))
        *ret = (struct judgement){VERDICT_DENY, "UDP beside the egress proxy"};
}

static void begin(struct udp_flow *u)
{
    struct guard *g = u->subject->guard;
    const char *name = fake_is(&u->dst) ? fake_name(u->subject, &u->dst) : NULL;
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

static struct udp_flow *find(struct subject *s, const struct sockaddr_storage *local,
                             const struct sockaddr_storage *peer)
{
    for (struct udp_flow *u = s->udp_flows; u; u = u->next)
        if (memcmp(&u->local, local, sizeof *local) == 0 &&
            memcmp(&u->peer, peer, sizeof *peer) == 0)
            return u;
    return NULL;
}

static void take(struct subject *s, const struct sockaddr_storage *local,
                 const struct sockaddr_storage *peer, const uint8_t *p, size_t len)
{
    struct udp_flow *u = find(s, local, peer);
    struct net_addr dst;

    if (u) {
        wait_with(u, p, len);
        return;
    }
    if (net_addr_from((const struct sockaddr *)local, &dst) < 0 || quota_take_flow(s) != QUOTA_OK)
        return;
    u = xcalloc(1, sizeof *u);
    *u = (struct udp_flow){.subject = subject_ref(s),
                           .policy = policy_ref(s->policy),
                           .next = s->udp_flows,
                           .prev = &s->udp_flows,
                           .dst = dst,
                           .local = *local,
                           .peer = *peer,
                           .inside = -1,
                           .outside = -1,
                           .began_ns = clock_ns(),
                           .used_ms = uv_now(s->guard->loop)};
    if (u->next)
        u->next->prev = &u->next;
    s->udp_flows = u;
    wait_with(u, p, len);
    begin(u);
}

/* ---- the listener ---------------------------------------------------------------------------- */

struct question {
    struct subject *subject;
    struct question *next, **prev;
    struct sockaddr_storage local, peer;
    struct dns_pending *pending;
    bool *gone; /* set when it is, while it is being asked */
};

static void question_free(struct question *q)
{
    struct subject *s = q->subject;

    if (q->gone)
        *q->gone = true;
    if (q->next)
        q->next->prev = q->prev;
    *q->prev = q->next;
    free(q);
    subject_unref(s);
}

/* From the address that was asked; the port is the listener's own. */
static void answer(void *arg, const uint8_t *p, size_t len)
{
    struct question *q = arg;
    struct iovec io = {.iov_base = (void *)(uintptr_t)p, .iov_len = len};
    union {
        struct cmsghdr align;
        char room[CMSG_SPACE(sizeof(struct in6_pktinfo))];
    } control = {0};
    struct msghdr m = {.msg_name = &q->peer,
                       .msg_namelen = sizeof(struct sockaddr_in6),
                       .msg_iov = &io,
                       .msg_iovlen = 1,
                       .msg_control = &control,
                       .msg_controllen = sizeof control.room};
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    struct in6_pktinfo from = {.ipi6_addr = ((struct sockaddr_in6 *)&q->local)->sin6_addr};

    c->cmsg_level = IPPROTO_IPV6;
    c->cmsg_type = IPV6_PKTINFO;
    c->cmsg_len = CMSG_LEN(sizeof from);
    memcpy(CMSG_DATA(c), &from, sizeof from);
    sendmsg(q->subject->udp, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
    question_free(q);
}

static void ask(struct subject *s, const struct sockaddr_storage *local,
                const struct sockaddr_storage *peer, const uint8_t *p, size_t len)
{
    struct question *q = xcalloc(1, sizeof *q);
    struct dns_pending *pending;
    struct question **head = &s->questions;
    bool gone = false;

    *q = (struct question){.subject = subject_ref(s),
                           .local = *local,
                           .peer = *peer,
                           .next = *head,
                           .prev = head,
                           .gone = &gone};
    if (q->next)
        q->next->prev = &q->next;
    *head = q;
    pending = dns_serve(s, p, len, false, answer, q);
    if (gone)
        return;
    q->gone = NULL;
    q->pending = pending;
    if (!pending) /* it was no question */
        question_free(q);
}

/* An IPv4 address in the form that the listener, which is an IPv6 socket, speaks of it. */
static void as_v6(const struct sockaddr_in *v4, struct sockaddr_storage *ret)
{
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = v4->sin_port};

    v6.sin6_addr.s6_addr[10] = v6.sin6_addr.s6_addr[11] = 0xff;
    memcpy(v6.sin6_addr.s6_addr + 12, &v4->sin_addr, 4);
    memset(ret, 0, sizeof *ret);
    memcpy(ret, &v6, sizeof v6);
}

static bool original_destination(struct msghdr *m, struct sockaddr_storage *ret)
{
    struct sockaddr_in v4;

    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
        if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_ORIGDSTADDR) {
            memcpy(&v4, CMSG_DATA(c), sizeof v4);
            as_v6(&v4, ret);
            return true;
        }
        if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_ORIGDSTADDR) {
            memset(ret, 0, sizeof *ret);
            memcpy(ret, CMSG_DATA(c), sizeof(struct sockaddr_in6));
            return true;
        }
    }
    return false;
}

void udp_receive(struct subject *s)
{
    for (unsigned i = 0; i < TURN_MAX && !s->gone; i++) {
        struct sockaddr_storage peer = {0}, local;
        union {
            struct cmsghdr align;
            char room[512];
        } control;
        struct iovec io = {.iov_base = bytes, .iov_len = sizeof bytes};
        struct msghdr m = {.msg_name = &peer,
                           .msg_namelen = sizeof peer,
                           .msg_iov = &io,
                           .msg_iovlen = 1,
                           .msg_control = &control,
                           .msg_controllen = sizeof control};
        ssize_t n = recvmsg(s->udp, &m, MSG_DONTWAIT);

        if (n < 0)
            return;
        if (!original_destination(&m, &local))
            continue;
        if (((struct sockaddr_in6 *)&local)->sin6_port == htons(53))
            ask(s, &local, &peer, bytes, (size_t)n);
        else
            take(s, &local, &peer, bytes, (size_t)n);
    }
}

/* ---- another policy -------------------------------------------------------------------------- */

void udp_judge_again(struct subject *s)
{
    struct udp_flow *next;

    for (struct udp_flow *u = s->udp_flows; u; u = next) {
        struct judgement j;
        next = u->next;
        judge(u, s->policy, &j);
        if (j.verdict != VERDICT_ALLOW) {
            u->error = "policy changed";
            udp_end(u);
        }
    }
}

void udp_reset_all(struct subject *s)
{
    while (s->udp_flows) {
        s->udp_flows->error = "the sandbox has ended";
        udp_end(s->udp_flows);
    }
    while (s->questions) {
        if (s->questions->pending)
            dns_cancel(s->questions->pending);
        question_free(s->questions);
    }
}
