#include "warden/host/slots.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "warden/host/cgroup_place.h"

enum { USED = 1, LOST = 2 };

int slots_open_table(struct sg_error *e)
{
    int fd;

    if (mkdir(SLOTS_DIR, 0700) < 0 && errno != EEXIST)
        return err_errno(e, "make '" SLOTS_DIR "' for the id table");
    fd = open(SLOTS_DIR "/slots", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return err_errno(e, "open the id table '" SLOTS_DIR "/slots'");
    return fd;
}

static int lock(int fd, short type, uint32_t first, uint32_t count)
{
    struct flock l = {.l_type = type, .l_whence = SEEK_SET, .l_start = first, .l_len = count};

    return fcntl(fd, F_OFD_SETLK, &l) < 0 ? -errno : 0;
}

/* The slot where the next attempt may start: behind the lock that is in the way. */
static uint32_t behind_conflict(int fd, uint32_t first, uint32_t count)
{
    struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = first, .l_len = count};

    if (fcntl(fd, F_OFD_GETLK, &l) < 0 || l.l_type == F_UNLCK)
        return first; /* the lock has gone meanwhile: try again */
    if (l.l_len == 0)
        return SLOTS_MAX;
    return (uint32_t)(l.l_start + l.l_len);
}

/* A short read past the end of the file means zero: never used. */
uint8_t slots_byte(int fd, uint32_t slot)
{
    uint8_t b = 0;

    return pread(fd, &b, 1, slot) == 1 ? b : 0;
}

static int put_byte(int fd, uint32_t slot, uint8_t b)
{
    return pwrite(fd, &b, 1, slot) == 1 ? 0 : errno ? -errno : -EIO;
}

/* Call it with the slot's lock held. */
static int sweep_stale(uint32_t slot, struct sg_error *e)
{
    int r = cgroup_sweep(slot, e);

    if (r < 0)
        return err_wrap(e, r, "id slot %u was left by a crashed run and cannot be cleaned", slot);
    return 0;
}

/* Marks all slots with one write: a server takes thousands. */
static int mark_used(int fd, uint32_t first, uint32_t count, struct sg_error *e)
{
    AUTO(free_p) uint8_t *bytes = xcalloc(count, 1);
    int r = 0;

    if (pread(fd, bytes, count, first) < 0)
        return err_errno(e, "read the id table '" SLOTS_DIR "/slots'");
    for (uint32_t i = 0; i < count && r >= 0; i++)
        r = bytes[i] ? sweep_stale(first + i, e) : 0;
    if (r < 0)
        return r;
    memset(bytes, USED, count);
    errno = ENOSPC; /* what a short write means here */
    if (pwrite(fd, bytes, count, first) != (ssize_t)count) {
        r = -errno;
        return err_set(e, r == -ENOSPC ? SG_ERR_LIMIT : SG_ERR_INTERNAL, r,
                       "write the id table '" SLOTS_DIR "/slots': %s; free some space on /run",
                       strerror(-r));
    }
    return 0;
}

int slots_take(struct slots *s, uint32_t count, struct sg_error *e)
{
    AUTO(close_p) int fd = slots_open_table(e);

    if (fd < 0)
        return fd;
    for (uint32_t first = 0; first + count <= SLOTS_MAX;) {
        if (lock(fd, F_WRLCK, first, count) < 0) {
            first = behind_conflict(fd, first, count);
            continue;
        }
        int r = mark_used(fd, first, count, e);
        if (r < 0)
            return r;
        *s = (struct slots){.fd = steal_fd(&fd), .first = first, .count = count};
        return 0;
    }
    return err_set(e, SG_ERR_LIMIT, -EAGAIN,
                   "this host has no %u free id ranges in a row: end some sandboxes", count);
}

void slots_lose(struct slots *s, uint32_t slot)
{
    put_byte(s->fd, slot, LOST);
}

void slots_release(struct slots *s)
{
    if (s->fd < 0)
        return;
    for (uint32_t i = 0; i < s->count; i++)
        if (slots_byte(s->fd, s->first + i) == USED)
            put_byte(s->fd, s->first + i, 0);
    close(s->fd); /* drops the locks */
    s->fd = -1;
}

uint32_t slots_table_size(int fd)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return 0;
    return st.st_size > SLOTS_MAX ? SLOTS_MAX : (uint32_t)st.st_size;
}

/* Locks all slots that belong to nobody, and are marked or have groups. The locks go when fd is
 * closed. */
static void lock_left(int fd, bool *ret)
{
    AUTO(free_p) bool *groups = xcalloc(SLOTS_MAX, sizeof(*groups));
    uint32_t n = slots_table_size(fd);

    cgroup_find_slots(groups, SLOTS_MAX);
    for (uint32_t slot = 0; slot < SLOTS_MAX; slot++)
        ret[slot] = (groups[slot] || (slot < n && slots_byte(fd, slot) != 0)) &&
                    lock(fd, F_WRLCK, slot, 1) == 0;
}

/* Kills in all slots before it waits for the first. If several do not die, it waits for the first
 * of them only. Most slots have no groups: a server takes more slots than it has sandboxes. */
int slots_sweep_all(struct sg_error *e)
{
    AUTO(close_p) int fd = slots_open_table(e);
    AUTO(free_p) bool *ours = xcalloc(SLOTS_MAX, sizeof(*ours));
    AUTO(free_p) bool *groups = xcalloc(SLOTS_MAX, sizeof(*groups));
    int swept = 0, failed = 0;

    if (fd < 0)
        return fd;
    lock_left(fd, ours);
    cgroup_find_slots(groups, SLOTS_MAX); /* again: locked slots get no new groups */
    for (uint32_t slot = 0; slot < SLOTS_MAX; slot++)
        if (ours[slot] && groups[slot])
            cgroup_strike(slot);
    for (uint32_t slot = 0; slot < SLOTS_MAX; slot++) {
        if (!ours[slot] || (failed < 0 && groups[slot] && cgroup_strike(slot)))
            continue;
        int r = groups[slot] ? sweep_stale(slot, failed < 0 ? NULL : e) : 0;
        if (r < 0) {
            failed = r;
            continue;
        }
        swept++;
        if (slots_byte(fd, slot) != 0)
            put_byte(fd, slot, 0);
    }
    cgroup_sweep_places(true);
    return failed < 0 ? failed : swept; /* closing drops the locks */
}
