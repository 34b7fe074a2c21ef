/* A list of hosts that the operator allows, as in the settings build_registries and webhook_targets:
 *
 *   *                       any host on the internet
 *   HOST[:PORT]             this one, on the internet
 *   https://HOST[:PORT]     this one, also at an address inside
 *   http://HOST[:PORT]      the same, not encrypted
 *
 * with commas or spaces between. */
#pragma once

#include "lib/web/url.h"

struct listed_host {
    const char *scheme; /* "" if none is written */
    size_t scheme_len;
    const char *host; /* "*": any */
    size_t host_len;
};
/* Takes the next entry. False: there is none any more. */
bool hosts_next(const char **list, struct listed_host *ret);
bool host_is_any(const struct listed_host *h);

/* Whether the list lets a request go to an address: 0, or -EPERM with the reason. as: what the hosts
 * are, for the reason. *ret_inside: the operator vouches for the host, so it may be at an address
 * inside. */
int hosts_judge(const char *list, const char *as, const struct url *u, bool *ret_inside,
                struct sg_error *e);
