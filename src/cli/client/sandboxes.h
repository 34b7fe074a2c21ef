/* The sandboxes of a server, for the verbs that show or address several. */
#pragma once

#include "cli/client/client.h"

#define SANDBOXES_PAIRS_MAX 64
#define SANDBOXES_IDS_MAX   1024

struct json_t;

struct sandboxes_filter {
    const char *state;                      /* NULL: running and paused */
    const char *pairs[SANDBOXES_PAIRS_MAX]; /* "K=V" in the metadata; all must match */
    size_t n_pairs;
};

/* Lists sandboxes, as an array of the server's objects. */
int sandboxes_list(struct client *c, const struct sandboxes_filter *filter, struct json_t **ret,
                   struct sg_error *e);

/* The ids on a command line. */
struct sandboxes_ids {
    const char *v[SANDBOXES_IDS_MAX];
    size_t n;
};
int sandboxes_add_id(struct sandboxes_ids *ids, const char *id, struct sg_error *e);

/* Calls a function for each sandbox, prints what fails, goes on, and returns the exit status of the
 * first failure. Prints the ids that succeeded, unless `quiet`. */
int sandboxes_each(struct client *c, const struct sandboxes_ids *ids, bool quiet,
                   int (*fn)(struct client *c, const char *id, void *arg, struct sg_error *e),
                   void *arg);
