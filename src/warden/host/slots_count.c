#include "warden/host/slots_count.h"

#include <fcntl.h>

#include "warden/host/cgroup_place.h"
#include "warden/host/slots.h"

int slots_count(uint32_t *ret_used, uint32_t *ret_stale, struct sg_error *e)
{
    AUTO(close_p) int fd = slots_open_table(e);
    AUTO(free_p) bool *groups = xcalloc(SLOTS_MAX, sizeof(*groups));
    uint32_t used = 0, stale = 0, n;

    if (fd < 0)
        return fd;
    n = slots_table_size(fd);
    cgroup_find_slots(groups, SLOTS_MAX);
    for (uint32_t slot = 0; slot < SLOTS_MAX; slot++) {
        if (!groups[slot] && (slot >= n || slots_byte(fd, slot) == 0))
            continue;
        struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = slot, .l_len = 1};
        if (fcntl(fd, F_OFD_GETLK, &l) == 0 && l.l_type == F_UNLCK)
            stale++;
        else
            used++;
    }
    *ret_used = used;
    *ret_stale = stale;
    return 0;
}
