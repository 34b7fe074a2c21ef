/* What is asked of this program: one JSON object on standard input, from who started it.
 *
 *   from           "registry" (default); "layout", a directory as OCI lays images out, descriptor 4;
 *                  "archive", a tar of one or of `docker save`, in a file, descriptor 4
 *   image          the reference; of a layout or an archive, the name of one of its images, and
 *                  nothing if it holds one alone
 *   architecture   "amd64" or "arm64"; default: this machine's
 *   credentials    {"type":"registry","username","password"} · {"type":"identity","token"} ·
 *                  {"type":"aws","awsAccessKeyId","awsSecretAccessKey","awsRegion"} ·
 *                  {"type":"gcp","serviceAccountJson"}
 *   registries     {"HOST[:PORT]": "http" | "https"}: those that may be at addresses inside
 *   only           a list of HOST[:PORT]: no other registry is asked; default: any
 *   known          a digest: if the image for this machine has it, its layers are not wanted
 *   proxy          "http://HOST:PORT": everything goes through it, and it judges addresses
 *   certificates   PEM: authorities that are believed besides those of the system
 *   sync           false: layers need not survive a power cut
 *   have           digests of layers that are not wanted
 *   limits         {"layerBytes","totalBytes","layers","seconds","connectSeconds","stallSeconds",
 *                  "attempts"} */
#pragma once

#include <jansson.h>

#include "pull/reference.h"
#include "lib/web/url.h"

enum request_from { REQUEST_REGISTRY, REQUEST_LAYOUT, REQUEST_ARCHIVE };

enum credentials_kind {
    CREDENTIALS_NONE,
    CREDENTIALS_PASSWORD, /* name and secret; GCP's are such too */
    CREDENTIALS_IDENTITY, /* secret: a token that gives tokens */
    CREDENTIALS_AWS,      /* name and secret of a key, in a region */
};

/* The texts belong to the request. */
struct credentials {
    enum credentials_kind kind;
    const char *name, *secret, *region;
};

struct limits {
    uint64_t layer_bytes, total_bytes; /* as they travel, compressed */
    uint32_t layers;
    uint32_t seconds; /* for everything */
    uint32_t connect_seconds;
    uint32_t stall_seconds; /* without a byte */
    uint32_t attempts;      /* of each piece */
};

struct request {
    json_t *json; /* owns the texts */
    enum request_from from;
    const char *image; /* NULL: the only one */
    struct reference reference;
    const char *architecture;
    struct credentials credentials;
    struct vouchers vouchers;
    const char *proxy;        /* "": none */
    const char *certificates; /* NULL: the system's alone */
    json_t *only;             /* borrowed; NULL: any registry */
    struct digest known;
    bool sync;
    struct digest *have;
    size_t n_have;
    struct limits limits;
};

int request_parse(const char *text, size_t len, struct request *ret, struct sg_error *e);
void request_done(struct request *q); /* accepts a zeroed struct */
bool request_has(const struct request *q, const struct digest *layer);
/* Whether the registry of the reference may be asked. */
int request_check_registry(const struct request *q, struct sg_error *e);
