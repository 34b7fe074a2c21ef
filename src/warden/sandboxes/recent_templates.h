/* The recent templates of a tenant pool: templates and snapshots of which sandboxes wait in it, besides the plain template.
 *
 * What a sandbox is made of becomes a recent template, unless it has no name, and stays one for five minutes. Its target follows demand
 * as that of the plain template does, and is at least 1. Of all recent templates and the plain template together pool_max wait at most, of which the plain template
 * gets what it needs, and there are RECENT_MAX: the one that was used last takes the place of the one that was not used for the longest time.
 *
 * Their sandboxes stand on the very snapshot that they are asked for, so a template that was built anew or deleted is
 * never handed out under its old name: nobody asks for that snapshot then. */
#pragma once

#include "warden/sandboxes/tenant_pool.h"

#define RECENT_MAX 16

struct recent {
    struct list link; /* the one used last is first */
    struct snapshot *of;
    struct sg_limits limits; /* of those that were asked for last */
    struct demand demand;
    uint64_t used_ns;
};

void recent_used(struct tenant_pool *w, struct snapshot *of, const struct sg_limits *limits);
/* Whether a sandbox like this is still wanted in the pool. */
bool recent_want(const struct tenant_pool *w, const struct snapshot *of,
                 const struct sg_limits *limits);
/* Once a second: drops what is none any more. */
void recent_tick(struct tenant_pool *w);
void recent_done(struct tenant_pool *w);
