/* Resolves names to addresses, for the guard's own connections and for the answers it gives
 * sandboxes.
 *
 * One stub resolver serves all sandboxes. It asks the upstreams in turn over UDP, each question
 * from a socket and port of its own with a random id and random case (0x20), and over TCP when an
 * answer was cut. A cache keeps answers as long as they say (5 to 300 s; failures 5 s). Equal
 * questions under way are asked once. Answers are read strictly: only what was asked, CNAMEs
 * followed inside the answer, at most RESOLVER_ADDRS addresses. Addresses that may never be dialled
 * are dropped here, after resolving, so a name that points inside has no address.
 *
 * Nothing waits longer than RESOLVER_NS. */
#pragma once

#include "guard/dns_message.h"
#include "guard/guard.h"

#define RESOLVER_ADDRS 16
#define RESOLVER_NS    5000000000ull

/* servers: "auto" reads /etc/resolv.conf; else addresses with commas between, each perhaps with a
 * port. First called before the system call filter is loaded, as it reads a file; may be called
 * again after a change of settings. */
int resolver_new(struct guard *g, const char *servers, struct resolver **ret, struct sg_error *e);
void resolver_free(struct resolver *r);

struct resolved {
    int r; /* 0; -ENOENT: no such name; -ENODATA: the name has no address; -EACCES: it has
            * addresses, but none may be dialled; -ETIMEDOUT, -EIO: no upstream has answered */
    size_t n;
    struct net_addr addrs[RESOLVER_ADDRS]; /* port 0; without families that have no way out */
    uint32_t ttl;                          /* seconds */
    const char *dropped;                   /* why an address was dropped, or NULL */
};
/* Adds those addresses of an answer that may be dialled; lowers res->ttl to the answer's if that is
 * shorter. */
void resolver_addresses(const struct guard *g, const struct dns_answer *a, struct resolved *res);

typedef void (*resolver_done)(void *arg, const struct resolved *res);
/* Asks for A and AAAA. done is called once, perhaps before this returns. */
struct resolver_query;
struct resolver_query *resolver_lookup(struct resolver *r, const char *name, resolver_done done,
                                       void *arg); /* NULL if it is done already */
/* The callback is not called any more. */
void resolver_cancel(struct resolver_query *q);

/* Asks any other question, for a sandbox. The callback gets an answer that holds only the records
 * that were understood; NULL with r < 0 if there was none. */
typedef void (*resolver_raw_done)(void *arg, int r, const struct dns_answer *a);
struct resolver_query *resolver_ask(struct resolver *r, const char *name, uint16_t type,
                                    resolver_raw_done done, void *arg);
