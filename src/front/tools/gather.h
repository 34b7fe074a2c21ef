/* Gathers the lines of a cell (front/interpreter/lines.h) for an answer: output as text, results
 * and error as JSON.
 *
 * Lines come in pieces of any length. Each is read when it is whole, and passed on to on_line.
 * Everything is bounded: output is cut; a result for which there is no room, here or in the
 * server's budget (budget.h), is left out, and stderr says so. */
#pragma once

#include "front/tools/tools.h"

struct gather {
    void *owner;
    /* False: send no more lines, if that is possible. */
    bool (*on_line)(void *owner, const char *line, size_t len);

    struct strbuf out, err;
    bool out_cut, err_cut;
    struct strbuf results;    /* objects, with commas between them */
    size_t main_at, main_len; /* the cell's value in `results`; length 0: it has none */
    char *error;              /* JSON, or NULL */

    struct strbuf line;   /* this and the rest belong to gather.c */
    const char *skipping; /* why the rest of the line is dropped; NULL: it is kept */
    size_t taken;         /* the part of the budget that it holds */
};

void gather_init(struct gather *g);
void gather_done(struct gather *g);
/* False: on_line returned false for one of the lines. */
bool gather_bytes(struct gather *g, const char *p, size_t len);
/* Sets an error that the cell itself could not report any more. */
void gather_error(struct gather *g, const char *name, const char *value);
