/* The favourites of a tenant pool: templates and snapshots of which sandboxes wait in it, besides the plain template.
 *
 * What a sandbox is made of becomes a favourite, unless it has no name, and stays one for five minutes. Its target follows demand
 * as that of the plain template does, and is at least 1. Of all favourites and the plain template together pool_max wait at most, of which the plain template
 * gets what it needs, and there are FAVOURITES_MAX: the one that was used last takes the place of the one that was not used for the longest time.
 *
 * Their sandboxes stand on the very snapshot that they are asked for, so a template that was built anew or deleted is
 * never handed out under its old name: nobody asks for that snapshot then. */
#pragma once

#include "warden/sandboxes/tenant_pool.h"

#define FAVOURITES_MAX 16

struct favourite {
    struct list link; /* the one used last is first */
    struct snapshot *of;
    struct sg_limits limits; /* of those that were asked for last */
    struct demand demand;
    uint64_t used_ns;
};

void favourites_used(struct tenant_pool *w, struct snapshot *of, const struct sg_limits *limits);
/* Whether a sandbox like this is still wanted in the pool. */
bool favourites_want(const struct tenant_pool *w, const struct snapshot *of,
                     const struct sg_limits *limits);
/* Once a second: drops what is none any more. */
void favourites_tick(struct tenant_pool *w);
void favourites_done(struct tenant_pool *w);
