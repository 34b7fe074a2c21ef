/* sandglass ctx: the execution contexts of a Sandglass server, below /v1.
 *
 *   ctx.c         the command line       ctx_list.c   ls, get, touch: contexts as they are
 *   ctx_change.c  branch, merge, rm      ctx_log.c    log, rewind: a context's checkpoints */
#pragma once

#include "lib/text/strbuf.h"
#include "cli/client/client.h"

struct json_t;

struct ctx_options {
    struct client_actions base;
    const char *status, *inherit, *conversation, *at, *checkpoint;
    uint64_t ttl_s, wait_ms;
    bool expired, yes, state, replay, accept_files;
};

int ctx_ls(struct client *c, void *options, struct sg_error *e);
int ctx_get(struct client *c, void *options, struct sg_error *e);
int ctx_touch(struct client *c, void *options, struct sg_error *e);
int ctx_branch(struct client *c, void *options, struct sg_error *e);
int ctx_merge(struct client *c, void *options, struct sg_error *e);
int ctx_rm(struct client *c, void *options, struct sg_error *e);
int ctx_log(struct client *c, void *options, struct sg_error *e);
int ctx_rewind(struct client *c, void *options, struct sg_error *e);

/* The option that says what a new path inherits from the other one; NULL: none does. */
const char *ctx_inherit(const struct ctx_options *o);

/* Lists contexts, page by page. status NULL: the active ones. conversation and path NULL: any. */
int ctx_list(struct client *c, const char *conversation, const char *path, const char *status,
             struct json_t **ret, struct sg_error *e);
/* The id of the context that the first arguments name: an id, or a conversation and a path. *row
 * has what was found of it, and lives as long as the id. */
int ctx_id(struct client *c, const struct ctx_options *o, size_t n_args, struct json_t **row,
           const char **ret, struct sg_error *e);
int ctx_check_id(const char *id, struct sg_error *e);

/* Fills a table with the paths of a conversation, drawn as a tree, and their contexts. flags: see
 * tree.h. The caller calls table_done even after an error. */
struct table;
int ctx_tree_rows(const struct json_t *paths, const struct json_t *contexts, unsigned flags,
                  struct table *ret, struct sg_error *e);
/* The same for the checkpoints of a context. */
int ctx_log_rows(const struct json_t *checkpoints, unsigned flags, struct table *ret,
                 struct sg_error *e);

/* Prints the error and what the refusal lists: the obstacles, or the checkpoints that exist.
 * Returns the exit status. */
int ctx_fail(const struct sg_error *e, const struct json_t *refusal);

/* Adds an object's sandboxStatus, in the colour of that status. */
void ctx_add_status(struct table *t, const char *status);
