/* A fork start: the start of a sandbox before it is ordered (ORDER_SOON). While a checkpoint is
 * being made, a sandbox of the pool is prepared for the first order that will be made from it.
 * Steps that do not depend on each other run side by side:
 *
 *   the source:      still --> its root --> held --> go --------------> sealed, answered
 *   the fork start:       \--> taken, its root       \--> its kernel is copied --> ...
 *
 * ... until the order comes, from whoever was told of the checkpoint: sandbox_create takes the fork
 * start over, however far it has come. Its kernel does not run before that. A hook of the user's
 * runs in the kernel first, and must find the sandbox's network in place. */
#pragma once

#include "wire/warden.h"

struct checkpoint;
struct tenant_pool;
struct instance;
struct fork_start;

/* Takes a sandbox of the tenant pool and gives it the checkpoint's files. NULL if none is ready. */
struct fork_start *fork_start_begin(struct checkpoint *m, struct tenant_pool *w,
                                    const struct sg_limits *limits);
/* Its kernels can be copied now. only: no other sandbox will be made from this checkpoint. */
void fork_start_copy(struct fork_start *u, bool only);
/* Hands the sandbox over to the caller, and frees u. *ret_rooted: whether the agent has its root
 * already; if not, its answer is still to come. NULL, and the sandbox is dropped, if it is of
 * another tenant pool, has other limits, or has failed. */
struct instance *fork_start_take(struct fork_start *u, const struct tenant_pool *w,
                                 const struct sg_limits *limits, bool *ret_rooted);
/* NULL is allowed. */
void fork_start_drop(struct fork_start *u);
