#include "guard/flow.h"

#include <fcntl.h>
#include <linux/netfilter_ipv4.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/fd.h"
#include "guard/dial.h"
#include "guard/dns.h"
#include "guard/dns_tcp.h"
#include "guard/flow_impl.h"
#include "guard/handle.h"
#include "guard/learned.h"
#include "guard/refusal.h"

#define PROXY_BYTES_MAX 2048
#define ACCEPTS_MAX     64 /* in one turn: others have connections too */

#ifndef IP6T_SO_ORIGINAL_DST
#define IP6T_SO_ORIGINAL_DST 80
#endif

/* Servers that speak first: waiting for the sandbox's bytes would only cost time. */
static bool server_speaks_first(uint16_t port)
{
    static const uint16_t ports[] = {21, 22, 25, 110, 119, 143, 465, 587, 993, 995, 3306, 5432};

    for (size_t i = 0; i < ARRAY_SIZE(ports); i++)
        if (ports[i] == port)
            return port != 465 && port != 993 && port != 995; /* TLS from the start */
    return false;
}

/* ---- its end --------------------------------------------------------------------------------- */

static void put_on_record(struct flow *f)
{
    struct decision d = {.kind = "flow",
                         .protocol = f->protocol ? f->protocol : "tcp",
                         .allowed = f->allowed,
                         .rule = f->rule,
                         .name = f->name[0] ? f->name : learned_name(f->subject, &f->dst),
                         .address = f->dialled.port ? &f->dialled : &f->dst,
                         .detail = f->error,
                         .up = f->up,
                         .down = f->down,
                         .ms = (clock_ns() - f->began_ns) / 1000000};

    record_decision(f->subject, &d);
}

static void flow_end(struct flow *f)
{
    struct subject *s = f->subject;

    if (f->query)
        resolver_cancel(f->query);
    if (f->dial)
        dial_cancel(f->dial);
    if (f->dns)
        dns_tcp_free(f->dns);
    watch_drop(&f->watch);
    alarm_drop(&f->timer);
    close_p(&f->fd);
    close_p(&f->server_fd);
    put_on_record(f);
    if (f->next)
        f->next->prev = f->prev;
    *f->prev = f->next;
    quota_give_flow(s);
    policy_unref(f->policy);
    free(f->first);
    free(f);
    subject_unref(s);
}

