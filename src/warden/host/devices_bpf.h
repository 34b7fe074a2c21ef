/* Device rules for cgroup v2, which has no devices controller: a BPF program on the group
 * decides. */
#pragma once

#include "lib/base/err.h"

/* Allows null, zero, full, random, urandom, tty, ptmx and devpts terminals; denies every other
 * device. */
int devices_bpf_attach(int cgroup_fd, struct sg_error *e);
