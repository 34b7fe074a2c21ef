/* Makes a world of layers, in STATE/worlds, by image workers (wire/image.h).
 *
 *   new-ID/   while it is made: 0, 1, ... the contents of its layers; list-0, ... what they said; meta;
 *             layers/, what was pulled
 *   ID/       when all of it is there, checked and on disk: the contents and meta
 *
 * A run that is killed leaves new-ID behind, and the next one removes it. */
#pragma once

#include "front/main/worker.h"
#include "lib/base/err.h"
#include "lib/base/ids.h"
#include "wire/image.h"

#define WORLD_LAYERS "layers" /* what was pulled */

struct world_making {
    int worlds, dir;
    uint64_t bytes_max; /* of all layers, unpacked; 0: as much as an image worker allows */
    char id[ID_LEN + 1];
    size_t n;       /* layers so far */
    uint64_t bytes; /* of them, unpacked */
    size_t begun;   /* layers; those from n on are being unpacked */
    struct worker workers[IMAGE_BLOBS];
    char diff_ids[IMAGE_BLOBS][2 * IMAGE_DIGEST + 1]; /* "": any */
    int lists[IMAGE_BLOBS];
    uint64_t blocks[IMAGE_BLOBS];
    uint32_t left_out; /* devices, which a world does not have */
};
#define WORLD_MAKING_NONE \
    {                     \
        .dir = -1         \
    }

struct world_made {
    char id[ID_LEN + 1];
    uint64_t files, bytes; /* inodes; bytes on disk */
    uint32_t left_out;
};

/* worlds: the open STATE/worlds, which stays the caller's. id: NULL for a new one. Needs root; the
 * workers are nobody. */
int world_begin(struct world_making *m, int worlds, const char *id, struct sg_error *e);
/* Removes what runs that were killed have left. */
void worlds_sweep(int worlds);
/* Adds a layer above those that are there: a tar, as it is, gzip or zstd. diff_id: the SHA-256 that
 * the tar must have, in hexadecimal digits, or NULL. */
int world_add(struct world_making *m, int layer, const char *diff_id, struct sg_error *e);
/* The same in two parts: several layers can be unpacked at the same time. Each begin needs an end, in
 * the same order. */
int world_add_begin(struct world_making *m, int layer, const char *diff_id, struct sg_error *e);
int world_add_end(struct world_making *m, struct sg_error *e);
int world_finish(struct world_making *m, struct world_made *ret, struct sg_error *e);
/* Removes what has not been finished. */
void world_abandon(struct world_making *m);
/* Removes a world that no snapshot names yet. */
void world_discard(int worlds, const char *id);
