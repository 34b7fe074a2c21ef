/* The contract between the front and a mason, which makes a world of an image that a build starts
 * from.
 *
 * The front may start no process, so the warden starts one for each ORDER_MASON, and gives the front
 * a socket to it. The warden reads nothing that either of them says. A mason is `sandglass-front
 * --mason`: root of a user namespace that is nobody's on the host. It sees STATE/worlds, mapped for
 * that namespace, and starts puller and image workers (front/main/world_import.h), which are nobody
 * there too.
 *
 *   front                                 mason
 *     request, memfd ------------------->    what the puller is asked (pull/request.h)
 *         <---------------------- MASON_FETCHING, MASON_WAITING, MASON_UNPACKING ...
 *         <---------------------- MASON_DONE, MASON_SAME or MASON_FAILED, and it ends
 *
 * If the front closes its end, everything that the mason has begun ends and is removed. */
#pragma once

#include "lib/base/err.h"
#include "lib/base/ids.h"

#define MASON_MAGIC    0x73676d31u /* "sgm1" */
#define MASON_ARGUMENT "--mason"

/* Its descriptors. */
#define MASON_SOCK   3
#define MASON_WORLDS 4 /* the tree of all worlds */
#define MASON_PULL   5 /* programs that it can execute */
#define MASON_IMAGE  6
#define MASON_FDS    7

#define MASON_DIGEST     72 /* "sha256:" and 64 digits, and a zero byte */
#define MASON_CONFIG_MAX (32u * 1024)

struct mason_request {
    uint32_t magic;
    char id[ID_LEN + 1];      /* of the world; "": none is made, and what others left is removed */
    char known[MASON_DIGEST]; /* the manifest of a world that is there; "": none */
    uint64_t bytes_max;       /* of all layers, unpacked */
};

enum mason_what {
    MASON_FETCHING = 1, /* layer, of, bytes, total: of this layer */
    MASON_WAITING,      /* message: why something is tried again */
    MASON_UNPACKING,    /* layer, of */
    MASON_DONE,         /* bytes: of the world on disk; of: its layers; digest, config */
    MASON_SAME,         /* the image is the one that was known */
    MASON_FAILED,       /* code, message */
    MASON_MAX_
};

/* All of it comes from processes that read what strangers wrote. */
struct mason_told {
    uint32_t magic, what;
    int32_t
        code; /* FAILED: -errno; -ENETUNREACH, -ETIMEDOUT, -EBUSY: the registry did not answer */
    uint32_t layer, of;
    uint64_t bytes, total;
    char message[256];
    char digest[MASON_DIGEST];
    uint32_t config_len; /* DONE: JSON, as the puller tells it: Env, WorkingDir, User and others */
    char config[MASON_CONFIG_MAX];
};
