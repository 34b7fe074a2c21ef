/* The keyboard: a line editor (libedit) with history, which reads cells of several lines.
 *
 * psql and the tools of LLVM use libedit where they may not use readline; it has a BSD licence.
 * libedit edits single lines. This file makes cells of them: it asks for another line while a cell
 * is not whole, indents that line, takes a paste as one piece, and remembers whole cells in the
 * history. */
#pragma once

#include <histedit.h>

#include "lib/text/strbuf.h"
#include "cli/client/repl_watch.h"

#define REPL_CELL_MAX (4u * 1024 * 1024)

enum repl_input_end {
    REPL_INPUT_CELL,    /* a cell was read */
    REPL_INPUT_CLEARED, /* ^C: the cell was thrown away */
    REPL_INPUT_OVER,    /* ^D, the terminal hung up, or a signal asks us to end */
};

struct repl_input {
    struct repl_watch *watch;
    /* Called about once a second and at each key (`typed`). True if it has printed something. */
    bool (*idle)(void *arg, bool typed);
    void *arg;
    bool colour;

    EditLine *el;
    History *history;
    char *history_path; /* NULL: the history is not kept */
    char prompt[64];
    size_t indent;          /* blanks that we still type for the user */
    unsigned char bytes[8]; /* the beginning of a character */
    size_t n_bytes;
    bool interrupted, over;
};

int repl_input_open(struct repl_input *in, struct sg_error *e);
void repl_input_close(struct repl_input *in);
/* Switches to the history of this language. */
void repl_input_language(struct repl_input *in, const char *language);
/* Reads cell number `count`; `code` must be empty. */
enum repl_input_end repl_input_cell(struct repl_input *in, const char *language, uint64_t count,
                                    struct strbuf *code);
