/* The helper processes of a tenant pool: holder, spawner and broker of its domain
 * (struct provider_helpers). Watches whether they work (warden/processes/heartbeat.h), and logs how
 * one has ended.
 *
 *   holder    pid 1 of all its sandboxes: continued if it is stopped, never killed
 *   spawner   killed if it hangs: then the tenant pool is broken, and the tenant gets another
 *   broker    killed if it hangs: until there is another, kernels start cold; checkpoints lose
 *             their kernels */
#pragma once

#include <stdbool.h>

#include "wire/processes.h"

struct tenant_pool;

/* The helper has been started: begins to watch it. */
void helper_watch(struct tenant_pool *w, enum process h);
void helper_heard(struct tenant_pool *w, enum process h);
/* The helper's socket is closed: reaps the helper, logs how it ended, and counts the fault. */
void helper_ended(struct tenant_pool *w, enum process h);
/* Whether the holder was killed. Then every sandbox in the tenant pool ends through no fault of its
 * own. */
bool helper_holder_gone(const struct tenant_pool *w);
/* The tenant pool closes: stops watching its helpers. */
void domain_processes_stop(struct tenant_pool *w);
