/* Templates that tenants build, in the server's own database: their builds with logs, their tags,
 * the layers and the cache of the builds, and the archives that were uploaded for them. Everything
 * has an owner, and no function finds what belongs to another tenant, unless it is public. */
#pragma once

#include "front/store/store.h"

#define STORE_BUILD_LEN 36 /* a UUID */
#define STORE_KEY_HEX   64 /* a SHA-256 in hexadecimal digits */
#define STORE_TAGS_MAX  1024
#define STORE_WHY_MAX   1024
#define STORE_STEP_MAX  24 /* "base", "1", "finalize" */

struct store_template {
    int64_t seq;
    char id[ID_LEN + 1], tenant[ID_LEN + 1], name[STORE_NAME_MAX + 1];
    int64_t created_ms, updated_ms;
    bool public; /* other tenants may make sandboxes of it */
};

/*   NEW --> QUEUED --> RUNNING --> READY
 *              |          |
 *              +----------+------> ERROR
 */
enum store_build_state { BUILD_NEW, BUILD_QUEUED, BUILD_RUNNING, BUILD_READY, BUILD_ERROR };

struct store_build {
    char id[STORE_BUILD_LEN + 1], template_id[ID_LEN + 1];
    enum store_build_state state;
    char tags[STORE_TAGS_MAX];     /* for the time when it is ready, with spaces between */
    uint32_t cpus, memory_mib;     /* 0: the server's setting */
    char base[STORE_NAME_MAX + 1]; /* the built-in template under it */
    char layer[ID_LEN + 1];        /* "": the plain base, or its files are gone */
    char reason[STORE_WHY_MAX], reason_step[STORE_STEP_MAX];
    int64_t created_ms, ended_ms;
};

/* ---- templates ------------------------------------------------------------------------------- */

/* Finds the tenant's template of that name, or makes it. -EDQUOT: it has `max` already. */
int store_template_ensure(struct store *s, const char *tenant, const char *name, uint32_t max,
                          struct store_template *ret, struct sg_error *e);
/* which: an id or a name. -ENOENT, without a message. */
int store_template_get(struct store *s, const char *tenant, const char *which,
                       struct store_template *ret, struct sg_error *e);
int store_templates_each(struct store *s, const char *tenant,
                         bool (*fn)(const struct store_template *, void *), void *arg,
                         struct sg_error *e);
/* Any tenant's, by its id. -ENOENT, without a message: there is none, or it is not public. */
int store_template_public(struct store *s, const char *id, struct store_template *ret,
                          struct sg_error *e);
int store_template_publish(struct store *s, const char *id, bool public, struct sg_error *e);
/* With its builds, logs and tags. Its layers are then unused. */
int store_template_remove(struct store *s, const char *id, struct sg_error *e);

/* ---- builds ---------------------------------------------------------------------------------- */

/* Adds a build that is NEW; id, template_id, tags, cpus and memory_mib are read. Forgets builds of
 * the template that are over, that no tag names and that are older than the last `keep`; those that
 * nobody started for an hour, or that are older than the last STORE_BUILDS_NEW; and the logs of those
 * that are older than the last STORE_BUILD_LOGS. */
#define STORE_BUILDS_NEW 1000
#define STORE_BUILD_LOGS 20
int store_build_add(struct store *s, const struct store_build *b, uint32_t keep,
                    struct sg_error *e);
/* -ENOENT, without a message; so do the next two. */
int store_build_get(struct store *s, const char *template_id, const char *id,
                    struct store_build *ret, struct sg_error *e);
int store_build_by_tag(struct store *s, const char *template_id, const char *tag,
                       struct store_build *ret, struct sg_error *e);
int store_build_newest(struct store *s, const char *template_id, struct store_build *ret,
                       struct sg_error *e);
int store_builds_each(struct store *s, const char *template_id,
                      bool (*fn)(const struct store_build *, void *), void *arg,
                      struct sg_error *e);
int store_builds_count(struct store *s, const char *template_id, uint32_t *ret, struct sg_error *e);
/* The JSON of front/core/defaults.h, on the heap. */
int store_build_defaults(struct store *s, const char *id, char **ret, struct sg_error *e);
/* QUEUED or RUNNING. -EALREADY: the build is further already. */
int store_build_state(struct store *s, const char *id, enum store_build_state state,
                      struct sg_error *e);
/* READY or ERROR, once: `state`, `base`, `layer`, `reason` and `reason_step` are read. A build that
 * is ready gets its tags, in the same transaction. -ESTALE: there is no such layer any more. */
int store_build_end(struct store *s, const struct store_build *b, const char *defaults,
                    struct sg_error *e);
/* Ends the builds that another front had under way. */
int store_builds_abandon(struct store *s, const char *reason, struct sg_error *e);

/* ---- tags ------------------------------------------------------------------------------------ */

#define STORE_TEMPLATE_TAGS 1000 /* of a template */

/* tags: with spaces between. build: one that has a tag already, or has just become ready: others
 * have given up their files. -EDQUOT: too many. */
int store_tags_set(struct store *s, const char *template_id, const char *tags, const char *build,
                   struct sg_error *e);
int store_tags_remove(struct store *s, const char *template_id, const char *tags,
                      struct sg_error *e);
int store_tags_each(struct store *s, const char *template_id,
                    void (*fn)(const char *tag, const char *build, int64_t created_ms, void *arg),
                    void *arg, struct sg_error *e);

/* ---- logs ------------------------------------------------------------------------------------ */

