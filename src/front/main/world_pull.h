/* Fetches an image with sandglass-pull (docs/internals/pull.md), for `sandglass world` and for world builders. */
#pragma once

#include "lib/base/err.h"
#include "wire/image.h"

#define PULL_PROGRAM "sandglass-pull"
#define PULL_DIGEST  72  /* "sha256:" and 64 digits, and a zero byte */
#define PULL_WORDS   256 /* of an error */
#define PULL_CONFIG  (32u * 1024)

struct pulled;
struct pull_order {
    int request;       /* 0: made of what follows; else a file with what the puller is asked */
    const char *image; /* NULL: the only one of the archive */
    int archive;       /* -1: from a registry */
    const char *user, *secret; /* NULL: none */
    const char
        *insecure;     /* "HOST[:PORT]" that is asked by HTTP, also at addresses inside; or NULL */
    const char *known; /* a manifest whose layers are not wanted; NULL: there is none */
    /* Called for whatever comes before the end; NULL: nobody. An error ends the puller. */
    int (*tell)(const struct pulled *p, void *arg, struct sg_error *e);
    void *arg;
};

/* UNPACKING is said by who unpacks the layers. */
enum pulled_what {
    PULLED_END,
    PULLED_PROGRESS,
    PULLED_WAITING,
    PULLED_LAYER,
    PULLED_UNPACKING,
};

/* What the puller has said. But for the message and the config there is no text of the registry's. */
struct pulled {
    uint32_t what;
    int32_t code;                      /* END: 0, or -errno */
    char message[PULL_WORDS];          /* why not; WAITING: for what */
    uint32_t layer, of;                /* PROGRESS, LAYER, UNPACKING: which */
    uint64_t layer_bytes, layer_total; /* PROGRESS */
    char digest[PULL_DIGEST];          /* of the manifest */
    uint32_t config_len;               /* JSON: Env, WorkingDir, User, Entrypoint, Cmd */
    char config[PULL_CONFIG];
    uint32_t n;
    struct {
        char digest[PULL_DIGEST], diff_id[PULL_DIGEST];
    } layers[IMAGE_BLOBS]; /* the lowest first; LAYER: the first is the one that is there */
};

/* Whether the answer of a process without rights is what its type says: root opens and removes files
 * by these names. */
bool world_pulled_valid(const struct pulled *p);

/* dir: belongs to nobody (front/main/worker.h). The layers are files in it, named by their
 * digests. What the puller says is read by a child that is nobody too. */
int world_pull(int dir, const struct pull_order *o, struct pulled *ret, struct sg_error *e);
