/* The lines of a cell (front/interpreter/lines.h), gathered into what an answer says: output as
 * text, results and error as JSON.
 *
 * Lines come in pieces of any length. Each is looked at when it is whole, and told on. Everything
 * is bounded: output is cut, a result for which there is no room, here or on the server
 * (budget.h), is left out, and the output for errors says so. */
#pragma once

#include "front/tools/tools.h"

struct gather {
    void *owner;
    /* False: no more, if that is possible. */
    bool (*on_line)(void *owner, const char *line, size_t len);

    struct strbuf out, err;
    bool out_cut, err_cut;
    struct strbuf results;    /* objects, with commas between them */
    size_t main_at, main_len; /* where the value of the cell is in it; length 0: there is none */
    char *error;              /* JSON, or NULL */

    struct strbuf line;   /* this and below: gather.c's */
    const char *skipping; /* why the rest of the line is not kept; NULL: it is */
    size_t taken;         /* of the budget */
};

void gather_init(struct gather *g);
void gather_done(struct gather *g);
/* False: on_line said so, for one of the lines. */
bool gather_bytes(struct gather *g, const char *p, size_t len);
/* An error that the cell could not tell any more. */
void gather_error(struct gather *g, const char *name, const char *value);
