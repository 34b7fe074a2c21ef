/* User namespaces without processes: only their id map is used, for id-mapped mounts. */
#pragma once

#include "lib/base/err.h"

/* A map of one pair of ids on disk to one pair of host ids; no other id is mapped. */
struct idmap_one {
    uint32_t disk_uid, host_uid;
    uint32_t disk_gid, host_gid;
};
int idmap_open(const struct idmap_one *map, int *ret_userns, struct sg_error *e);
/* Writes both maps, given as text, of a child of this process. */
int idmap_write(int pid, const char *uid_map, const char *gid_map, struct sg_error *e);
/* The same for n ids from `disk` on, which are `host` and those after it on the host. */
int idmap_open_range(uint32_t disk, uint32_t host, uint32_t n, int *ret_userns, struct sg_error *e);
