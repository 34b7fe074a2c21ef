/* The keyboard: a line editor (libedit) with history, which reads cells of several lines.
 *
 * libedit is what psql and the tools of LLVM use where they may not use readline; its licence is
 * BSD's. It edits lines; what makes cells of them is here: when another line is asked for, what it
 * is indented by, that a paste is one piece, and that history remembers whole cells. */
#pragma once

#include <histedit.h>

#include "lib/text/strbuf.h"
#include "cli/client/repl_watch.h"

#define REPL_CELL_MAX (4u * 1024 * 1024)

enum repl_input_end {
    REPL_INPUT_CELL,    /* there is one */
    REPL_INPUT_CLEARED, /* ^C: nothing */
    REPL_INPUT_OVER,    /* ^D, hung up, or a signal wants us to end */
};

struct repl_input {
    struct repl_watch *watch;
    /* Called about once a second, `typed`: because of a key. True: something was printed. */
    bool (*idle)(void *arg, bool typed);
    void *arg;
    bool colour;

    EditLine *el;
    History *history;
    char *history_path; /* NULL: it is not kept */
    char prompt[64];
    size_t indent;          /* blanks that are still to be typed for the user */
    unsigned char bytes[8]; /* of a character that is not whole */
    size_t n_bytes;
    bool interrupted, over;
};

int repl_input_open(struct repl_input *in, struct sg_error *e);
void repl_input_close(struct repl_input *in);
/* Takes the history of this language from now on. */
void repl_input_language(struct repl_input *in, const char *language);
/* Reads cell number `count`; `code` is empty before. */
enum repl_input_end repl_input_cell(struct repl_input *in, const char *language, uint64_t count,
                                    struct strbuf *code);
