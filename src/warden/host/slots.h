/* Slots: which process owns which user ids on this host.
 *
 * Ids from SLOTS_FIRST_ID upward are cut into slots of 65,536. The table /run/sandglass/slots,
 * shared by every sandglass process of the machine, has one byte per slot:
 *
 *   locked by a process          in use
 *   not locked, byte is 0        free
 *   not locked, byte is not 0    stale: its owner died without cleaning up, or gave up on it
 *                                (slots_lose)
 *
 * The lock is an open-file-description lock on that byte: the kernel drops it when the owner dies,
 * and nobody ever compares pids. The byte outlives the owner: whoever takes a stale slot first
 * sweeps whatever still carries the slot's name (its control groups and the processes in them), and
 * only then uses the ids again. So a crash can never give two sandboxes the same ids. */
#pragma once

#include "lib/base/err.h"

#define SLOTS_FIRST_ID 0x10000000u
#define SLOT_IDS       65536u
#define SLOTS_MAX      57344u /* up to id 0xEFFFFFFF */
#define SLOTS_DIR      "/run/sandglass"

struct slots {
    int fd;
    uint32_t first, count; /* the run of slots that this process holds */
};

/* Takes `count` neighbouring slots, sweeping stale ones. */
int slots_take(struct slots *s, uint32_t count, struct sg_error *e);
/* Something that would not die still uses the slot's ids: slots_release will not give this slot
 * back, but leave it stale. */
void slots_lose(struct slots *s, uint32_t slot);
/* Gives the other slots back. Call it when nothing uses their ids any more. */
void slots_release(struct slots *s);

static inline uint32_t slot_first_id(uint32_t slot)
{
    return SLOTS_FIRST_ID + slot * SLOT_IDS;
}

/* Sweeps every stale slot of the machine, groups of slots that have no owner, and empty places of
 * control groups (cgroup_place.h). Returns how many slots were swept, or -errno. */
int slots_sweep_all(struct sg_error *e);

/* For slots_count.c: the table, its size, and a byte of it. */
int slots_open_table(struct sg_error *e);
uint32_t slots_table_size(int fd);
uint8_t slots_byte(int fd, uint32_t slot);
