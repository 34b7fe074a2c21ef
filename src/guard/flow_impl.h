/* What flow.c keeps of one connection.
 *
 *   PEEKING -> RESOLVING -> DIALLING -> (proxy) -> relayed or inspected
 *   DNS: questions over TCP */
#pragma once

#include "guard/flow.h"
#include "guard/inspect.h"
#include "guard/peek.h"
#include "guard/policy.h"
#include "guard/relay.h"
#include "guard/resolver.h"
#include "guard/socks5.h"

enum flow_state { FLOW_NEW, FLOW_PEEKING, FLOW_RESOLVING, FLOW_DIALLING, FLOW_DNS };

struct dial;
struct dns_tcp;

struct flow {
    struct subject *subject;
    struct policy *policy; /* that it was judged by */
    struct flow *next, **prev;
    enum flow_state state;
    int fd, server_fd;   /* until something takes them over */
    struct net_addr dst; /* where the sandbox was going */
    struct net_addr dialled;
    char name[POLICY_NAME_MAX + 1]; /* "" if none is known */
    bool fake;                      /* the address stood for the name */
    bool by_name;                   /* it goes to where the name is, whatever the address was */
    bool inspected, allowed, proxy_broken;
    const char *protocol, *rule, *error;
    struct peek peek;
    uint8_t *first; /* read while peeking */
    size_t first_len;
    uint64_t up, down, began_ns;
    uv_poll_t *watch;
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
/* What a policy says of it, as far as it is known. */
void flow_judge(const struct flow *f, const struct policy *p, struct flow_verdict *ret);
void flow_reset(struct flow *f, const char *why);
