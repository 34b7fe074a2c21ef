/* A sandbox that is on its way before it is ordered (ORDER_SOON): while a moment is being made, one
 * of the pool becomes what the first order from it will want. What does not depend on each other is
 * done side by side:
 *
 *   the source:   still --> its root --> held --> go --------------> sealed, answered
 *   the unborn:        \--> taken, its root       \--> its kernel is copied --> ...
 *
 * ... until the order comes, from whoever was told that the moment is there: sandbox_create takes
 * it over however far it has come. Its kernel is kept back until then: what runs in it first, a
 * hook of the user's, is to find its network. */
#pragma once

#include "wire/warden.h"

struct checkpoint;
struct tenant_pool;
struct instance;
struct fork_start;

/* One of the tenant pool's pool gets the moment's files. NULL if there is none to be had. */
struct fork_start *fork_start_begin(struct checkpoint *m, struct tenant_pool *w,
                                    const struct sg_limits *limits);
/* Its kernels can be copied. only: this is the one sandbox that is made from the moment. */
void fork_start_copy(struct fork_start *u, bool only);
/* The sandbox, the caller's from now on, and whether its agent has its root already; the answer is
 * still to come otherwise. NULL if it is not of that tenant pool, or has other limits, or has
 * failed; it is dropped then. u is gone. */
struct instance *fork_start_take(struct fork_start *u, const struct tenant_pool *w,
                                 const struct sg_limits *limits, bool *ret_rooted);
/* NULL is allowed. */
void fork_start_drop(struct fork_start *u);
