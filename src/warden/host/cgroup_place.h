/* Places of control groups: the levels <server> and <tenant> above the groups of sandboxes.
 *
 *   sandglass/s0123456789abcdef/<tenant's id>/<slot>   of a server, named after its state directory
 *   sandglass/local/runs/<slot>                        of one-shots and of programs with the
 * library
 *
 * Names are up to 23 of [a-z0-9], a server's begins with a letter; never text from outside. A
 * tenant's sandboxes together have as much of the processors as any other tenant's, however many
 * they are, because siblings have the same weight.
 *
 * Whoever uses a place holds a shared lock (flock) on its directory in the hierarchy of memory. A
 * place that can be locked exclusively is nobody's, and is removed: by its last user, or, if that
 * one was killed, by a sweep. `local` stays for the next run until a sweep.
 *
 * Sweeping knows two layouts: this one, and sandglass/<slot>, as versions before 0.2 had it. Which
 * slots are nobody's is the table's to say (slots.h). */
#pragma once

#include "lib/base/err.h"

#define CGROUP_NAME_MAX 24
#define CGROUP_LOCAL    "local"

struct cgroup_place;

/* tenant NULL: the server's level. */
int cgroup_place_open(const char *server, const char *tenant, struct cgroup_place **ret,
                      struct sg_error *e);
/* Where one-shots are. */
int cgroup_place_local(struct cgroup_place **ret, struct sg_error *e);
/* Removes the groups, if this was the last user and nothing is in them. NULL is allowed. */
void cgroup_place_close(struct cgroup_place *p);
/* "<server>/<tenant>" */
const char *cgroup_place_path(const struct cgroup_place *p);
/* Its directory in the hierarchy of memory. */
int cgroup_place_dir(const struct cgroup_place *p);
/* Of all in it together; 0: no limit. */
int cgroup_place_limit(struct cgroup_place *p, uint64_t memory_bytes, struct sg_error *e);

/* What all in it have in use, less what can be taken back at once. */
uint64_t cgroup_place_uses(const struct cgroup_place *p);
/* How often the kernel has killed in it because of this limit (of v1: or of one above). */
uint64_t cgroup_place_ooms(struct cgroup_place *p);
/* The memory limit of the group that this process is in, and of those above it; 0: none. */
uint64_t cgroup_own_memory(void);

/* ---- sweeping -------------------------------------------------------------------------------- */

/* For a slot that is nobody's: kill, thaw, wait, remove. 0 also if there is nothing. */
int cgroup_sweep(uint32_t slot, struct sg_error *e);
/* The first step of it, without waiting. False: nothing lives there. */
bool cgroup_strike(uint32_t slot);
/* Sets ret[slot], below max, for each slot that has a group. */
void cgroup_find_slots(bool *ret, uint32_t max);
/* How many places are nobody's, but for those that stay for the next run. */
uint32_t cgroup_count_places(void);
/* Removes all that are nobody's, and `sandglass` itself if nobody has groups on this machine. */
void cgroup_sweep_places(void);
