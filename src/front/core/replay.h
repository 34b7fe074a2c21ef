/* Records the cells of kernels that cannot be copied (Node.js has threads from its start; bash and
 * R are other processes), so that a branch can run them again, in order, and report where the
 * output differs.
 *
 * For each cell the record has its code and variables, a SHA-256 of its output, and the beginning
 * of the output for people to read. The digest covers the output by stream and the packets of
 * results; it leaves out execution counts, times, and how the output was split into pieces.
 * Python's cells are not recorded: its kernels are copied.
 *
 * The record lives in this front's memory, at most REPLAY_CELLS and REPLAY_BYTES for a sandbox. If
 * a context's cells are not all there, from its kernel's first cell on, the context has no record,
 * and `unrecorded` says why. A checkpoint has the cells that were recorded when it was taken; a
 * recorded cell never changes, so it is shared. */
#pragma once

#include <jansson.h>

#include "front/core/sandbox.h"
#include "front/core/checkpoint.h"
#include "front/core/output_filter.h"

#define REPLAY_CELLS     200
#define REPLAY_BYTES     (256u * 1024) /* of code and variables */
#define REPLAY_SHOWN_MAX 200           /* bytes of a cell's output that are kept for people */
#define REPLAY_MS        600000        /* for all cells of a branch together */

struct replay;
void replay_free(struct replay *r);

/* ---- recording ------------------------------------------------------------------------------- */

/* One cell, from its code to its end. */
struct cell_history;
/* language and context are as in OP_KERNEL_EXECUTE. Returns NULL if the cell is not recorded; every
 * function accepts NULL. */
struct cell_history *cell_history_new(struct sandbox *b, const char *context, const char *language,
                                      const char *code, size_t len, json_t *envs);
/* The cell runs, as its kernel's cell `number`. From now on it is in the sandbox's record. */
void cell_history_running(struct cell_history *t, uint32_t number);
/* Adds a frame of the cell's output or results. */
void cell_history_add(struct cell_history *t, uint8_t sub, const void *p, size_t len);
/* The cell is over. The text that people will see passes the filter o. */
void cell_history_end(struct cell_history *t, struct output_filter *o);
/* The cell was cut off, by its time limit or because its client went away: its context loses its
 * record. */
void cell_history_free(struct cell_history *t);

/* Notes the language of a context. */
void replay_learn(struct sandbox *b, const char *context, const char *language);
/* Forgets the record of a context that has a new kernel or is gone. */
void replay_forget(struct sandbox *b, const char *context);
void replay_forget_all(struct sandbox *b);

/* ---- using it -------------------------------------------------------------------------------- */

/* Returns the recorded cells of those contexts (in the form of a checkpoint's) that are not
 * carried: [{"context": id, "cells": [...]}], owned by the caller; NULL if there are none. Contexts
 * without a complete record get "unrecorded". */
json_t *replay_of(struct sandbox *b, json_t *contexts);
/* Runs the cells of c in a sandbox that was made from c, and writes the outcome into the report
 * (from report_kernels). done is called exactly once. */
void replay_run(struct sandbox *b, struct checkpoint *c, json_t *report,
                void (*done)(void *arg, int r, const struct sg_error *e), void *arg);
