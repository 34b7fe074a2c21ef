/* Groups of sandboxes, for the library: a server needs none of this. */
#pragma once

#include "warden/host/cgroup.h"

/* Freezes or thaws the group, and waits until that is done. */
int cgroup_freeze(struct cgroup *c, bool on, struct sg_error *e);
/* The most memory that was charged to the group since set_limits. */
uint64_t cgroup_peak(const struct cgroup *c);
