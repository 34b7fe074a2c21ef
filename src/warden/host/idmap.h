/* User namespaces that nobody lives in: only their id map is used, for id-mapped mounts. */
#pragma once

#include "lib/base/err.h"

/* One on-disk id pair is seen as one pair of host ids; nothing else is mapped. */
struct idmap_one {
    uint32_t disk_uid, host_uid;
    uint32_t disk_gid, host_gid;
};
int idmap_open(const struct idmap_one *map, int *ret_userns, struct sg_error *e);
/* The two maps of a child of ours, as text. */
int idmap_write(int pid, const char *uid_map, const char *gid_map, struct sg_error *e);
