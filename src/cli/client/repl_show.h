/* What a cell does, as a person sees it: output as it comes, the value of the cell as Out[n],
 * errors with the places in them marked, pictures. */
#pragma once

#include "cli/client/repl_event.h"
#include "cli/client/repl_filter.h"
#include "cli/client/repl_image.h"

struct repl_show {
    bool colour;
    bool colour_errors; /* standard error may be elsewhere */
    bool terminal;      /* standard output is one, and a person reads it */
    bool json;          /* the server's lines, nothing else */
    uint64_t count;     /* number of the last cell */
    bool failed;        /* the cell ended with an error */
    bool in_line;       /* the cursor is not at the beginning of a line */
    bool asked_sixel, has_sixel;
    struct repl_filter filter[2]; /* for standard output and error */
};

void repl_show_init(struct repl_show *s, bool terminal, bool colour, bool json);
/* A cell begins. */
void repl_show_begin(struct repl_show *s);
int repl_show_event(struct repl_show *s, const struct repl_event *event, struct sg_error *e);
/* What is to come next begins at the beginning of a line. */
void repl_show_line(struct repl_show *s);
