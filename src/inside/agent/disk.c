/* OP_DISK, and the disk's figures in END. */
#include "inside/agent/disk.h"

#include <sys/vfs.h>

#include "inside/agent/serve.h"

struct disk disk_look(void)
{
    struct statfs fs;
    struct disk d = {0};

    if (statfs("/", &fs) < 0)
        return d;
    d.total = (uint64_t)fs.f_blocks * (uint64_t)fs.f_bsize;
    d.used = ((uint64_t)fs.f_blocks - (uint64_t)fs.f_bfree) * (uint64_t)fs.f_bsize;
    d.full = (fs.f_blocks > 0 && fs.f_bavail == 0 ? 1u : 0u) |
             (fs.f_files > 0 && fs.f_ffree == 0 ? 2u : 0u);
    return d;
}

int disk_answer(struct request *q)
{
    struct disk d = disk_look();

    wire_put_u64(&q->answer, d.total);
    wire_put_u64(&q->answer, d.used);
    return request_done(q);
}
