/* Shows a person what a cell does: output as it comes, the cell's value as Out[n], errors with
 * their places marked, pictures. */
#pragma once

#include "cli/client/repl_event.h"
#include "cli/client/repl_filter.h"
#include "cli/client/repl_image.h"

struct repl_show {
    bool colour;
    bool colour_errors; /* apart from colour: standard error may go elsewhere */
    bool terminal;      /* standard output is a terminal that a person reads */
    bool json;          /* print only the server's lines */
    uint64_t count;     /* number of the last cell */
    bool failed;        /* the cell ended with an error */
    bool in_line;       /* the cursor is not at the beginning of a line */
    bool asked_sixel, has_sixel;
    struct repl_filter filter[2]; /* one each for standard output and error */
};

void repl_show_init(struct repl_show *s, bool terminal, bool colour, bool json);
/* Call this before each cell. */
void repl_show_begin(struct repl_show *s);
int repl_show_event(struct repl_show *s, const struct repl_event *event, struct sg_error *e);
/* Ends the current line, so that the next output begins at the beginning of a line. */
void repl_show_line(struct repl_show *s);
