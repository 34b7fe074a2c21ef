/* Reads the first bytes of a connection, and asks the policy about the name in them. */
#include <sys/socket.h>

#include "guard/dial.h"
#include "guard/flow_impl.h"
#include "lib/uv/handle.h"

/* ---- judging --------------------------------------------------------------------------------- */

/* The operator's or the guard's own rule that closes the flow's name or address to all; NULL:
 * none. */
static const char *refused_to_all(const struct flow *f)
{
    const struct guard *g = f->sandbox->guard;
    const char *why = f->name[0] ? deny_set_name(g->deny, f->name) : NULL;

    if (!why && f->dialled.port)
        why = guard_refuses(g, &f->dialled);
    else if (!why && !f->fake)
        why = guard_refuses(g, &f->dst);
    return why;
}

void flow_judge(const struct flow *f, const struct policy *p, struct flow_verdict *ret)
{
    const char *refused = refused_to_all(f);
    struct judgement j, fallback = {0};

    *ret = (struct flow_verdict){0};
    if (f->fake) {
        policy_judge_name(p, f->name, f->dialled.port ? &f->dialled : NULL, &j);
        ret->by_name = true;
    } else {
        policy_judge_address(p, &f->dst, &j, &fallback);
        ret->by_name = j.verdict == VERDICT_NAME && f->name[0] && fallback.verdict != VERDICT_ALLOW;
        if (j.verdict == VERDICT_NAME && f->name[0])
            policy_judge_name(p, f->name, &f->dst, &j);
        else if (j.verdict == VERDICT_NAME)
            j = fallback;
    }
    ret->allowed = j.verdict == VERDICT_ALLOW && !refused;
    ret->rule = j.verdict == VERDICT_ALLOW && refused ? refused : j.rule;
    if (f->name[0] && policy_inspects(p, f->name) &&
        (f->peek.what == PEEK_TLS || f->peek.what == PEEK_HTTP))
        ret->inspect = ret->by_name = true;
    /* Without TLS every request says a name of its own, so each must be looked at. */
    if (ret->by_name && f->peek.what == PEEK_HTTP)
        ret->inspect = true;
}

/* Why the flow is refused whatever the policy is; NULL: it is not. A fake address opens the one
 * name that it stands for, not other names that are served at the same place. */
static const char *disbelieved(const struct flow *f)
{
    if (f->peek.what == PEEK_BAD)
        return "malformed TLS or HTTP";
    if (f->fake && f->peek.name[0] && strcmp(f->peek.name, f->name) != 0)
        return "the name is not the one that the fake address belongs to";
    return NULL;
}

/* Whether the flow would be let through for a name that need not be the real one: an encrypted
 * ClientHello may hide another. Two cases are safe: a fake address has said the name already, and
 * an inspection ends the TLS here, so nobody looks behind the outer name. */
static bool is_hidden(const struct flow *f, const struct flow_verdict *v)
{
    return f->peek.ech && !f->sandbox->guard->settings.egress_ech && v->by_name && !v->inspect &&
           !f->fake;
}

void flow_decide(struct flow *f)
{
    const char *why = disbelieved(f);
    struct flow_verdict v;

    if (why) {
        flow_refuse(f, why);
        return;
    }
    flow_judge(f, f->policy, &v);
    if (!v.allowed) {
        flow_refuse(f, v.rule);
    } else if (is_hidden(f, &v)) {
        flow_refuse(f, "encrypted ClientHello");
    } else if (v.by_name && f->peek.connect) {
        flow_refuse(f, "CONNECT through a name that is allowed");
    } else {
        f->inspected = v.inspect;
        flow_go(f, v.by_name, v.rule);
    }
}

/* ---- first bytes ----------------------------------------------------------------------------- */

static void peeked(struct flow *f)
{
    f->silent = false;
    if (!f->fake) /* a fake address has said the name already */
        snprintf(f->name, sizeof(f->name), "%s", f->peek.name);
    if (f->peek.what == PEEK_TLS || f->peek.what == PEEK_HTTP)
        f->protocol = f->peek.what == PEEK_TLS ? "tls" : "http";
    flow_decide(f);
}

/* The sandbox was silent for long enough: takes the flow as far as it may go without a name, where
 * it waits. */
static void go_silent(struct flow *f)
{
    f->peek = (struct peek){.what = PEEK_OTHER};
    f->silent = true;
    flow_decide(f);
}

static void on_late(uv_timer_t *t)
{
    struct flow *f = t->data;

    if (f->first_len > 0)
        flow_refuse(f, "unfinished TLS or HTTP");
    else if (f->state == FLOW_WAITING)
        flow_reset(f, "idle");
    else
        go_silent(f);
}

static void on_first_bytes(uv_poll_t *w, int status UNUSED, int events UNUSED)
{
    struct flow *f = w->data;
    ssize_t n;

    if (!f->first)
        f->first = xcalloc(1, PEEK_MAX);
    n = recv(f->fd, f->first + f->first_len, PEEK_MAX - f->first_len, 0);
    if (n < 0 && errno == EAGAIN)
        return;
    if (n < 0) {
        f->error = "closed by the sandbox before it sent anything";
        flow_end(f);
        return;
    }
    if (f->first_len == 0) { /* to be whole within PEEK_NS, before the server is heard */
        watch_drop(&f->server_watch);
        alarm_set(f->timer, PEEK_NS, on_late);
    }
    f->first_len += (size_t)n;
    peek_bytes(f->first, f->first_len, &f->peek);
    if (f->peek.what == PEEK_MORE && (n == 0 || f->first_len == PEEK_MAX))
        f->peek.what = PEEK_OTHER;
    if (f->peek.what != PEEK_MORE)
        peeked(f);
}

/* Ports whose servers speak first: waiting for the sandbox's bytes would only cost time. */
static bool server_speaks_first(uint16_t port)
{
    static const uint16_t ports[] = {21, 22, 25, 110, 119, 143, 587, 3306, 5432};

    for (size_t i = 0; i < ARRAY_SIZE(ports); i++)
        if (ports[i] == port)
            return true;
    return false;
}

static void watch_words(struct flow *f, uint64_t ns)
{
    f->timer = alarm_new(f->sandbox->guard->loop, f);
    alarm_set(f->timer, ns, on_late);
    f->watch = watch_new(f->sandbox->guard->loop, f->fd, f);
    watch_for(f->watch, UV_READABLE, on_first_bytes);
}

void flow_peek(struct flow *f, bool allowed)
{
    f->state = FLOW_PEEKING;
    if (server_speaks_first(f->dst.port))
        go_silent(f);
    else
        watch_words(f, allowed ? PEEK_SHORT_NS : PEEK_NS);
}

/* ---- connected, and silent ------------------------------------------------------------------- */

static void on_server_first(uv_poll_t *w, int status UNUSED, int events UNUSED)
{
    struct flow *f = w->data;

    f->silent = false;
    flow_connected(f, NULL, 0);
}

void flow_wait(struct flow *f)
{
    f->state = FLOW_WAITING;
    watch_words(f, IDLE_NS);
    f->server_watch = watch_new(f->sandbox->guard->loop, f->server_fd, f);
    watch_for(f->server_watch, UV_READABLE, on_server_first);
}
