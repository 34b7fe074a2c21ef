/* Readiness: whether the server can hand out a sandbox. GET /health?ready tells it.
 *
 *               one was made                        one could not be made
 *   not proved --------------> ready ------------------------------------> not ready: the reason
 *       ^                        ^                                              |
 *       +--- probe at the start  +------------- one was made, or a probe -------+
 *
 * Only sandboxes that the server makes for itself count, for its pools and for probes; a request
 * may fail for reasons of its own. A probe makes one sandbox in a domain that belongs to no tenant,
 * and ends both. The server probes once at its start. While it is not ready, each question begins
 * another probe, one at a time and at least a second apart. */
#pragma once

#include "warden/sandboxes/tenant_pool.h"

struct readiness {
    bool proved;
    bool probing;
    uint64_t probed_ns;
    char why[256];
    struct tenant_pool *tenant_pool;
    struct tenant_pool_request request;
};

void readiness_start(struct server *s);
void readiness_proved(struct server *s);
void readiness_failed(struct server *s, const struct sg_error *e);
/* 0, or -EAGAIN with the reason. */
int readiness_check(struct server *s, struct sg_error *e);
