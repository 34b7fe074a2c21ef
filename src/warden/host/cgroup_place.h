/* Places of control groups: the levels <server> and <tenant> above the groups of sandboxes.
 *
 *   sandglass/s0123456789abcdef/<tenant's id>/<slot>   of a server, named after its state directory
 *   sandglass/local/runs/<slot>                        of one-shots and of programs that use the
 *                                                      library
 *
 * A name has up to 23 characters of [a-z0-9], and a server's begins with a letter; it is never text
 * from outside. All sandboxes of one tenant together get as much of the processors as those of any
 * other tenant, however many they are, because sibling groups have the same weight.
 *
 * Whoever uses a place holds a shared lock (flock) on its directory in the hierarchy of memory. A
 * place that can be locked exclusively belongs to nobody, and is removed: by its last user, or by a
 * sweep if that user was killed. `local` stays for the next run, until a sweep.
 *
 * A sweep knows two layouts: this one, and sandglass/<slot> of versions before 0.2. The slot table
 * (slots.h) says which slots belong to nobody. */
#pragma once

#include "lib/base/err.h"

#define CGROUP_NAME_MAX 24
#define CGROUP_LOCAL    "local" /* instead of a server and its tenant, for one-shots */
#define CGROUP_RUNS     "runs"

struct cgroup_place;

/* tenant NULL: opens the server's level. */
int cgroup_place_open(const char *server, const char *tenant, struct cgroup_place **ret,
                      struct sg_error *e);
/* Removes the groups, if this was the last user and nothing is in them. NULL is allowed. */
void cgroup_place_close(struct cgroup_place *p);
/* "<server>/<tenant>" */
const char *cgroup_place_path(const struct cgroup_place *p);
/* The place's directory in the hierarchy of memory. */
int cgroup_place_dir(const struct cgroup_place *p);
/* Limits the memory of all groups in the place together; 0: no limit. */
int cgroup_place_limit(struct cgroup_place *p, uint64_t memory_bytes, struct sg_error *e);

/* Memory that all groups in the place use, less what the kernel can take back at once. */
uint64_t cgroup_place_uses(const struct cgroup_place *p);
/* How often the kernel has killed in the place because of its limit (under v1: or of one above
 * it). */
uint64_t cgroup_place_ooms(struct cgroup_place *p);
/* The smallest memory limit of this process's own group and of those above it; 0: none. */
uint64_t cgroup_own_memory(void);

/* ---- sweeping -------------------------------------------------------------------------------- */

/* Kills, thaws, waits for and removes the groups of a slot that belongs to nobody. 0 also if there
 * are none. */
int cgroup_sweep(uint32_t slot, struct sg_error *e);
/* The first step of a sweep: kills, and does not wait. False: nothing lives there. */
bool cgroup_strike(uint32_t slot);
/* Sets ret[slot] for each slot below max that has a group. */
void cgroup_find_slots(bool *ret, uint32_t max);
/* How many places belong to nobody, not counting those that stay for the next run. With `remove`,
 * removes all that belong to nobody, and `sandglass` itself if no group is left on this machine. */
uint32_t cgroup_sweep_places(bool remove);
