/* The guard: everything that leaves a sandbox goes through this process, or does not go.
 *
 * A sandbox's network namespace has only `lo`, and every address is local there. So a connection to
 * any address arrives at a listener that the warden has made inside and that the guard holds
 * (wire/guard.h). The guard has no privilege: a user of its own, no capability, a system call
 * filter. It reads bytes that sandboxes and the internet have written, so it trusts none of them.
 *
 *   warden_link.c   the socket to the warden           front_link.c    the socket to the front
 *   sandbox.c       sandboxes and their listeners      quota.c         how much each may use
 *   flow*.c         a TCP connection, start to end     udp.c           the same for datagrams
 *   peek*.c         protocols, and the name in HTTP    hello.c         the name in a ClientHello
 *   refusal.c       telling a sandbox why not          dial.c          connecting to a server
 *   relay.c         copying bytes; pipes.c for bulk    socks5.c        through a policy's proxy
 *   addr.c          addresses that are never dialled   hosts.c         addresses of this machine
 *   internal.c      addresses the operator opens       settings.c      settings and their reload
 *   policy*.c, entries.c, cidr.c, names.c              policies, and how entries are found
 *   resolver*.c, dns*.c, fake.c, learned.c             names: resolver.h, dns.h
 *   inspect*.c, http_*.c, scrub*.c, ca*.c              inside TLS: inspect.h
 *   identity*.c     tokens that say who a sandbox is: identity.h
 *   record.c        writes the record                  news.c          tells the front of flows
 *   counts.c        figures besides the record         audit_cmd*.c    `sandglass audit`
 *
 * The steps of a flow:
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
 * Some sandboxes wait for the server to speak first. If a name could change the verdict and the
 * sandbox stays silent, the guard dials the server and listens there; the sandbox's first bytes go
 * on only after they were judged. A connection to an address that stands for a name (dns.h) takes
 * the same way.
 *
 * At every step "no" resets the connection, with a reason where the protocol has room for one, and
 * goes on record. The guard believes nothing that a sandbox says: the port does not tell the
 * protocol, the name does not tell the address, the address does not tell the name.
 *
 * A policy never changes. A new one with a higher epoch replaces it, and the guard judges all flows
 * of the sandbox again: it resets those that the new policy would not let through. */
#pragma once

#include <uv.h>

#include "lib/base/err.h"
#include "lib/base/map.h"
#include "wire/guard.h"
#include "guard/addr.h"
#include "lib/settings/settings.h"

struct guard {
    uv_loop_t *loop;
    struct settings settings;
    bool of_one_caller;       /* wire/guard.h */
    int dir;                  /* the guard's own directory: keys, the record */
    struct warden_link *link; /* to the warden */
    struct front_link *front; /* to the front; NULL if there is none */
    struct hosts *hosts;
    struct internal_set *internal; /* internal addresses that the operator opens */
    struct deny_set *deny;         /* names and addresses that are closed to all */
    char *roots_pem;               /* roots to trust besides the system's, or NULL */
    size_t roots_len;
    char *patterns; /* the operator's patterns for the sanitiser, or NULL */
    struct resolver *resolver;
    struct works *works;         /* lib/http/work.h; NULL until the first inspected flow */
    struct sanitiser *sanitiser; /* NULL until the settings or a request make it */
    struct vault_key *key;
    struct ca *ca; /* NULL until the first sandbox that needs one */
    struct audit_log *audit;
    struct guard_news *news;           /* news.h; NULL until there is something to tell */
    struct count *sanitised;           /* counts.h: findings by kind; NULL before the first */
    size_t n_sanitised;                /* how many kinds `sanitised` has */
    uint64_t dns_allowed, dns_blocked; /* questions of all sandboxes, so far */
    struct map sandboxes;              /* by id */
    size_t n_sandboxes, n_flows;       /* each takes two descriptors: max_pairs bounds the sum */
    size_t max_pairs;
    struct list accounts; /* quota.c: one for each tenant that had flows */
};

/* ---- sandbox.c ------------------------------------------------------------------------------- */

/* How much a sandbox has used of its policy's quota; see quota.c. */
struct quota {
    uint32_t flows;                         /* open now, TCP and UDP */
    uint64_t tokens_ns;                     /* a token bucket for new flows, kept as a time */
    uint64_t bytes;                         /* both ways, since the sandbox started */
    bool told_flows, told_rate, told_bytes; /* on record already in this minute */
    bool told_guard;
    uint64_t told_ns;
};

/* How much a sandbox has asked of DNS, and what of that is on record; see dns_budget.h. A hash
 * stands for a name; each mark counts until its time, in seconds. */
struct dns_mark {
    uint32_t hash, until;
};
struct dns_budget {
    uint64_t second;
    uint32_t asked;   /* in that second */
    uint32_t pending; /* questions that are not answered yet */
    struct dns_mark seen[200], told[64];
};

/* The flows that the sandboxes of one tenant have together. There is one account per tenant. */
struct account {
    struct list link;
    char tenant[ID_LEN + 1];
    size_t flows;
};

struct sandbox {
    struct guard *guard;
    struct map_node by_id;
    struct account *account; /* NULL until used, and for a sandbox of no tenant */
    char id[ID_LEN + 1], tenant[ID_LEN + 1];
    uint64_t life, epoch;
    enum egress_path path;
    int tcp, udp;
    uv_poll_t *tcp_poll, *udp_poll;
    uv_timer_t *rest; /* runs while a listener is left alone; NULL until used */
    struct policy *policy;
    struct quota quota;
    struct dns_budget dns;
    struct fakes *fakes;            /* NULL until used */
    struct learned *learned;        /* NULL until used */
    struct identity_live *identity; /* its tokens: identity.h; NULL until used */
    struct list flows, udp_flows;
    struct list questions;           /* asked over UDP, not answered yet: udp.c */
    uint64_t untold_up, untold_down; /* bytes that the front has not been told of: news.h */
    unsigned refs;                   /* one of the table, of each flow and of each question */
    bool gone;
};

struct sandbox *sandbox_find(struct guard *g, const char *id);
struct sandbox *sandbox_ref(struct sandbox *s);
void sandbox_unref(struct sandbox *s);
/* The policy or the operator's settings have changed: judges all flows of the sandbox again and
 * resets those that are not let through any more. */
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
    const struct policy *policy; /* the policy that judged it; NULL: the one in force */
};
void record_decision(struct sandbox *s, const struct decision *d);
/* RECORD(s, .kind = "quota", .rule = rule) */
#define RECORD(s, ...) record_decision(s, &(struct decision){__VA_ARGS__})
