/* The kernels of a tenant pool: warm interpreters for its sandboxes
 * (warden/providers/process/process.h, *kernels*).
 *
 *   off --> homeless --> loading --> ready
 *              ^            |          |
 *              +-- resting <+----------+   the zygote has failed, or died
 *
 * Kernels are copied from the zygote. The zygote sees the files of a sandbox of its own, its home,
 * which nobody else uses. While there is no zygote, agents that ask for a kernel are told so and
 * start one themselves, which is slower but gives the same. A zygote that had made kernels, or that
 * lived for a while, is replaced at once; any other after a rest that doubles from 1 to 64 seconds.
 *
 * A sandbox that waits in the pool gets a kernel ahead of need; any other when its agent asks. */
#pragma once

#include "warden/sandboxes/tenant_pool.h"

/* Begins to load the zygote, if the settings want kernels. Call it once the tenant pool can make
 * sandboxes. */
void kernels_start(struct tenant_pool *w);
void kernels_stop(struct tenant_pool *w);
/* Starts the tenant pool's broker, if it has none: copying a sandbox needs one, even for a sandbox
 * without a kernel. */
int kernels_broker(struct tenant_pool *w, struct sg_error *e);
/* What a zygote is to load. */
const char *kernels_imports(const struct tenant_pool *w);
/* Whether settings and host let kernels be copied, as far as is known. */
bool kernels_may_be_copied(const struct tenant_pool *w);
/* Gives a kernel to a sandbox whose agent has none and has not asked. False: no kernel can be made
 * now. */
bool kernels_feed(struct tenant_pool *w, struct instance *i);
/* The sandbox's agent asks for a kernel, and is answered. False: the zygote is loading for the
 * first time, and the caller is to ask again when it is loaded (sandboxes_ask_again): a kernel that
 * is started in another way could not be forked. */
bool kernels_want(struct tenant_pool *w, struct instance *i);