struct store_log {
    int64_t ms;
    unsigned level; /* 0 to 3: debug, info, warn, error */
    char step[STORE_STEP_MAX];
    const char *message; /* valid during the call that gives it */
};
/* Adds a line; lines are numbered as they come. Between store_build_log_begin, if it returned 0, and
 * store_build_log_end all lines are one write, and nothing else may be asked of the store. */
int store_build_log_begin(struct store *s, struct sg_error *e);
int store_build_log_end(struct store *s, struct sg_error *e);
int store_build_log_add(struct store *s, const char *build, const struct store_log *line,
                        struct sg_error *e);
/* Which lines of a log: from `offset` on, at most `limit`, of this level and above. backward: the
 * newest first, and none that is newer than at_ms; otherwise none that is older. */
struct store_log_query {
    uint64_t offset;
    uint32_t limit;
    unsigned level;
    bool backward;
    int64_t at_ms;
};
int store_build_log_each(struct store *s, const char *build, const struct store_log_query *q,
                         void (*fn)(const struct store_log *, void *), void *arg,
                         struct sg_error *e);

/* ---- layers ---------------------------------------------------------------------------------- */

/* Names a layer that was saved, and has the cache find it by `key`; key NULL: the cache does
 * not. */
int store_build_layer_add(struct store *s, const char *tenant, const char *key, const char *id,
                          uint64_t bytes, struct sg_error *e);
/* Names the layer of a tenant's snapshot as one of its builds too. Whichever of both names goes first, the
 * other keeps the files (store_layer_named). */
int store_build_layer_share(struct store *s, const char *tenant, const char *snapshot,
                            struct sg_error *e);
/* -ENOENT, without a message. A layer that is found counts as used. */
int store_build_layer_get(struct store *s, const char *tenant, const char *key,
                          char ret[ID_LEN + 1], struct sg_error *e);
uint64_t store_build_layer_bytes(struct store *s, const char *id);
/* The bytes of all layers that a tenant's templates are made of. */
uint64_t store_build_layers_named(struct store *s, const char *tenant);
/* Forgets cached layers beyond the `keep` that were used last, and beyond `bytes`, with those that
 * templates are made of, and calls fn for each layer that nothing names any more, unless it is
 * needed: its files may go. */
int store_build_layers_sweep(struct store *s, const char *tenant, uint32_t keep, uint64_t bytes,
                             bool (*needed)(const char *id, void *arg),
                             void (*fn)(const char *id, void *arg), void *arg, struct sg_error *e);

/* ---- copies of public templates -------------------------------------------------------------- */

/* Whose layer it is, for a tenant. */
enum store_layer_owner { LAYER_OWN, LAYER_PUBLIC, LAYER_FOREIGN };
/* OWN: no other tenant's template or build has it. PUBLIC: one does, and it is public, or the
 * operator's. */
enum store_layer_owner store_layer_owner(struct store *s, const char *tenant, const char *layer);
/* The tenant's own layer with the same files. -ENOENT, without a message. One that is found counts as
 * used. */
int store_copy_get(struct store *s, const char *tenant, const char *source, char ret[ID_LEN + 1],
                   struct sg_error *e);
int store_copy_add(struct store *s, const char *tenant, const char *source, const char *layer,
                   uint64_t bytes, struct sg_error *e);
uint64_t store_copies_bytes(struct store *s, const char *tenant);
/* Removes the copy of a tenant that was not used for the longest time: 1, 0 if it has none. *ret: a layer
 * whose files may go. */
int store_copy_trim(struct store *s, const char *tenant, char ret[ID_LEN + 1], struct sg_error *e);
/* The same of any copy that was not used since then, or whose source is no public template's any
 * more. */
int store_copy_expire(struct store *s, int64_t before_ms, char ret[ID_LEN + 1], struct sg_error *e);

/* ---- images ---------------------------------------------------------------------------------- */

#define STORE_DIGEST_MAX 72 /* "sha256:" and 64 digits, and a zero byte */
#define STORE_IMAGE_MAX  1024

/* A layer that was made of an image. The cache finds it by a key of the image's name and of what it
 * was fetched with. */
struct store_image {
    char layer[ID_LEN + 1];
    char name[STORE_IMAGE_MAX + 1];
    char digest[STORE_DIGEST_MAX]; /* of its manifest */
    char *config;                  /* JSON, on the heap */
    int64_t fetched_ms;
};
/* As store_build_layer_add. */
int store_image_add(struct store *s, const char *tenant, const char *key,
                    const struct store_image *image, uint64_t bytes, struct sg_error *e);
/* -ENOENT, without a message. It does not count as used. */
int store_image_get(struct store *s, const char *tenant, const char *key, struct store_image *ret,
                    struct sg_error *e);

/* ---- uploads --------------------------------------------------------------------------------- */

struct store_upload {
    char file[ID_LEN + 1];
    char digest[STORE_KEY_HEX + 1];
    uint64_t bytes;
};
/* ret_old: the file that had this hash before, or "". */
int store_upload_add(struct store *s, const char *tenant, const char *hash,
                     const struct store_upload *u, char ret_old[ID_LEN + 1], struct sg_error *e);
/* -ENOENT, without a message. An upload that is found counts as used. */
int store_upload_get(struct store *s, const char *tenant, const char *hash,
                     struct store_upload *ret, struct sg_error *e);
/* Removes the tenant's upload that was used longest ago, other than `but`, if all of them have more
 * than `max` bytes, or are more than `most`. 1: removed, and *ret is it; 0: there was no need. */
int store_upload_trim(struct store *s, const char *tenant, const char *but, uint64_t max,
                      uint32_t most, struct store_upload *ret, struct sg_error *e);
/* Whether a file is that of an upload. */
bool store_upload_is_file(struct store *s, const char *file);
