#include "guard/flow.h"

#include <linux/netfilter_ipv4.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "lib/base/clock.h"
#include "guard/dial.h"
#include "guard/dns.h"
#include "guard/dns_tcp.h"
#include "guard/flow_impl.h"
#include "guard/learned.h"
#include "guard/refusal.h"

#define ACCEPTS_MAX 64 /* in one turn, so that other sandboxes get theirs */

#ifndef IP6T_SO_ORIGINAL_DST
#define IP6T_SO_ORIGINAL_DST 80
#endif

/* ---- the end of a flow ----------------------------------------------------------------------- */

static void put_on_record(struct flow *f)
{
    RECORD(f->sandbox, .kind = "flow", .protocol = f->protocol ? f->protocol : "tcp",
           .allowed = f->allowed, .rule = f->rule,
           .name = f->name[0] ? f->name : learned_name(f->sandbox, &f->dst),
           .address = f->dialled.port ? &f->dialled : &f->dst, .detail = f->error, .up = f->up,
           .down = f->down, .ms = (clock_ns() - f->began_ns) / 1000000, .policy = f->policy);
}

void flow_end(struct flow *f)
{
    struct sandbox *s = f->sandbox;

    put_on_record(f);
    flow_come_back(f);
    if (f->dns)
        dns_tcp_free(f->dns);
    close_p(&f->fd);
    list_remove(&f->link);
    quota_give_flow(s);
    policy_unref(f->policy);
    strbuf_done(&f->out);
    free(f->first);
    free(f);
    sandbox_unref(s);
}

static void close_hard(int fd)
{
    struct linger hard = {.l_onoff = 1};

    setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
}

void flow_refuse(struct flow *f, const char *rule)
{
    f->allowed = false;
    f->rule = rule;
    if (!refusal_send(f->fd, &f->peek, f->name[0] ? f->name : NULL, &f->dst, rule))
        close_hard(f->fd);
    flow_end(f);
}

void flow_fail(struct flow *f, const char *what)
{
    f->error = what;
    if (!refusal_send_failure(f->fd, &f->peek, what))
        close_hard(f->fd);
    flow_end(f);
}

void flow_reset(struct flow *f, const char *why)
{
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
        close_hard(f->fd);
    flow_end(f);
}

/* ---- the beginning of a flow ----------------------------------------------------------------- */

static int original_destination(const struct sandbox *s, int fd, struct net_addr *ret)
{
    struct sockaddr_storage to;
    socklen_t len = sizeof(to);
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

/* Whatever server the question was meant for, the guard answers it, by the rules of dns.h. */
static void begin_dns(struct flow *f)
{
    f->protocol = "dns";
    f->rule = "answered here";
    f->state = FLOW_DNS;
    f->dns = dns_tcp_new(f->sandbox, steal_fd(&f->fd), on_dns_done, f);
}

/* The address stands for a name, so the guard dials the name at once; it judges the sandbox's first
 * bytes when connected. */
static void begin_fake(struct flow *f)
{
    const char *name = fake_name(f->sandbox, &f->dst);

    if (!name) {
        flow_refuse(f, "fake address without a name");
        return;
    }
    snprintf(f->name, sizeof(f->name), "%s", name);
    f->fake = f->silent = true;
    flow_decide(f);
}

static void begin(struct flow *f)
{
    const struct guard *g = f->sandbox->guard;
    struct judgement j, fallback = {0};
    const char *why;

    if (f->dst.port == 53) {
        begin_dns(f);
        return;
    }
    if (f->dst.port == 853 && !g->settings.egress_dot) {
        flow_refuse(f, "DNS over TLS");
        return;
    }
    if (fake_is(&f->dst)) {
        begin_fake(f);
        return;
    }
    why = guard_refuses(g, &f->dst);
    if (why) {
        flow_refuse(f, why);
        return;
    }
    policy_judge_address(f->policy, &f->dst, &j, &fallback);
    if (j.verdict == VERDICT_DENY)
        flow_refuse(f, j.rule);
    else if (j.verdict == VERDICT_NAME)
        flow_peek(f, fallback.verdict == VERDICT_ALLOW);
    else if (deny_set_has_names(g->deny)) /* the connection may be to one of them */
        flow_peek(f, true);
    else
        flow_go(f, false, j.rule);
}

/* False: the quota allows no further connection. */
static bool flow_new(struct sandbox *s, int fd)
{
    struct flow *f;
    int on = 1;

    if (!quota_take_flow(s)) {
        close_hard(fd);
        close(fd);
        return false;
    }
    f = NEW(struct flow, .sandbox = sandbox_ref(s), .policy = policy_ref(s->policy), .fd = fd,
            .server_fd = -1, .began_ns = clock_ns());
    list_push(&s->flows, &f->link);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    if (original_destination(s, fd, &f->dst) < 0)
        flow_refuse(f, "no destination");
    else
        begin(f);
    return true;
}

bool flows_accept(struct sandbox *s)
{
    bool within = true;

    for (unsigned i = 0; i < ACCEPTS_MAX; i++) {
        int fd = accept4(s->tcp, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0 && (errno == ECONNABORTED || errno == EINTR))
            continue;
        if (fd < 0) /* perhaps no descriptor is left; the listener stays readable */
            return within && errno == EAGAIN;
        within &= flow_new(s, fd);
    }
    return false;
}

/* ---- a new policy ---------------------------------------------------------------------------- */

static bool same_proxy(const struct policy_proxy *a, const struct policy_proxy *b)
{
    if (!a || !b)
        return a == b;
    return a->port == b->port && strcmp(a->host, b->host) == 0 &&
           strcmp(a->username, b->username) == 0 && a->password.len == b->password.len &&
           (a->password.len == 0 ||
            memcmp(a->password.bytes, b->password.bytes, a->password.len) == 0);
}

/* Whether a flow may stay under a new policy. An inspected flow still uses the rules and secrets of
 * the old one; a flow that should now be inspected is not. */
static bool stays(const struct flow *f, const struct policy *p, struct flow_verdict *v)
{
    flow_judge(f, p, v);
    return v->allowed && v->by_name == f->by_name && v->inspect == f->inspected &&
           (!f->inspected || p == f->policy) && same_proxy(p->proxy, f->policy->proxy);
}

static void adopt(struct flow *f, struct policy *p)
{
    policy_unref(f->policy);
    f->policy = policy_ref(p);
}

static void judge_again(struct flow *f, struct policy *p)
{
    struct flow_verdict v;

    switch (f->state) {
    case FLOW_PEEKING: /* nothing has been decided yet */
    case FLOW_DNS:
        adopt(f, p);
        break;
    case FLOW_GOING: /* no byte has been passed on yet: the flow begins anew */
        flow_come_back(f);
        adopt(f, p);
        f->allowed = false;
        if (f->first_len > 0)
            flow_decide(f);
        else
            begin(f);
        break;
    case FLOW_WAITING:
    case FLOW_OPEN:
        if (!stays(f, p, &v)) {
            flow_reset(f, "policy changed");
            break;
        }
        f->rule = v.rule;
        adopt(f, p);
        break;
    }
}

void flows_judge_again(struct sandbox *s)
{
    LIST_EACH(struct flow, f, &s->flows, link)
        judge_again(f, s->policy);
}

void flows_reset_inspected(struct sandbox *s)
{
    LIST_EACH(struct flow, f, &s->flows, link)
        if (f->inspect)
            flow_reset(f, "settings changed");
}

void flows_reset_all(struct sandbox *s, const char *why)
{
    while (!list_empty(&s->flows))
        flow_reset(LIST_FIRST(struct flow, &s->flows, link), why);
}
