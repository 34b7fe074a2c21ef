/* Takes an allowed connection to its server: resolves the name, dials, asks the proxy, and hands
 * the connection over to the relay or the inspection. */
#include <sys/socket.h>

#include "guard/dial.h"
#include "guard/flow_impl.h"
#include "lib/uv/handle.h"

#define PROXY_BYTES_MAX 2048

/* ---- after the server is connected ----------------------------------------------------------- */

static bool on_count(void *arg, uint64_t up, uint64_t down)
{
    struct flow *f = arg;

    f->up += up;
    f->down += down;
    return quota_count(f->sandbox, up + down);
}

static void on_inspect_count(void *arg, uint64_t up, uint64_t down)
{
    if (!on_count(arg, up, down))
        flow_reset(arg, "quota of bytes");
}

static void on_relayed(void *arg, const char *error)
{
    struct flow *f = arg;

    f->relay = NULL;
    f->error = error;
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
    f->relay = relay_new(&(struct relay_order){.guard = f->sandbox->guard,
                                               .sandbox_fd = steal_fd(&f->fd),
                                               .server_fd = steal_fd(&f->server_fd),
                                               .first = f->first,
                                               .first_len = f->first_len,
                                               .first_back = back,
                                               .first_back_len = back_len,
                                               .count = on_count,
                                               .done = on_relayed,
                                               .arg = f});
}

static void start_inspect(struct flow *f)
{
    f->inspect = inspect_new(&(struct inspect_order){.sandbox = f->sandbox,
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
}

void flow_connected(struct flow *f, const void *back, size_t back_len)
{
    /* If the server spoke first, the protocol is neither TLS nor HTTP, so no name will come. */
    if (f->silent && back_len == 0) {
        flow_wait(f);
        return;
    }
    watch_drop(&f->watch);
    watch_drop(&f->server_watch);
    alarm_drop(&f->timer);
    f->state = FLOW_OPEN;
    if (f->inspected)
        start_inspect(f);
    else
        start_relay(f, back, back_len);
    free(steal_ptr(&f->first));
    f->first_len = 0;
}

/* ---- through a proxy ------------------------------------------------------------------------- */

/* Sends what waits for the proxy, and wipes it: it may hold a password. */
static void flush_to_proxy(struct flow *f)
{
    if (f->out.len > 0 &&
        send(f->server_fd, f->out.buf, f->out.len, MSG_NOSIGNAL) != (ssize_t)f->out.len)
        f->proxy_broken = true; /* few bytes, empty socket: they fit, or the proxy is gone */
    strbuf_wipe(&f->out);
    strbuf_init(&f->out, PROXY_BYTES_MAX);
}

static void on_proxy(uv_poll_t *w, int status UNUSED, int events UNUSED)
{
    struct flow *f = w->data;
    uint8_t bytes[1024];
    struct sg_error e = {0};
    size_t used = 0;
    ssize_t n = recv(f->server_fd, bytes, sizeof(bytes), 0);
    int r;

    if (n < 0 && errno == EAGAIN)
        return;
    strbuf_reserve(&f->out);
    r = n <= 0 ? -ECONNRESET : socks5_feed(&f->socks, bytes, (size_t)n, &used, &f->out, &e);
    flush_to_proxy(f);
    if (r == 0 && !f->proxy_broken)
        return;
    watch_drop(&f->server_watch);
    alarm_drop(&f->timer);
    if (r < 0 || f->proxy_broken)
        flow_fail(f, "the egress proxy refused the connection");
    else
        flow_connected(f, bytes + used, (size_t)n - used);
}

static void on_proxy_late(uv_timer_t *t)
{
    flow_fail(t->data, "the egress proxy does not answer");
}

static void start_proxy(struct flow *f)
{
    const char *name = f->by_name ? f->name : "";

    strbuf_init(&f->out, PROXY_BYTES_MAX);
    socks5_begin(&f->socks, f->policy->proxy, name, &f->dst, &f->out);
    flush_to_proxy(f);
    f->timer = alarm_new(f->sandbox->guard->loop, f);
    alarm_set(f->timer, DIAL_NS, on_proxy_late);
    f->server_watch = watch_new(f->sandbox->guard->loop, f->server_fd, f);
    watch_for(f->server_watch, UV_READABLE, on_proxy);
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
        return "no route to the host";
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
            flow_refuse(f, why);
        else
            flow_fail(f, network_error(fd));
        return;
    }
    f->server_fd = fd;
    if (f->policy->proxy) {
        start_proxy(f);
        return;
    }
    f->dialled = *address;
    flow_connected(f, NULL, 0);
}

static void dial(struct flow *f, struct net_addr *addrs, size_t n, uint16_t port)
{
    struct dial *d;

    for (size_t i = 0; i < n; i++)
        addrs[i].port = port;
    /* dial_new may call on_dialled before it returns, and f may be gone then. */
    d = dial_new(f->sandbox->guard, addrs, n, on_dialled, f);
    if (d)
        f->dial = d;
}

static void on_resolved(void *arg, const struct resolved *res)
{
    struct flow *f = arg;
    struct net_addr addrs[RESOLVER_ADDRS];
    const struct policy_proxy *proxy = f->policy->proxy;
    const char *rule = NULL;
    size_t n = 0;

    f->query = NULL;
    if (res->r == -EACCES) {
        flow_refuse(f, res->dropped ? res->dropped : "internal address");
        return;
    }
    if (res->r < 0) {
        flow_fail(f, res->r == -ENOENT ? "no such name" : "the name cannot be resolved");
        return;
    }
    for (size_t i = 0; i < res->n; i++) {
        struct judgement j = {VERDICT_ALLOW, NULL};
        /* A name that no entry allows leads only to addresses that are allowed themselves. */
        if (!proxy)
            policy_judge_name(f->policy, f->name, &res->addrs[i], &j);
        if (j.verdict == VERDICT_ALLOW)
            addrs[n++] = res->addrs[i];
        else
            rule = j.rule;
    }
    if (n == 0)
        flow_refuse(f, rule);
    else
        dial(f, addrs, n, proxy ? proxy->port : f->dst.port);
}

static void resolve(struct flow *f, const char *name)
{
    struct resolver_query *q;

    /* An answer from the cache comes before resolver_lookup returns, and f may be gone then. */
    q = resolver_lookup(f->sandbox->guard->resolver, name, on_resolved, f);
    if (q)
        f->query = q;
}

void flow_come_back(struct flow *f)
{
    if (f->query)
        resolver_cancel(steal_ptr(&f->query));
    if (f->dial)
        dial_cancel(steal_ptr(&f->dial));
    watch_drop(&f->watch);
    watch_drop(&f->server_watch);
    alarm_drop(&f->timer);
    close_p(&f->server_fd);
    f->server_fd = -1;
    f->dialled = (struct net_addr){0};
}

/* If the policy has a proxy, it is dialled in place of name and address, and judged like them. */
void flow_go(struct flow *f, bool by_name, const char *rule)
{
    const struct policy_proxy *proxy = f->policy->proxy;
    struct net_addr to = f->dst;

    f->rule = rule;
    if (f->server_fd >= 0 && by_name == f->by_name) {
        flow_connected(f, NULL, 0);
        return;
    }
    flow_come_back(f);
    f->state = FLOW_GOING;
    f->allowed = true;
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
