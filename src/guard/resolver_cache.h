/* Keeps answers for as long as they say: at most RESOLVER_CACHE_ENTRIES answers and
 * RESOLVER_CACHE_BYTES in all; the least recently used one goes. */
#pragma once

#include "guard/dns_message.h"

#define RESOLVER_CACHE_ENTRIES 4096
#define RESOLVER_CACHE_BYTES   (8u * 1024 * 1024)
#define RESOLVER_TTL_MIN       5
#define RESOLVER_TTL_MAX       300

struct resolver_cache;
struct resolver_cache *resolver_cache_new(void);
void resolver_cache_free(struct resolver_cache *c);

/* How long an answer is kept, in seconds: the shortest time of its records, within the bounds;
 * without records RESOLVER_TTL_MIN. */
uint32_t resolver_cache_ttl(const struct dns_answer *a);
/* r: 0, or the failure (a is NULL then). Replaces an older answer to the same question. */
void resolver_cache_put(struct resolver_cache *c, const char *name, uint16_t type, int r,
                        const struct dns_answer *a, uint64_t now_ns);
/* False: no answer is kept. The records in *ret have the time that is left to them. */
bool resolver_cache_get(struct resolver_cache *c, const char *name, uint16_t type, uint64_t now_ns,
                        int *ret_r, struct dns_answer *ret);
