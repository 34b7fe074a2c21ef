/* The way out of a sandbox: its policy, and what the guard is told of it.
 *
 *                     instance, policy                   GUARD_SANDBOX
 *   nothing goes out -----------------> routes are open ---------------> told, and again for each
 *                    <--------------------------------------------------        new guard
 *                     no policy: GUARD_GONE, routes closed
 *
 * A policy that replaces another is sent to the guard (GUARD_POLICY), and becomes the sandbox's own
 * when the guard has confirmed it. If there is no guard, or it does not answer, the policy becomes
 * the sandbox's own all the same: no guard enforces another one, and the next guard gets this
 * one. */
#include <stdio.h>
#include <string.h>

#include "lib/base/clock.h"
#include "wire/text_fd.h"
#include "lib/log/log.h"
#include "warden/processes/guard_process.h"
#include "warden/sandboxes/sandbox_impl.h"
#include "warden/server.h"

#define APPLY_NS 2000000000ull

static void on_late(struct loop_timer *timer);

static void name_sandbox(const struct sandbox *g, struct guard_message *m)
{
    snprintf(m->id, sizeof(m->id), "%s", g->id);
    snprintf(m->tenant, sizeof(m->tenant), "%s", g->tenant);
    m->life = g->network.life;
    m->epoch = g->network.epoch;
}

static void forget(struct policy_text *p)
{
    if (p->text)
        explicit_bzero(p->text, p->len);
    free(p->text);
    *p = (struct policy_text){0};
}

static void replace(struct policy_text *old, const struct policy_text *new)
{
    forget(old);
    *old = *new;
}

void sandbox_network_init(struct sandbox *g, const struct policy_text *policy)
{
    g->network = (struct sandbox_network){.policy = *policy, .epoch = 1, .timer.fn = on_late};
}

/* ---- telling the guard ----------------------------------------------------------------------- */

static void tell_sandbox(struct sandbox *g)
{
    struct sandbox_network *n = &g->network;
    struct guard_message m = {.what = GUARD_SANDBOX};
    struct network_sockets sockets;
    struct sg_error e = {0};
    AUTO(close_p) int document = -1;

    if (g->server->guard.link.sock < 0 || g->server->path == 0)
        return;
    OPS(g->instance)->network->sockets(g->instance, &sockets);
    if (sockets.tcp < 0)
        return;
    document = text_memfd(n->policy.text, n->policy.len, &e);
    if (document < 0) {
        log_sandbox(LEVEL_ERROR, FAULT_INFRASTRUCTURE, g->id, "%s", e.message);
        return;
    }
    name_sandbox(g, &m);
    m.path = sockets.path;
    guard_tell(g->server, &m, (int[]){sockets.tcp, sockets.udp, document}, 3);
    n->told = true;
}

static void tell_gone(struct sandbox *g)
{
    struct guard_message m = {.what = GUARD_GONE};

    if (!g->network.told)
        return;
    g->network.told = false;
    name_sandbox(g, &m);
    guard_tell(g->server, &m, NULL, 0);
}

static int tell_policy(struct sandbox *g, struct sg_error *e)
{
    struct sandbox_network *n = &g->network;
    struct guard_message m = {.what = GUARD_POLICY};
    AUTO(close_p) int document = text_memfd(n->asked.text, n->asked.len, e);

    if (document < 0)
        return document;
    name_sandbox(g, &m);
    guard_tell(g->server, &m, &document, 1);
    return 0;
}

static void open_out(struct sandbox *g)
{
    struct server *s = g->server;
    struct sg_error e = {0};

    g->network.life = ++s->lives;
    if (s->path == 0) /* the server logged that at its start */
        return;
    if (OPS(g->instance)->network->open(g->instance, s->path, &e) < 0)
        log_sandbox(LEVEL_ERROR, FAULT_INFRASTRUCTURE, g->id, "the sandbox has no network: %s",
                    e.message);
    else
        tell_sandbox(g);
}

/* ---- instances come and go ------------------------------------------------------------------- */

/* Makes the policy that was sent to the guard the sandbox's own. */
static void adopt(struct sandbox *g, int r, const struct sg_error *e)
{
    struct sandbox_network *n = &g->network;

    if (!n->asked.text)
        return;
    loop_timer_cancel(&g->server->loop, &n->timer);
    replace(&n->policy, &n->asked);
    n->asked = (struct policy_text){0};
    if (r < 0)
        front_answer_error(g->server, &n->ticket, r, e);
    else
        front_answer(g->server, &n->ticket, NULL, -1);
}

void sandbox_network_begin(struct sandbox *g)
{
    if (g->network.policy.text)
        open_out(g);
}

void sandbox_network_end(struct sandbox *g)
{
    adopt(g, 0, NULL);
    tell_gone(g);
}

