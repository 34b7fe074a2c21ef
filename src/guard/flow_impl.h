/* One TCP connection of a sandbox, as flow.c, flow_peek.c and flow_go.c share it.
 *
 *   PEEKING ------> GOING ---------> (WAITING) ---------> OPEN
 *   reads the       resolves the     connected, but       relayed or
 *   first bytes     name, dials,     neither side has     inspected
 *                   asks a proxy     said anything yet
 *
 *   DNS: questions over TCP, which the guard answers itself
 *
 * In WAITING the sandbox's first bytes go on only after they were judged.
 *
 *   flow.c        beginning, end, a new policy      flow_peek.c   first bytes, judging
 *   flow_go.c     resolving, dialling, handing over to the relay or the inspection */
#pragma once

#include "guard/flow.h"
#include "guard/inspect.h"
#include "guard/peek.h"
#include "guard/policy.h"
#include "guard/relay.h"
#include "guard/resolver.h"
#include "guard/socks5.h"

enum flow_state { FLOW_PEEKING, FLOW_GOING, FLOW_WAITING, FLOW_OPEN, FLOW_DNS };

struct flow {
    struct sandbox *sandbox;
    struct policy *policy; /* the policy that judged the flow */
    struct list link;
    enum flow_state state;
    int fd, server_fd;   /* until the relay or the inspection takes them over */
    struct net_addr dst; /* where the sandbox was going */
    struct net_addr dialled;
    char name[POLICY_NAME_MAX + 1]; /* "" if none is known */
    bool fake;                      /* dst is a fake address that stands for the name */
    bool by_name;                   /* dials what the name resolves to, not dst */
    bool silent; /* the sandbox has said nothing yet, and its first bytes can change the verdict */
    bool inspected, allowed, proxy_broken;
    const char *protocol, *rule, *error;
    struct peek peek;
    uint8_t *first; /* read while peeking */
    size_t first_len;
    uint64_t up, down, began_ns;
    uv_poll_t *watch, *server_watch;
    uv_timer_t *timer;
    struct resolver_query *query;
    struct dial *dial;
    struct relay *relay;
    struct inspect *inspect;
    struct dns_tcp *dns;
    struct socks5 socks;
    struct strbuf out; /* bytes to send to the proxy */
};

struct flow_verdict {
    bool allowed, by_name, inspect;
    const char *rule;
};

/* Each of these functions may end and free the flow: do not touch it after the call. */

/* ---- flow.c ---------------------------------------------------------------------------------- */

void flow_end(struct flow *f);
/* Ends a flow that is not allowed. Tells the sandbox why, where its protocol has room for it. */
void flow_refuse(struct flow *f, const char *rule);
/* Ends a flow that was allowed but failed in the network. */
void flow_fail(struct flow *f, const char *what);
void flow_reset(struct flow *f, const char *why);

/* ---- flow_peek.c ----------------------------------------------------------------------------- */

/* The policy's verdict on a flow, from the little that is known of it so far. */
void flow_judge(const struct flow *f, const struct policy *p, struct flow_verdict *ret);
/* Refuses the flow or lets it go, by what is known of it. */
void flow_decide(struct flow *f);
/* Waits for the sandbox's first bytes, then decides. allowed: the flow may go without having said a
 * name. */
void flow_peek(struct flow *f, bool allowed);
/* Waits until the sandbox or the server says something; the flow is connected. */
void flow_wait(struct flow *f);

/* ---- flow_go.c ------------------------------------------------------------------------------- */

/* Takes an allowed flow to its server: by_name to where its name resolves to, else to dst. A flow
 * that is connected there already stays connected. */
void flow_go(struct flow *f, bool by_name, const char *rule);
/* Undoes what flow_go has begun: cancels resolving and dialling, closes the server's socket. */
void flow_come_back(struct flow *f);
/* The server is connected: hands the flow over to the relay or the inspection. back: bytes that the
 * server has sent already. */
void flow_connected(struct flow *f, const void *back, size_t back_len);
