/* The helper processes of a tenant pool: holder, spawner and broker of its domain
 * (warden/host/domain.h). Whether they work (warden/processes/heartbeat.h), and what is said when
 * one has ended.
 *
 *   holder    pid 1 of all its sandboxes: continued if it is stopped, never killed
 *   spawner   killed if it hangs: the tenant pool is broken then, and the tenant gets another
 *   broker    killed if it hangs: kernels start cold until there is another; checkpoints lose
 * theirs
 */
#pragma once

#include "warden/host/domain.h"

struct tenant_pool;

/* It has been started. */
void helper_watch(struct tenant_pool *w, enum domain_helper h);
void helper_heard(struct tenant_pool *w, enum domain_helper h);
/* Its socket is closed: says and counts how it ended, and reaps it. */
void helper_ended(struct tenant_pool *w, enum domain_helper h);
/* Whether its holder was killed: what ends in the tenant pool does so by no doing of its own. */
bool helper_holder_gone(const struct tenant_pool *w);
/* The tenant pool closes. */
void domain_processes_stop(struct tenant_pool *w);
