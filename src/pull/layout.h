/* Images on this machine: as OCI lays them out (`index.json`, `blobs/sha256/...`), in a directory
 * or in a tar, and what `docker save` writes (`manifest.json`, a tar for each layer). A tar that is
 * both, as Docker 25 and later write it, is read as the first, whose digests can be checked. */
#pragma once

#include "pull/bundle.h"
#include "pull/source.h"

struct request;

struct layout {
    struct source source;
    const struct request *request;
    struct bundle bundle;
    /* Of `docker save` only, which names no digests: what was found out. */
    struct saved_file *files;
    size_t n_files;
};

/* fd is borrowed: a directory, or a file that is a tar. */
int layout_init(struct layout *l, int fd, const struct request *q, const struct deadline *d,
                struct sg_error *e);
void layout_done(struct layout *l); /* accepts a zeroed struct */

/* saved.c: makes a manifest of what `docker save` wrote. */
int saved_root(struct source *s, struct document *ret, struct sg_error *e);
int saved_document(struct source *s, const struct descriptor *d, enum document_kind kind,
                   struct document *ret, struct sg_error *e);
int saved_layer(struct source *s, const struct descriptor *d, struct part *part,
                struct report *report, struct sg_error *e);
void saved_done(struct layout *l);
