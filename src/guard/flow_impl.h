/* What flow.c and its parts keep of one connection.
 *
 *   PEEKING ---> GOING ---> (WAITING) ---> OPEN: relayed or inspected
 *     first        name,       nothing was said yet, by either: not before the sandbox's first
 *     bytes        dial,       bytes were judged do they go on
 *                  proxy
 *   DNS: questions over TCP
 *
 *   flow.c        how it begins and ends, another policy      flow_peek.c   first bytes, judging
 *   flow_go.c     to where it goes, and what is done there */
#pragma once

#include "guard/flow.h"
#include "guard/inspect.h"
#include "guard/peek.h"
#include "guard/policy.h"
#include "guard/relay.h"
#include "guard/resolver.h"
#include "guard/socks5.h"

enum flow_state { FLOW_PEEKING, FLOW_GOING, FLOW_WAITING, FLOW_OPEN, FLOW_DNS };

struct dial;
struct dns_tcp;

struct flow {
    struct sandbox *sandbox;
    struct policy *policy; /* that it was judged by */
    struct flow *next, **prev;
    enum flow_state state;
    int fd, server_fd;   /* until something takes them over */
    struct net_addr dst; /* where the sandbox was going */
    struct net_addr dialled;
    char name[POLICY_NAME_MAX + 1]; /* "" if none is known */
    bool fake;                      /* the address stood for the name */
    bool by_name;                   /* it goes to where the name is, whatever the address was */
    bool silent; /* the sandbox has said nothing, and what it will say can change the verdict */
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
    struct strbuf out; /* to the proxy */
};

struct flow_verdict {
    bool allowed, by_name, inspect;
    const char *rule;
};

/* Each of these may end the flow: it is not touched after. */

/* ---- flow.c ---------------------------------------------------------------------------------- */

void flow_end(struct flow *f);
/* The sandbox is told why where its protocol has room for it. */
void flow_refuse(struct flow *f, const char *rule);
/* It was allowed, and the network said no. */
void flow_fail(struct flow *f, const char *what);
void flow_reset(struct flow *f, const char *why);

/* ---- flow_peek.c ----------------------------------------------------------------------------- */

/* What a policy says of it, as far as it is known. */
void flow_judge(const struct flow *f, const struct policy *p, struct flow_verdict *ret);
/* Refuses it or lets it go, by what is known. */
void flow_decide(struct flow *f);
/* Waits for its first bytes, then decides. allowed: it may go without having said a name. */
void flow_peek(struct flow *f, bool allowed);
/* It is connected and silent. */
void flow_wait(struct flow *f);

/* ---- flow_go.c ------------------------------------------------------------------------------- */

/* It may go: by its name to where that is, or to where it was going. One that is there already
 * stays there. */
void flow_go(struct flow *f, bool by_name, const char *rule);
/* Nothing of what was begun to get it there is left. */
void flow_come_back(struct flow *f);
/* back: what the server has said already. */
void flow_connected(struct flow *f, const void *back, size_t back_len);
