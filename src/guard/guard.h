/* The guard: everything that leaves a sandbox goes through this process, or does not go.
 *
 * A sandbox's network namespace has only `lo`. Every address is local there, and what is sent to
 * one comes to a listener that the warden has made inside and this process holds (wire/guard.h).
 * It has no privilege: a user of its own, no capability, a filter. It reads bytes that sandboxes
 * and the internet have written, so nothing in it may trust any of them.
 *
 *   warden_link.c  sandboxes, policies                    front_link.c  what the front asks
 *   sandbox.c   sandboxes and their listeners             quota.c     what each may use
 *   flow*.c     a TCP connection, from accept to end      udp.c       the same for datagrams
 *   peek.c      what protocol it is, and which name       dial.c      connecting to where it goes
 *   relay.c     copying bytes                             socks5.c    through the sandbox's proxy
 *   addr.c      addresses: which may never be dialled     hosts.c     those of this machine
 *   cidr.c, names.c, policy.c   what a policy says        dns_*.c     names: resolver.h, dns.h
 *   inspect_*.c, ca.c           inside TLS: inspect.h     record.c    what goes on record
 *   news.c      what the front is told of it              counts.c    what is counted beside it
 *
 * A flow:
 *
 *   accepted -> quota -> address: never? -> policy: address decides? --yes--> dial
 *                                             | no: a name is needed
 *                                             v
 *                                           peek: first bytes, at most PEEK_MAX, PEEK_NS
 *                                             v
 *                         name allowed? -> resolve here -> each address: never? -> dial that one
 *                                             v
 *              (proxy: SOCKS5) -> relay, or inspect if the name has rules -> ended, on record
 *
 * Where names could matter and the sandbox is silent, it is dialled and listened to there: its
 * first bytes go on when they were judged. An address that stands for a name (dns.h) goes that way
 * too.
 *
 * At every step "no" resets the connection, with a reason where the protocol has room for one, and
 * is on record. Nothing a sandbox says is believed: the port does not tell the protocol, the name
 * does not tell the address, the address does not tell the name.
 *
 * A policy never changes; another takes its place, with a higher epoch, and all flows of the
 * sandbox are judged again: those that it would not let through are reset. */
#pragma once

#include <uv.h>

#include "lib/base/err.h"
#include "wire/guard.h"
#include "guard/addr.h"
#include "lib/settings/settings.h"

struct audit_log;
struct ca;
struct count;
struct deny_set;
struct fakes;
struct flow;
struct front_link;
struct guard_news;
struct hosts;
struct learned;
struct policy;
struct question;
struct resolver;
struct sanitiser;
struct udp_flow;
struct vault_key;
struct warden_link;

struct guard {
    uv_loop_t *loop;
    struct settings settings;
    bool of_one_caller;       /* wire/guard.h */
    int dir;                  /* its own directory: keys, the record */
    struct warden_link *link; /* to the warden */
    struct front_link *front; /* to the front; NULL if there is none */
    struct hosts *hosts;
    struct internal_set *internal; /* addresses that the operator lets be dialled */
    struct deny_set *deny;         /* what the operator lets nobody reach */
    char *roots_pem;               /* more roots to trust; NULL if there are none */
    size_t roots_len;
    char *patterns; /* more patterns for the sanitiser; NULL if there are none */
    struct resolver *resolver;
    struct works *works;         /* lib/http/work.h; NULL until the first that is inspected */
    struct sanitiser *sanitiser; /* NULL until the first that needs it */
    struct vault_key *key;
    struct ca *ca; /* NULL until the first sandbox that needs one */
    struct audit_log *audit;
    struct guard_news *news;           /* news.h; NULL until there was some */
    struct count *sanitised;           /* counts.h; NULL until there was something */
    size_t n_sanitised;                /* kinds of it */
    uint64_t dns_allowed, dns_blocked; /* questions, so far */
    struct sandbox *sandboxes[4096];   /* by id */
    size_t n_sandboxes, n_flows;       /* two descriptors each, and those are finite */
    size_t max_pairs;
    struct account *accounts; /* quota.c: of tenants that had flows */
};

/* ---- sandbox.c ------------------------------------------------------------------------------- */

/* What a sandbox may use; see quota.h. */
struct quota {
    uint32_t flows;                         /* open now, TCP and UDP */
    uint64_t tokens_ns;                     /* new flows: a bucket, as time */
    uint64_t bytes;                         /* both ways, in all its life */
    bool told_flows, told_rate, told_bytes; /* on record already, in this minute */
    bool told_guard;
    uint64_t told_ns;
};

/* DNS's own: what was asked, and what of it is on record; see dns_budget.h. Hashes stand for names;
 * each counts until then, in seconds. */
struct dns_mark {
    uint32_t hash, until;
};
struct dns_budget {
    uint64_t second;
    uint32_t asked;   /* in that second */
    uint32_t pending; /* questions that are not answered yet */
    struct dns_mark seen[200], told[64];
};

/* What the sandboxes of a tenant have together. There are as many as tenants. */
struct account {
    struct account *next;
    char tenant[ID_LEN + 1];
    size_t flows;
};

struct sandbox {
    struct guard *guard;
    struct sandbox *next;
    struct account *account; /* NULL until used, and for one of no tenant */
    char id[ID_LEN + 1], tenant[ID_LEN + 1];
    uint64_t life, epoch;
    enum egress_path path;
    int tcp, udp;
    uv_poll_t *tcp_poll, *udp_poll;
    uv_timer_t *rest; /* runs while a listener is not looked at; NULL until used */
    struct policy *policy;
    struct quota quota;
    struct dns_budget dns;
    struct fakes *fakes;     /* NULL until used */
    struct learned *learned; /* NULL until used */
    struct flow *flows;      /* doubly linked: flow.h */
    struct udp_flow *udp_flows;
    struct question *questions;      /* over UDP, not answered yet: udp.c */
    uint64_t untold_up, untold_down; /* bytes that the front was not told of: news.h */
    unsigned refs;                   /* the table's, each flow's, each question's */
    bool gone;
};

struct sandbox *sandbox_find(struct guard *g, const char *id);
struct sandbox *sandbox_ref(struct sandbox *s);
void sandbox_unref(struct sandbox *s);
/* What its flows are judged by is another: those that are not let through any more are reset. */
void sandbox_judge_again(struct sandbox *s);

/* ---- record.c -------------------------------------------------------------------------------- */

/* A decision about one flow or question. Fields that are NULL or 0 are left out. */
struct decision {
    const char *kind;     /* "flow", "dns", ... */
    const char *protocol; /* "tcp", ... */
    bool allowed;
    const char *rule; /* which entry or check decided: "allow *.b.test", "internal address" */
    const char *name;
    const struct net_addr *address;
    const char *detail;
    uint64_t up, down, ms;
    const struct policy *policy; /* that it was judged by; NULL: the one in force */
};
void record_decision(struct sandbox *s, const struct decision *d);