/* The sandbox is told why where its protocol has room for it. */
static void refuse(struct flow *f, const char *rule)
{
    struct linger hard = {.l_onoff = 1};

    f->allowed = false;
    f->rule = rule;
    if (!refusal_send(f->fd, &f->peek, f->name[0] ? f->name : NULL, &f->dst, rule))
        setsockopt(f->fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
    flow_end(f);
}

/* It was allowed, and the network said no. */
static void fail(struct flow *f, const char *what)
{
    struct linger hard = {.l_onoff = 1};

    f->error = what;
    if (!refusal_send_failure(f->fd, &f->peek, what))
        setsockopt(f->fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
    flow_end(f);
}

/* ---- once it is connected -------------------------------------------------------------------- */

static bool on_count(void *arg, uint64_t up, uint64_t down)
{
    struct flow *f = arg;

    f->up += up;
    f->down += down;
    return quota_count(f->subject, up + down);
}

static void on_over_quota(uv_timer_t *t)
{
    flow_reset(t->data, "quota of bytes");
}

static void on_inspect_count(void *arg, uint64_t up, uint64_t down)
{
    struct flow *f = arg;

    if (on_count(f, up, down) || f->timer)
        return;
    /* Not from inside of it. */
    f->timer = alarm_new(f->subject->guard->loop, f);
    alarm_set(f->timer, 0, on_over_quota);
}

static void on_relayed(void *arg, const struct relay_done *d)
{
    struct flow *f = arg;

    f->relay = NULL;
    f->error = d->error;
    flow_end(f);
}

static void on_inspected(void *arg, const struct inspect_done *d)
{
    struct flow *f = arg;

    f->inspect = NULL;
    if (d->error)
        f->error = d->error;
    flow_end(f);
}

static void start_relay(struct flow *f, const void *back, size_t back_len)
{
    alarm_drop(&f->timer);
    f->relay = relay_new(&(struct relay_order){.guard = f->subject->guard,
                                               .sandbox_fd = steal_fd(&f->fd),
                                               .server_fd = steal_fd(&f->server_fd),
                                               .first = f->first,
                                               .first_len = f->first_len,
                                               .first_back = back,
                                               .first_back_len = back_len,
                                               .count = on_count,
                                               .done = on_relayed,
                                               .arg = f});
    free(steal_ptr(&f->first));
    f->first_len = 0;
}

static void start_inspect(struct flow *f)
{
    alarm_drop(&f->timer);
    f->protocol = f->peek.what == PEEK_TLS ? "tls" : "http";
    f->inspect = inspect_new(&(struct inspect_order){.subject = f->subject,
                                                     .policy = f->policy,
                                                     .name = f->name,
                                                     .port = f->dst.port,
                                                     .tls = f->peek.what == PEEK_TLS,
                                                     .sandbox_fd = steal_fd(&f->fd),
                                                     .server_fd = steal_fd(&f->server_fd),
                                                     .first = f->first,
                                                     .first_len = f->first_len,
                                                     .count = on_inspect_count,
                                                     .done = on_inspected,
                                                     .arg = f});
    free(steal_ptr(&f->first));
    f->first_len = 0;
}

static void connected(struct flow *f, const void *back, size_t back_len)
{
    if (f->inspected)
        start_inspect(f);
    else
        start_relay(f, back, back_len);
}

/* ---- through a proxy ------------------------------------------------------------------------- */

/* It may hold a password. */
static void flush_to_proxy(struct flow *f)
{
    if (f->out.len > 0 &&
        send(f->server_fd, f->out.buf, f->out.len, MSG_NOSIGNAL) != (ssize_t)f->out.len)
        f->proxy_broken = true; /* a few bytes into an empty socket: they fit, or it is gone */
    explicit_bzero(f->out.buf, f->out.len);
    strbuf_done(&f->out);
    strbuf_init(&f->out, PROXY_BYTES_MAX);
}

static void on_proxy(uv_poll_t *w, int status, int events)
{
    struct flow *f = w->data;
    uint8_t bytes[1024];
    struct sg_error e = {0};
    size_t used = 0;
    ssize_t n = recv(f->server_fd, bytes, sizeof bytes, 0);
    int r;

    (void)status, (void)events;
    if (n < 0 && errno == EAGAIN)
        return;
    r = n <= 0 ? -ECONNRESET : socks5_feed(&f->socks, bytes, (size_t)n, &used, &f->out, &e);
    flush_to_proxy(f);
    if (r == 0 && !f->proxy_broken)
        return;
    watch_drop(&f->watch);
    if (r < 0 || f->proxy_broken)
        fail(f, "the egress proxy has refused it");
    else
        connected(f, bytes + used, (size_t)n - used);
}

static void start_proxy(struct flow *f)
{
    const char *name = f->by_name ? f->name : "";

    strbuf_init(&f->out, PROXY_BYTES_MAX);
    socks5_begin(&f->socks, policy_proxy(f->policy), name, &f->dst, &f->out);
    flush_to_proxy(f);
    f->watch = watch_new(f->subject->guard->loop, f->server_fd, f);
    watch_for(f->watch, UV_READABLE, on_proxy);
}

/* ---- dialling -------------------------------------------------------------------------------- */

static const char *network_error(int r)
{
    switch (-r) {
    case ECONNREFUSED:
        return "connection refused";
    case ETIMEDOUT:
        return "no answer";
    case ENETUNREACH:
    case EHOSTUNREACH:
        return "no way there";
    default:
        return "cannot connect";
    }
}

static void on_dialled(void *arg, int fd, const struct net_addr *address, const char *why)
{
    struct flow *f = arg;

    f->dial = NULL;
    if (fd < 0) {
        if (why)
            refuse(f, why);
        else
            fail(f, network_error(fd));
        return;
    }
    f->server_fd = fd;
    if (policy_proxy(f->policy)) {
        start_proxy(f);
        return;
    }
    f->dialled = *address;
    connected(f, NULL, 0);
}

static void dial(struct flow *f, struct net_addr *addrs, size_t n, uint16_t port)
{
    for (size_t i = 0; i < n; i++)
        addrs[i].port = port;
    f->state = FLOW_DIALLING;
    struct dial *d = dial_new(f->subject->guard, addrs, n, on_dialled, f);
    if (d)
        f->dial = d;
}

static void on_resolved(void *arg, const struct resolved *res)
{
    struct flow *f = arg;
    struct net_addr addrs[RESOLVER_ADDRS];
    const struct policy_proxy *proxy = policy_proxy(f->policy);
    const char *rule = NULL;
    size_t n = 0;

    f->query = NULL;
    if (res->r == -EACCES) {
        refuse(f, res->dropped ? res->dropped : "internal address");
        return;
    }
    if (res->r < 0) {
        fail(f, res->r == -ENOENT ? "no such name" : "the name cannot be resolved");
        return;
    }
    for (size_t i = 0; i < res->n; i++) {
        struct judgement j = {VERDICT_ALLOW, NULL};
        /* A name that is not allowed as such leads nowhere that its address would not. */
        if (!proxy)
            policy_judge_name(f->policy, f->name, &res->addrs[i], &j);
        if (j.verdict == VERDICT_ALLOW)
            addrs[n++] = res->addrs[i];
        else
            rule = j.rule;
    }
    if (n == 0)
        refuse(f, rule);
    else
        dial(f, addrs, n, proxy ? proxy->port : f->dst.port);
}

static void resolve(struct flow *f, const char *name)
{
    struct resolver_query *q;

    f->state = FLOW_RESOLVING;
    /* An answer from the cache comes before this returns, and f may be gone then. */
    q = resolver_lookup(f->subject->guard->resolver, name, on_resolved, f);
    if (q)
        f->query = q;
}

/* It may go: by its name to where that is, or to where it was going. A proxy is dialled in place of
 * both, and judged like them. */
static void go(struct flow *f, bool by_name, const char *rule)
{
    const struct policy_proxy *proxy = policy_proxy(f->policy);
    struct net_addr to = f->dst;

    alarm_drop(&f->timer);
    watch_drop(&f->watch);
    f->allowed = true;
    f->rule = rule;
    f->by_name = by_name;
    if (proxy && net_addr_parse(proxy->host, &to) == 0)
        dial(f, &to, 1, proxy->port);
    else if (proxy)
        resolve(f, proxy->host);
    else if (by_name)
        resolve(f, f->name);
    else
        dial(f, &to, 1, f->dst.port);
}

/* ---- judging --------------------------------------------------------------------------------- */

void flow_judge(const struct flow *f, const struct policy *p, struct flow_verdict *ret)
{
    const struct guard *g = f->subject->guard;
    struct judgement j, fallback = {0};

    *ret = (struct flow_verdict){0};
    if (f->fake) {
        policy_judge_name(p, f->name, NULL, &j);
        ret->by_name = true;
    } else {
        policy_judge_address(p, &f->dst, &j, &fallback);
        ret->by_name = j.verdict == VERDICT_NAME && f->name[0] && fallback.verdict != VERDICT_ALLOW;
        if (j.verdict == VERDICT_NAME && f->name[0])
            policy_judge_name(p, f->name, &f->dst, &j);
        else if (j.verdict == VERDICT_NAME)
            j = fallback;
    }
    ret->allowed = j.verdict == VERDICT_ALLOW;
    ret->rule = j.rule;
    if (ret->allowed && f->name[0] && deny_set_name(g->deny, f->name)) {
        ret->allowed = false;
        ret->rule = deny_set_name(g->deny, f->name);
    }
    if (f->name[0] && policy_inspects(p, f->name) &&
        (f->peek.what == PEEK_TLS || f->peek.what == PEEK_HTTP))
        ret->inspect = ret->by_name = true;
    /* Without TLS every request says a name of its own: each is looked at. */
    if (ret->by_name && f->peek.what == PEEK_HTTP)
        ret->inspect = true;
}

static void decide(struct flow *f)
{
    struct flow_verdict v;

    if (f->peek.what == PEEK_BAD) {
        refuse(f, "malformed TLS or HTTP");
        return;
    }
    if (f->peek.ech && !f->subject->guard->settings.egress_ech)
        f->name[0] = '\0';
    flow_judge(f, f->policy, &v);
    if (!v.allowed && f->peek.ech && !f->subject->guard->settings.egress_ech)
        v.rule = "encrypted ClientHello";
    if (!v.allowed) {
        refuse(f, v.rule);
    } else if (v.by_name && f->peek.connect) {
        refuse(f, "CONNECT through a name that is allowed");
    } else {
        f->inspected = v.inspect;
        go(f, v.by_name, v.rule);
    }
}

/* An address that stands for a name has said one already; what is said to the server counts, since
 * it counts there: it may have many names at one address. */
static void take_name(struct flow *f)
{
    if (!f->fake || f->peek.name[0])
        snprintf(f->name, sizeof f->name, "%s", f->peek.name);
    f->protocol = f->peek.what == PEEK_TLS ? "tls" : f->peek.what == PEEK_HTTP ? "http" : NULL;
}

static void peeked(struct flow *f)
{
    take_name(f);
    decide(f);
}

static void on_peek_late(uv_timer_t *t)
{
    struct flow *f = t->data;

    f->peek = (struct peek){.what = PEEK_OTHER};
    peeked(f);
}

static void on_first_bytes(uv_poll_t *w, int status, int events)
{
    struct flow *f = w->data;
    ssize_t n;

    (void)status, (void)events;
    if (!f->first)
        f->first = xcalloc(1, PEEK_MAX);
    n = recv(f->fd, f->first + f->first_len, PEEK_MAX - f->first_len, 0);
    if (n < 0 && errno == EAGAIN)
        return;
    if (n <= 0) { /* it has nothing to say any more: as if it had nothing to say */
        f->error = "closed before it said anything";
        f->rule = "no name";
        flow_end(f);
        return;
    }
    f->first_len += (size_t)n;
    peek_bytes(f->first, f->first_len, &f->peek);
    if (f->peek.what == PEEK_MORE && f->first_len == PEEK_MAX)
        f->peek.what = PEEK_OTHER;
    if (f->peek.what != PEEK_MORE)
        peeked(f);
}

static void start_peek(struct flow *f, bool allowed_anyway)
{
    f->state = FLOW_PEEKING;
    if (server_speaks_first(f->dst.port)) {
        f->peek.what = PEEK_OTHER;
        decide(f);
        return;
    }
    f->timer = alarm_new(f->subject->guard->loop, f);
    alarm_set(f->timer, allowed_anyway ? PEEK_SHORT_NS : PEEK_NS, on_peek_late);
    f->watch = watch_new(f->subject->guard->loop, f->fd, f);
    watch_for(f->watch, UV_READABLE, on_first_bytes);
}

/* ---- its beginning --------------------------------------------------------------------------- */

static int original_destination(const struct subject *s, int fd, struct net_addr *ret)
{
    struct sockaddr_storage to;
    socklen_t len = sizeof to;
    int r;

    if (s->path == PATH_REDIRECT) {
        r = getsockopt(fd, SOL_IP, SO_ORIGINAL_DST, &to, &len);
        if (r < 0)
            r = getsockopt(fd, SOL_IPV6, IP6T_SO_ORIGINAL_DST, &to, &len);
    } else {
        r = getsockname(fd, (struct sockaddr *)&to, &len);
    }
    return r < 0 ? -errno : net_addr_from((struct sockaddr *)&to, ret);
}

static void on_dns_done(void *arg, const char *error)
{
    struct flow *f = arg;

    f->dns = NULL;
    f->error = error;
    f->allowed = true;
    flow_end(f);
}

static void begin(struct flow *f)
{
    const struct settings *settings = &f->subject->guard->settings;
    struct judgement j, fallback = {0};
    const char *why;

    if (f->dst.port == 53) { /* whoever it was meant for: we answer, by the same rules */
        f->protocol = "dns";
        f->rule = "answered here";
        f->state = FLOW_DNS;
        f->dns = dns_tcp_new(f->subject, steal_fd(&f->fd), on_dns_done, f);
        return;
    }
    if (f->dst.port == 853 && !settings->egress_dot) {
        refuse(f, "DNS over TLS");
        return;
    }
    if (fake_is(&f->dst)) {
        const char *name = fake_name(f->subject, &f->dst);
        if (!name) {
            refuse(f, "an address that stands for no name");
            return;
        }
        f->fake = true;
        snprintf(f->name, sizeof f->name, "%s", name);
        start_peek(f, !policy_inspects(f->policy, name));
        return;
    }
    why = guard_refuses(f->subject->guard, &f->dst);
    if (why) {
        refuse(f, why);
        return;
    }
    policy_judge_address(f->policy, &f->dst, &j, &fallback);
    if (j.verdict == VERDICT_DENY)
        refuse(f, j.rule);
    else if (j.verdict == VERDICT_NAME)
        start_peek(f, fallback.verdict == VERDICT_ALLOW);
    else if (deny_set_has_names(f->subject->guard->deny)) /* of which this may be one */
        start_peek(f, true);
    else
        go(f, false, j.rule);
}

static void flow_new(struct subject *s, int fd)
{
    struct linger hard = {.l_onoff = 1};
    struct flow *f;
    int on = 1;

    if (quota_take_flow(s) != QUOTA_OK) {
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
        close(fd);
        return;
    }
    f = xcalloc(1, sizeof *f);
    *f = (struct flow){.subject = subject_ref(s),
                       .policy = policy_ref(s->policy),
                       .fd = fd,
                       .server_fd = -1,
                       .began_ns = clock_ns(),
                       .next = s->flows,
                       .prev = &s->flows};
    if (f->next)
        f->next->prev = &f->next;
    s->flows = f;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (original_destination(s, fd, &f->dst) < 0)
        refuse(f, "no destination");
    else
        begin(f);
}

void flows_accept(struct subject *s)
{
    for (unsigned i = 0; i < ACCEPTS_MAX && !s->gone; i++) {
        int fd = accept4(s->tcp, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0 && (errno == ECONNABORTED || errno == EINTR))
            continue;
        if (fd < 0)
            return;
        flow_new(s, fd);
    }
}

/* ---- another policy -------------------------------------------------------------------------- */

void flow_reset(struct flow *f, const char *why)
{
    struct linger hard = {.l_onoff = 1};

    if (f->relay) {
        relay_reset(f->relay, why);
        return;
    }
    f->error = why;
    if (f->inspect) {
        inspect_reset(f->inspect);
        return;
    }
    if (f->fd >= 0)
        setsockopt(f->fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
    flow_end(f);
}

/* What is inspected has the old rules and secrets; what should be and is not has none. */
static bool stays(const struct flow *f, const struct policy *p)
{
    struct flow_verdict v;

    if (f->state == FLOW_DNS)
        return true;
    flow_judge(f, p, &v);
    return v.allowed && !f->inspected && v.inspect == f->inspected && v.by_name == f->by_name &&
           !policy_proxy(p) == !policy_proxy(f->policy);
}

void flows_judge_again(struct subject *s)
{
    struct flow *next;

    for (struct flow *f = s->flows; f; f = next) {
        next = f->next;
        if (f->state == FLOW_PEEKING || !stays(f, s->policy))
            flow_reset(f, "policy changed");
    }
}

void flows_reset_all(struct subject *s, const char *why)
{
    while (s->flows)
        flow_reset(s->flows, why);
}
