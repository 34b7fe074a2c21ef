/* The messages and the program that make a way out (netpath.h), as bytes. They are the same for all
 * sandboxes and need no rights to be put together: in a server the child does it that reads the
 * settings (warden/config.c), and the warden only sends them. */
#pragma once

#include <linux/bpf.h>

#include "lib/base/base.h"

/* Messages of netlink that are sent together. */
struct netlink_batch {
    int protocol;
    uint32_t n_asks; /* messages that the kernel is to confirm */
    size_t len;
    char bytes[4096] __attribute__((aligned(8)));
};

enum netpath_batch {
    BATCH_ADDRESSES, /* of the sandbox, for lo */
    BATCH_ROUTES,
    BATCH_NO_ROUTES,
    BATCH_TPROXY,
    BATCH_REDIRECT,
    BATCH_MAX_
};

#define LOOKUP_MAX 64

struct netpath_plan {
    struct netlink_batch batches[BATCH_MAX_][2]; /* [1]: with IPv6 */
    /* For the kernel to run at each new connection, and for each datagram that no connected socket
     * takes. The instruction `map` gets the map of sockets. */
    struct bpf_insn lookup[LOOKUP_MAX];
    uint32_t n_lookup, map;
};

void netpath_plan_make(struct netpath_plan *ret);
/* For programs without such a child: makes a plan, and netpath_use. Once is enough. */
void netpath_plan_use(void);