void sandbox_network_done(struct sandbox *g)
{
    loop_timer_cancel(&g->server->loop, &g->network.timer);
    forget(&g->network.asked);
    forget(&g->network.policy);
}

/* ---- replacing the policy -------------------------------------------------------------------- */

static int no_guard(struct sg_error *e)
{
    return err_set(e, SG_ERR_UNSUPPORTED, -EAGAIN,
                   "the egress guard does not answer: nothing leaves the sandbox until it does");
}

static void on_late(struct loop_timer *timer)
{
    struct sandbox *g = CONTAINER_OF(timer, struct sandbox, network.timer);
    struct sg_error e = {0};

    log_sandbox(LEVEL_ERROR, FAULT_INFRASTRUCTURE, g->id,
                "the guard does not confirm the sandbox's policy");
    adopt(g, no_guard(&e), &e);
}

static int close_out(struct sandbox *g, struct sg_error *e)
{
    forget(&g->network.policy);
    tell_gone(g);
    return g->instance && g->server->path ? OPS(g->instance)->network->close(g->instance, e) : 0;
}

/* Sets a policy. It is in force at once, or as soon as there is a guard. */
static int set_policy(struct sandbox *g, const struct policy_text *policy, struct sg_error *e)
{
    bool was_open = g->network.policy.text != NULL;

    replace(&g->network.policy, policy);
    if (!g->instance)
        return 0;
    if (!was_open)
        open_out(g);
    return g->network.told ? 0 : no_guard(e);
}

static int ask_policy(struct sandbox *g, const struct ticket *t, const struct policy_text *policy,
                      struct sg_error *e)
{
    struct sandbox_network *n = &g->network;
    int r;

    n->asked = *policy;
    n->ticket = *t;
    r = tell_policy(g, e);
    if (r < 0)
        forget(&n->asked);
    else
        loop_timer_set(&g->server->loop, &n->timer, clock_ns() + APPLY_NS);
    return r;
}

void sandbox_policy(struct sandbox *g, const struct ticket *t, const struct policy_text *policy)
{
    struct sandbox_network *n = &g->network;
    struct policy_text taken = *policy;
    struct sg_error e = {0};
    int r;

    adopt(g, err_set(&e, SG_ERR_INVALID, -ECANCELED, "a later policy has replaced this one"), &e);
    n->epoch++;
    if (taken.text && n->policy.text && n->told)
        r = ask_policy(g, t, &taken, &e);
    else
        r = taken.text ? set_policy(g, &taken, &e) : close_out(g, &e);
    if (r < 0)
        front_answer_error(g->server, t, r, &e);
    else if (!n->asked.text)
        front_answer(g->server, t, NULL, -1);
}

void sandboxes_policy_applied(struct server *s, const struct guard_message *m)
{
    struct sandbox *g = sandbox_find(s, m->id);
    struct sandbox_network *n = g ? &g->network : NULL;
    struct sg_error e = {0};

    if (!g || m->life != n->life || m->epoch != n->epoch)
        return;
    if (m->code < 0)
        log_sandbox(LEVEL_ERROR, FAULT_INFRASTRUCTURE, g->id,
                    "the guard refuses the sandbox's policy: %s", m->message);
    if (m->code >= 0 || !n->asked.text) {
        adopt(g, 0, NULL);
        return;
    }
    /* The guard refused the new policy: the one before stays in force. */
    loop_timer_cancel(&s->loop, &n->timer);
    forget(&n->asked);
    err_set(&e, SG_ERR_INVALID, m->code, "%s", m->message);
    front_answer_error(s, &n->ticket, m->code, &e);
}

/* ---- other questions of the guard ------------------------------------------------------------ */

void sandboxes_ask_udp(struct server *s, const struct guard_message *m)
{
    struct guard_message answer = {.what = GUARD_UDP, .seq = m->seq, .life = m->life};
    struct sandbox *g = sandbox_find(s, m->id);
    AUTO(close_p) int sock = -1;
    struct sg_error e = {0};

    if (!g || !g->instance || !g->network.told || m->life != g->network.life)
        answer.code = -ENOENT;
    else
        answer.code = sock = OPS(g->instance)->network->udp(g->instance, &m->local, &m->peer, &e);
    if (sock >= 0)
        answer.code = 0;
    memcpy(answer.id, m->id, sizeof(answer.id));
    guard_tell(s, &answer, &sock, sock >= 0 ? 1 : 0);
}

void sandboxes_introduce_guard(struct server *s)
{
    MAP_EACH(struct sandbox, g, &s->sandboxes, by_id)
        if (g->instance && g->network.policy.text)
            tell_sandbox(g);
}

void sandboxes_guard_gone(struct server *s)
{
    struct sg_error e = {0};
    int r = no_guard(&e);

    MAP_EACH(struct sandbox, g, &s->sandboxes, by_id) {
        g->network.told = false;
        adopt(g, r, &e);
    }
}
