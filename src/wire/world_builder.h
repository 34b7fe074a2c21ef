/* The contract between the front and a world builder, which makes a world of an image that a build starts
 * from.
 *
 * The front may start no process, so the warden starts one for each ORDER_WORLD_BUILDER, and gives the front
 * a socket to it. The warden reads nothing that either of them says. A world builder is `sandglass-front
 * --world-builder`: root of a user namespace that is nobody's on the host. It sees STATE/worlds, mapped for
 * that namespace, and starts puller and image workers (front/main/world_import.h), nobody there too.
 *
 *   front                                 world builder
 *     request, memfd, [archive] -------->    what the puller is asked (pull/request.h); an image that was uploaded
 *         <---------------------- BUILDER_FETCHING, BUILDER_WAITING, BUILDER_UNPACKING ...
 *         <---------------------- BUILDER_DONE, BUILDER_SAME or BUILDER_FAILED, and it ends
 *
 * If the front closes its end, everything that the world builder has begun ends and is removed. */
#pragma once

#include "lib/base/err.h"
#include "lib/base/ids.h"

#define BUILDER_MAGIC    0x73676d31u /* "sgm1" */
#define BUILDER_ARGUMENT "--world-builder"

/* Its descriptors. */
#define BUILDER_SOCK   3
#define BUILDER_WORLDS 4 /* the tree of all worlds */
#define BUILDER_PULL   5 /* programs that it can execute */
#define BUILDER_IMAGE  6
#define BUILDER_FDS    7
#define BUILDER_FILES  2 /* come with a request, at most */

#define BUILDER_DIGEST     72 /* "sha256:" and 64 digits, and a zero byte */
#define BUILDER_CONFIG_MAX (32u * 1024)

struct builder_request {
    uint32_t magic;
    char id[ID_LEN + 1]; /* of the world; "": none is made, and what others left is removed */
    char known[BUILDER_DIGEST]; /* the manifest of a world that is there; "": none */
    uint64_t bytes_max;         /* of all layers, unpacked */
};

enum builder_what {
    BUILDER_FETCHING = 1, /* layer, of, bytes, total: of this layer */
    BUILDER_WAITING,      /* message: why something is tried again */
    BUILDER_UNPACKING,    /* layer, of */
    BUILDER_DONE,         /* bytes: of the world on disk; of: its layers; digest, config */
    BUILDER_SAME,         /* the image is the one that was known */
    BUILDER_FAILED,       /* code, message */
    BUILDER_MAX_
};

/* All of it comes from processes that read what strangers wrote. */
struct builder_told {
    uint32_t magic, what;
    int32_t
        code; /* FAILED: -errno; -ENETUNREACH, -ETIMEDOUT, -EBUSY: the registry did not answer */
    uint32_t layer, of;
    uint64_t bytes, total;
    char message[256];
    char digest[BUILDER_DIGEST];
    uint32_t config_len; /* DONE: JSON, as the puller tells it: Env, WorkingDir, User and others */
    char config[BUILDER_CONFIG_MAX];
};
