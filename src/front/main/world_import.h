/* Makes a world of layers, in STATE/worlds, by image workers (wire/image.h).
 *
 *   new-ID/   while it is made: 0, 1, ... the contents of its layers; list-0, ... what they said; meta
 *   ID/       when all of it is there, checked and on disk: the contents and meta
 *
 * A run that is killed leaves new-ID behind, and the next one removes it. */
#pragma once

#include "lib/base/err.h"
#include "lib/base/ids.h"

struct world_imported {
    char id[ID_LEN + 1];
    uint64_t files, bytes; /* inodes; bytes on disk */
    uint32_t left_out;     /* devices, which a world does not have */
};

/* layer: a tar, as it is, gzip or zstd. worlds: the open STATE/worlds. Needs root; the workers are
 * nobody. */
int world_import(int worlds, int layer, struct world_imported *ret, struct sg_error *e);
/* Removes a world that no snapshot names yet. */
void world_discard(int worlds, const char *id);
