/* The way back from each cell: a checkpoint of the sandbox that is taken before it runs.
 *
 * It is taken when the cell is about to run and not while it is typed: what came into the sandbox
 * meanwhile, a file that was copied there, is not lost by going back. A cell never fails because
 * there is no checkpoint; the step then remembers why there is none. */
#pragma once

#include <jansson.h>

#include "cli/client/client.h"

#define REPL_CONTEXTS_MAX 16
#define REPL_STEPS_MAX    64

/* What the session was before a cell. */
struct repl_step {
    char *checkpoint; /* NULL: there is none, and */
    char *why;        /* says why */
    char *line;       /* the beginning of the cell */
    size_t context;   /* where it ran, */
    size_t n_contexts;
    uint64_t counts[REPL_CONTEXTS_MAX]; /* cells that had run in each of them */
    size_t cells_len;                   /* of what :save writes */
};

struct repl_trail {
    struct client *client;
    const char *never; /* why no checkpoints are made in this session, or NULL */
    char *off;         /* why none are made in this sandbox, as its server said, or NULL */
    bool told;         /* that there are cells without one */
    struct repl_step steps[REPL_STEPS_MAX];
    size_t n;
};

/* never: why there are to be none, NULL if there are. Stays the caller's. */
void repl_trail_init(struct repl_trail *t, struct client *client, const char *never);
void repl_trail_done(struct repl_trail *t);
/* Another sandbox: all steps are gone. */
void repl_trail_renew(struct repl_trail *t);

/* Adds a step before this cell of a context. Takes `step`, with what is in it. Tries to take a
 * checkpoint unless step->why says that it cannot be done. *ret_fresh: NULL, or why the kernel of
 * the context cannot be copied, which the caller frees. */
void repl_trail_add(struct repl_trail *t, const char *sandbox, const char *context,
                    struct repl_step *step, char **ret_fresh);
/* The step that is n cells back, or an error that says why there is none. */
int repl_trail_find(const struct repl_trail *t, uint64_t n, const struct repl_step **ret,
                    struct sg_error *e);
/* Forgets the last n. */
void repl_trail_cut(struct repl_trail *t, size_t n);

/* Back to a step. *ret is what became of the kernels. */
int repl_trail_rewind(struct repl_trail *t, const char *sandbox, const struct repl_step *step,
                      json_t **ret, struct sg_error *e);
/* The checkpoints that the server has: it keeps so many. */
int repl_trail_list(struct repl_trail *t, const char *sandbox, json_t **ret, struct sg_error *e);
