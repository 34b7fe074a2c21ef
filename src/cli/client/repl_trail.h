/* The way back from each cell: a checkpoint of the sandbox that is taken before the cell runs.
 *
 * The checkpoint is taken when the cell is about to run, not while the user types: so a file that
 * was copied into the sandbox meanwhile is not lost by going back. A missing checkpoint never makes
 * a cell fail; the step then remembers why there is none. */
#pragma once

#include <jansson.h>

#include "cli/client/client.h"

#define REPL_CONTEXTS_MAX 16
#define REPL_STEPS_MAX    64

/* The state of the session before a cell. */
struct repl_step {
    char *checkpoint; /* its id; NULL: there is none, */
    char *why;        /* and this says why */
    char *line;       /* the beginning of the cell */
    size_t context;   /* index of the context that the cell ran in */
    size_t n_contexts;
    uint64_t counts[REPL_CONTEXTS_MAX]; /* cells that had run in each context */
    size_t cells_len;                   /* length of the text that :save wrote then */
};

struct repl_trail {
    struct client *client;
    const char *never; /* why no checkpoints are made in this session, or NULL */
    char *off;         /* why this sandbox's server makes none, or NULL */
    bool told;         /* the user knows that cells have no checkpoint */
    struct repl_step steps[REPL_STEPS_MAX];
    size_t n;
};

/* never: why this session makes no checkpoints, NULL if it does. The caller keeps the string. */
void repl_trail_init(struct repl_trail *t, struct client *client, const char *never);
void repl_trail_done(struct repl_trail *t);
/* Forgets all steps: the session has another sandbox. */
void repl_trail_renew(struct repl_trail *t);

/* Adds a step before a cell of this context, and takes over `step` with its strings. Takes a
 * checkpoint unless step->why says that this is impossible. *ret_fresh: NULL, or why the context's
 * kernel cannot be copied, which the caller frees. */
void repl_trail_add(struct repl_trail *t, const char *sandbox, const char *context,
                    struct repl_step *step, char **ret_fresh);
/* Finds the step n cells back, or an error that says why there is no way back to it. */
int repl_trail_find(const struct repl_trail *t, uint64_t n, const struct repl_step **ret,
                    struct sg_error *e);
/* Forgets the last n steps. */
void repl_trail_cut(struct repl_trail *t, size_t n);

/* Rewinds the sandbox to a step. *ret tells what became of the kernels. */
int repl_trail_rewind(struct repl_trail *t, const char *sandbox, const struct repl_step *step,
                      json_t **ret, struct sg_error *e);
/* Lists the checkpoints that the server still has: it keeps a limited number. */
int repl_trail_list(struct repl_trail *t, const char *sandbox, json_t **ret, struct sg_error *e);
