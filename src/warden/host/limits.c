#include "warden/host/limits.h"

#define KIB 1024ull
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)

#define MEMORY_MIN     (16 * MIB)
#define MEMORY_DEFAULT (1 * GIB)
#define DISK_MIN       (1 * MIB)
#define DISK_DEFAULT   (512 * MIB)
#define DISK_MAX       (16 * 1024 * GIB)
#define INODES_MIN     4096u
#define CPUS_MIN       10u
#define CPUS_DEFAULT   1000u
#define CPUS_MAX       1024000u
#define PIDS_DEFAULT   512u
#define PIDS_MAX       32768u

static uint64_t or_default(uint64_t given, uint64_t normal)
{
    return given ? given : normal;
}

bool limits_equal(const struct sg_limits *a, const struct sg_limits *b)
{
    return a->memory_bytes == b->memory_bytes && a->disk_bytes == b->disk_bytes &&
           a->disk_inodes == b->disk_inodes && a->cpus_milli == b->cpus_milli && a->pids == b->pids;
}

int limits_complete(const struct sg_limits *given, struct sg_limits *ret, struct sg_error *e)
{
    struct sg_limits l = {
        .memory_bytes = or_default(given->memory_bytes, MEMORY_DEFAULT),
        .disk_bytes = or_default(given->disk_bytes, DISK_DEFAULT),
        .cpus_milli = (uint32_t)or_default(given->cpus_milli, CPUS_DEFAULT),
        .pids = (uint32_t)or_default(given->pids, PIDS_DEFAULT),
    };
    uint64_t inodes = l.disk_bytes / (4 * KIB);

    l.disk_inodes = or_default(given->disk_inodes, inodes < INODES_MIN ? INODES_MIN : inodes);
    if (l.memory_bytes < MEMORY_MIN || l.memory_bytes > DISK_MAX)
        return err_invalid(e, "memory must be between 16M and 16T");
    if (l.disk_bytes < DISK_MIN || l.disk_bytes > DISK_MAX)
        return err_invalid(e, "disk must be between 1M and 16T");
    if (l.cpus_milli < CPUS_MIN || l.cpus_milli > CPUS_MAX)
        return err_invalid(e, "cpus must be between 0.01 and 1024");
    if (l.pids > PIDS_MAX)
        return err_invalid(e, "pids must be between 1 and 32768");
    *ret = l;
    return 0;
}
