/* Answers that were had, for as long as they say. At most RESOLVER_CACHE_ENTRIES of them and
 * RESOLVER_CACHE_BYTES in all; the one that was not used longest goes. */
#pragma once

#include "guard/dns_message.h"

#define RESOLVER_CACHE_ENTRIES 4096
#define RESOLVER_CACHE_BYTES   (8u * 1024 * 1024)
#define RESOLVER_TTL_MIN       5
#define RESOLVER_TTL_MAX       300

struct resolver_cache;
struct resolver_cache *resolver_cache_new(void);
void resolver_cache_free(struct resolver_cache *c);

/* How long an answer counts, in seconds: the shortest of its records', within the bounds. One
 * without records counts RESOLVER_TTL_MIN. */
uint32_t resolver_cache_ttl(const struct dns_answer *a);
/* r: 0, or the failure there was (a is NULL then). Takes the place of an older one. */
void resolver_cache_put(struct resolver_cache *c, const char *name, uint16_t type, int r,
                        const struct dns_answer *a, uint64_t now_ns);
/* False: there is none. The records' times are what is left of them. */
bool resolver_cache_get(struct resolver_cache *c, const char *name, uint16_t type, uint64_t now_ns,
                        int *ret_r, struct dns_answer *ret);
