/* Puts the files that show the sandbox's own limits and use to their places. What is in them, and
 * why this way, is in agent/view.h.
 *
 *   /sys                       the domain's own tree, read-only: no sysfs
 *     devices/system/cpu/      links into limits/
 *     limits/                  the sandbox's own tmpfs, whose files the agent writes
 *     fs/cgroup/               v2: the sandbox's own group.
 *                              v1: a mount of cgroup2, for programs that look for one in the mount
 *                              table; over it a tree with v2's names (links) and the sandbox's own
 *                              v1 groups memory, cpu, cpuacct, pids
 *   /proc/meminfo, stat, ...   files of limits/
 *   /proc/cgroups, swaps, ...  files of the domain: the same in every sandbox
 *
 * Nothing of it can be written. The mounts are read-only; groups and the domain's files also belong
 * to the host's root, who is nobody inside. */
#pragma once

#include "inside/agent/view.h"
#include "lib/base/err.h"

struct spawn_request;

/* In the spawner, as root of the host, in the domain's tmpfs: makes what all sandboxes share. */
int view_prepare(struct sg_error *e);
/* In the sandbox, in its control groups and its cgroup namespace, with /proc at proc: builds /sys at
 * sys, covers files of /proc, and opens what the agent needs. The descriptors are the lowest that
 * were free. */
int view_build(const struct spawn_request *q, const char *proc, const char *sys,
               struct view_fds *ret, struct sg_error *e);
/* The first descriptor above `from` and all of these. */
unsigned view_end(const struct view_fds *v, unsigned from);
