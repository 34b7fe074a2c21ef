/* The zygotes of a tenant pool for sandboxes that stand on a world: one for each snapshot of which they are made, so
 * that its interpreter sees exactly the files that they have at their start.
 *
 *   none --first want--> making --home is there--> loading --it idles--> freezing --> ready
 *     ^                    |                          |                     |           |
 *     +-- in a minute -- unusable <-------------------+---------------------+           |
 *     +------------------- not used for five minutes, or in the way of another ---------+
 *
 * The interpreter is a stranger's. It runs in a sandbox of its own, the home, as any kernel does and without a way out,
 * and is frozen when it idles; kernels are copied from the frozen one. Nothing else runs in the home then.
 *
 * Unusable: its Python is missing, broken or too old, or started threads or programs, of which there would be no copy.
 * Then agents start kernels themselves, and the log says why. So they do in a sandbox that has written to its Python. */
#pragma once

#include "warden/sandboxes/tenant_pool.h"

struct sandbox;
struct kernel_news;

/* Each tenant has so many at most; the one that was not used for the longest time goes. */
#define ZYGOTES_MAX 4

/* The agent of a sandbox that was made of this snapshot asks for a kernel, and is answered; `id` is for the log. False:
 * the zygote is on its way, and the caller is to ask again (sandboxes_ask_again). */
bool zygotes_want(struct tenant_pool *w, struct snapshot *of, struct instance *i, const char *id);
/* A kernel will be wanted of that snapshot. */
void zygotes_expect(struct tenant_pool *w, struct snapshot *of);
/* Gives a kernel to a sandbox whose agent has none and has not asked. False: there is no zygote that is ready. */
bool zygotes_feed(struct tenant_pool *w, struct snapshot *of, struct instance *i);
/* Whether this was news of a zygote, or of its home. */
bool zygotes_told(struct tenant_pool *w, const struct kernel_news *news, int r,
                  const struct sg_error *e);
/* The broker has ended, and all frozen kernels with it. */
void zygotes_broker_gone(struct tenant_pool *w);
/* Under pressure: ends those that nobody waits for. */
void zygotes_let_go(struct tenant_pool *w);
uint32_t zygotes_count(const struct tenant_pool *w); /* that are ready */
/* The tenant pool is being closed; its sandboxes, homes too, are ended by that. */
void zygotes_stop(struct tenant_pool *w);
