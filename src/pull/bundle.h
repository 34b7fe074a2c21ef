/* The files of an image on this machine: in a directory, or in a tar. */
#pragma once

#include "pull/deadline.h"
#include "pull/report.h"
#include "pull/store.h"
#include "pull/tar.h"

struct bundle {
    int dir; /* borrowed; -1: it is a tar */
    struct tar tar;
    const struct deadline *deadline;
};

/* A file, or a stretch of the tar. */
struct piece {
    int fd;
    bool own; /* the descriptor is the piece's */
    uint64_t offset, size;
};

int bundle_open(struct bundle *b, int fd, bool directory, const struct deadline *d,
                struct sg_error *e);
void bundle_done(struct bundle *b); /* accepts a zeroed struct */
/* path: relative, with what strangers wrote in it. -ENOENT without a message in e: there is none. */
int bundle_find(const struct bundle *b, const char *path, struct piece *ret, struct sg_error *e);
void piece_done(struct piece *p); /* accepts a zeroed struct */

/* Reads a document: at most `max` bytes. *ret is on the heap. */
int piece_read(const struct piece *p, const char *what, size_t max, char **ret, struct sg_error *e);
/* Adds all bytes to a part. */
int piece_copy(const struct bundle *b, const struct piece *p, struct part *part,
               struct report *report, struct sg_error *e);
int piece_digest(const struct bundle *b, const struct piece *p, struct digest *ret,
                 struct sg_error *e);
