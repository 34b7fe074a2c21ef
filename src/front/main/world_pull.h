/* Fetches an image with sandglass-pull (docs/internals/pull.md), for `sandglass world`. */
#pragma once

#include "lib/base/err.h"
#include "wire/image.h"

#define PULL_PROGRAM "sandglass-pull"
#define PULL_DIGEST  72  /* "sha256:" and 64 digits, and a zero byte */
#define PULL_WORDS   256 /* of an error */

struct pull_order {
    const char *image;         /* NULL: the only one of the archive */
    int archive;               /* -1: from a registry */
    const char *user, *secret; /* NULL: none */
    const char
        *insecure; /* "HOST[:PORT]" that is asked by HTTP, also at addresses inside; or NULL */
    bool shows;    /* progress, on standard error */
};

/* What came, without a text of the registry's. */
struct pulled {
    int32_t code;             /* 0, or -errno */
    char message[PULL_WORDS]; /* why not */
    uint32_t n;
    struct {
        char digest[PULL_DIGEST], diff_id[PULL_DIGEST];
    } layers[IMAGE_BLOBS]; /* the lowest first */
};

/* Whether the answer of a process without rights is what its type says: root opens and removes files
 * by these names. */
bool world_pulled_valid(const struct pulled *p);

/* dir: belongs to nobody (front/main/worker.h). The layers are files in it, named by their
 * digests. What the puller says is read by a child that is nobody too. */
int world_pull(int dir, const struct pull_order *o, struct pulled *ret, struct sg_error *e);
