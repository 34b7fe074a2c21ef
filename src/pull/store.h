/* The directory that layers go into. A layer is written aside, as DIGEST.part, and gets its name
 * when its digest is right and its bytes are on disk. One process at a time works on a directory.
 * If it fails, everything that it made is removed. */
#pragma once

#include "pull/digest.h"

struct store {
    int dir;   /* borrowed */
    bool sync; /* a layer is on disk before it gets its name */
    struct digest *made;
    size_t n_made, cap;
};

void store_init(struct store *s, int dir, bool sync);
/* keep: everything went well; else all files that were made are removed. */
void store_done(struct store *s, bool keep);
bool store_made(const struct store *s, const struct digest *d);

/* A layer that is being written. */
struct part {
    struct store *store;
    struct digest digest; /* what it must have in the end */
    uint64_t size;        /* and how long it must be */
    uint64_t bytes;
    struct hasher hasher;
    int fd;
};

int part_begin(struct store *s, const struct digest *d, uint64_t size, struct part *ret,
               struct sg_error *e);
/* Bytes beyond `size` are refused. */
int part_add(struct part *p, const void *data, size_t len, struct sg_error *e);
/* Throws away what has come so far. */
int part_restart(struct part *p, struct sg_error *e);
/* Checks size and digest, syncs, and gives the file its name. */
int part_finish(struct part *p, struct sg_error *e);
void part_done(struct part *p); /* removes what is not finished; accepts a zeroed struct */
