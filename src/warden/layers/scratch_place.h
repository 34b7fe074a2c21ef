/* Places: where the scratches of a family are in the scratch store.
 *
 * A family is a sandbox, and all those that were made from its files. An overlay that has layers of
 * two subvolumes shows files of both with the same st_dev, and two of them can have the same inode
 * number. So all layers of one stack are in one subvolume, the family's place: each scratch
 * (layer_stack.h) has a directory there.
 *
 *   s1/               root's: so that a files worker may remove all of it at once
 *   s1/1/files        a scratch, with the ids of its slot
 *   s1/2/files        another
 *
 * The place's limit is what is on it already, and a whole disk for each sandbox that writes to it. A
 * place is counted, and goes with its last user. */
#pragma once

#include "warden/layers/scratch_store.h"

#define SCRATCH_PLACE_NAME 24
#define SCRATCH_PLACE_LEFT 64

struct scratch_place {
    struct list link; /* of its share; when it has no user, of those that leave the store */
    struct scratch_share *share;   /* NULL: it leaves */
    uint64_t id;                   /* of its quota */
    char name[SCRATCH_PLACE_NAME]; /* in the scratch store's topmost directory */
    unsigned users;
    uint32_t n_made; /* directories, so far */
    uint64_t bytes;  /* disks of those that write to it; 0: no limit */
    uint64_t limit;  /* what is on it and those disks, when that was last looked at */
    uint64_t held;   /* the limit that is set, where that may be lower */
    /* Scratches that have gone, whose directories files workers only empty: the topmost one is
     * root's. The next scratch that is made removes them. */
    uint32_t left[SCRATCH_PLACE_LEFT];
    size_t n_left;
};

/* Makes an empty place, which the caller uses. */
int scratch_place_make(struct scratch_share *h, struct scratch_place **ret, struct sg_error *e);
void scratch_place_release(struct scratch_place *p);
/* Makes a directory for a scratch, which uses the place from then on, and a detached mount of it.
 * Its files belong to `owner`. bytes: what may be written there; 0: anything. */
int scratch_place_enter(struct scratch_place *p, uint64_t bytes, uint32_t owner,
                        uint32_t *ret_number, int *ret_mount, struct sg_error *e);
/* A whole disk can be written from now on, by each that writes. */
int scratch_place_grow(struct scratch_place *p, struct sg_error *e);
/* The most that a copy of all that is on it may take elsewhere: what it takes here, and a disk more for
 * files that are smaller here. 0: anything. */
uint64_t scratch_place_copied(const struct scratch_place *p);
/* One with a disk of this size writes there no more. */
void scratch_place_rest(struct scratch_place *p, uint64_t bytes);
/* The scratch has gone: its directory is removed, and the place with the last. */
void scratch_place_leave(struct scratch_place *p, uint32_t number, uint32_t owner);
/* What to say of errno when the kernel refused to make something there. */
int scratch_place_failed(const char *what, struct sg_error *e);
/* Where statfs in a sandbox tells of the whole store, opens three files with a number each, and returns how many:
 * bytes in use, bytes that are in memory and not on disk yet, and the limit. What was removed counts until the file system has written that down: some seconds,
 * or until the room is needed. */
#define SCRATCH_PLACE_FIGURES 3
int scratch_place_open_figures(const struct scratch_place *p, int ret[SCRATCH_PLACE_FIGURES],
                               struct sg_error *e);
