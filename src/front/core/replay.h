/* Cells of kernels that cannot be copied (Node.js has threads from its start, bash and R are other
 * processes): recorded while they run, so that a branch can run them again in order and say where
 * it came out differently.
 *
 * Of each cell: its code and variables, a SHA-256 of what it said, and the first of that for
 * people. What it said is its output, by stream, and the packets of its results: no execution
 * counts, no times, and not in which pieces it came. Of Python nothing is recorded: its kernels are
 * copies.
 *
 * The record is this front's: in memory, at most REPLAY_CELLS and REPLAY_BYTES of a sandbox. A
 * context of which not all is there, from its kernel's first cell on, has no record at all, and
 * `unrecorded` says why. A checkpoint has the cells that there were: they do not change, and are
 * shared. */
#pragma once

#include <jansson.h>

#include "front/core/sandbox.h"
#include "front/core/checkpoint.h"
#include "front/core/output_filter.h"

#define REPLAY_CELLS     200
#define REPLAY_BYTES     (256u * 1024) /* of code and variables */
#define REPLAY_SHOWN_MAX 200           /* bytes of what a cell said */
#define REPLAY_MS        600000        /* for all cells of a branch */

struct replay;
void replay_free(struct replay *r);

/* ---- recording ------------------------------------------------------------------------------- */

/* One cell, from its code to its end. */
struct cell_history;
/* language and context as in OP_KERNEL_EXECUTE. NULL: it is not recorded; every function takes
 * that. */
struct cell_history *cell_history_new(struct sandbox *b, const char *context, const char *language,
                                      const char *code, size_t len, json_t *envs);
/* It runs, as that one of its kernel. The sandbox has it from now on. */
void cell_history_running(struct cell_history *t, uint32_t number);
/* A frame of its output or of its results. */
void cell_history_add(struct cell_history *t, uint8_t sub, const void *p, size_t len);
/* It is over. What people will see of it goes through o. */
void cell_history_end(struct cell_history *t, struct output_filter *o);
/* It was cut off, by its time limit or because its client went away: its context has no record. */
void cell_history_free(struct cell_history *t);

/* A context has that language. */
void replay_learn(struct sandbox *b, const char *context, const char *language);
/* A context has a new kernel, or is gone. */
void replay_forget(struct sandbox *b, const char *context);
void replay_forget_all(struct sandbox *b);

/* ---- using it -------------------------------------------------------------------------------- */

/* The cells of contexts (as a checkpoint has them) that are not carried: [{"context": id, "cells":
 * [...]}], the caller's; contexts without a whole record get "unrecorded". NULL: there are none. */
json_t *replay_of(struct sandbox *b, json_t *contexts);
/* Runs them in a sandbox made from c, and says in the report (as report_kernels makes it) what came
 * of it. Called back exactly once. */
void replay_run(struct sandbox *b, struct checkpoint *c, json_t *report,
                void (*done)(void *arg, int r, const struct sg_error *e), void *arg);
