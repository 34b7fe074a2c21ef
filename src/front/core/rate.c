#include "front/core/rate.h"

#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/hash.h"

static struct rate_place *place_of(struct rate_table *t, const char *key, double burst)
{
    struct rate_place *p = &t->places[hash_text(0, key) % RATE_PLACES];

    if (strncmp(p->key, key, RATE_KEY_MAX) != 0) {
        snprintf(p->key, sizeof(p->key), "%s", key);
        p->tokens = burst;
        p->last_ns = clock_ns();
    }
    return p;
}

static void fill(struct rate_place *p, double per_second, double burst)
{
    uint64_t now = clock_ns();

    p->tokens += (double)(now - p->last_ns) / 1e9 * per_second;
    p->tokens = p->tokens > burst ? burst : p->tokens;
    p->last_ns = now;
}

bool rate_peek(struct rate_table *t, const char *key, double per_second, double burst)
{
    struct rate_place *p = place_of(t, key, burst);

    fill(p, per_second, burst);
    return p->tokens >= 1;
}

bool rate_take(struct rate_table *t, const char *key, double per_second, double burst)
{
    if (!rate_peek(t, key, per_second, burst))
        return false;
    place_of(t, key, burst)->tokens -= 1;
    return true;
}
