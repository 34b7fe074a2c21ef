/* The documents that an image is made of, OCI's and Docker's: an index names a manifest for each
 * platform, a manifest a config and layers, the config says how to run it. All of them were written
 * by strangers: they have at most 4 MiB, and each field is checked. */
#pragma once

#include <jansson.h>

#include "pull/digest.h"

#define DOCUMENT_MAX (4u << 20)

/* What registries are asked for. */
#define MANIFEST_TYPES                                            \
    "application/vnd.oci.image.index.v1+json, "                   \
    "application/vnd.oci.image.manifest.v1+json, "                \
    "application/vnd.docker.distribution.manifest.list.v2+json, " \
    "application/vnd.docker.distribution.manifest.v2+json"

struct descriptor {
    struct digest digest;
    uint64_t size;
    const char *media_type; /* a text of our own */
};

struct manifest {
    struct digest digest;
    struct descriptor config;
    struct descriptor *layers;
    size_t n_layers;
};

/* What an image says of itself. The JSON values may be NULL. */
struct config {
    json_t *json; /* owns the rest */
    const char *architecture, *user, *working_dir;
    const json_t *env, *entrypoint, *cmd;
    struct digest *diff_ids; /* of the layers, uncompressed */
    size_t n_diff_ids;
};

/* Reads JSON, which must not be too complex. `what` begins the errors. */
int document_load(const char *what, const char *text, size_t len, json_t **ret, struct sg_error *e);
/* The same, which must be an object. */
int document_parse(const char *what, const char *text, size_t len, json_t **ret,
                   struct sg_error *e);
/* Whether it is an index; else it must be a manifest. `type` is what it was sent as, or "". */
int document_is_index(const json_t *doc, const char *type, bool *ret, struct sg_error *e);
/* The manifest of an index for linux on this architecture. */
int index_choose(const json_t *doc, const char *architecture, struct descriptor *ret,
                 struct sg_error *e);
/* A descriptor of a manifest or index, as indexes have them. */
int descriptor_parse(const json_t *object, struct descriptor *ret, struct sg_error *e);
int manifest_parse(const json_t *doc, size_t layers_max, struct manifest *ret, struct sg_error *e);
void manifest_done(struct manifest *m); /* accepts a zeroed struct */
/* Takes the document over. The image must be for this architecture, and have as many layers. */
int config_parse(json_t *doc, const char *architecture, size_t n_layers, struct config *ret,
                 struct sg_error *e);
void config_done(struct config *c); /* accepts a zeroed struct */
