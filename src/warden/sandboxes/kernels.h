/* The kernels of a tenant pool: warm interpreters for its sandboxes
 * (warden/providers/process/process.h, *kernels*).
 *
 *   off --> homeless --> loading --> ready
 *              ^            |          |
 *              +-- resting <+----------+   it has failed, or died
 *
 * The zygote that kernels are copied from sees the files of a sandbox of its own, its home, which
 * nobody else uses. While there is no zygote, agents that ask are told so and start a kernel
 * themselves: slower, and the same. One that had made kernels, or was there for a while, is
 * replaced at once; others after a rest that doubles from 1 to 64 seconds.
 *
 * A sandbox that waits in the pool gets a kernel ahead of need; any other when its agent asks. */
#pragma once

#include "warden/sandboxes/tenant_pool.h"

/* Begins to have kernels, if the settings want any. Once the tenant pool can make sandboxes. */
void kernels_start(struct tenant_pool *w);
void kernels_stop(struct tenant_pool *w);
/* Has the tenant pool's broker started, if there is none: to copy a sandbox takes one, even one
 * that has no kernel. */
int kernels_broker(struct tenant_pool *w, struct sg_error *e);
/* One whose agent has none, and has not asked. False: there is none to be had now. */
bool kernels_feed(struct tenant_pool *w, struct instance *i);
/* Its agent asks for one: it gets an answer. False: the zygote is loading for the first time, and
 * it is to ask again then (sandboxes_ask_again): a kernel that was started in another way could not
 * be forked. */
bool kernels_want(struct tenant_pool *w, struct instance *i);
