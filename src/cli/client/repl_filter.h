/* What code in a sandbox may do to the terminal of the person who looks at its output: write, use
 * colours and move the cursor, as progress bars do. Sequences that set titles or the clipboard,
 * load fonts, draw or ask the terminal something, whose answer would be typed into our input, are
 * left out. Bytes come in pieces cut anywhere; text is valid UTF-8, since it comes from JSON. */
#pragma once

#include "lib/text/strbuf.h"

enum repl_filter_state {
    FILTER_TEXT,
    FILTER_ESCAPE,     /* after ESC */
    FILTER_CSI,        /* after ESC [ */
    FILTER_STRING,     /* in ESC ] and its like, to BEL or ESC \ */
    FILTER_STRING_END, /* ESC came there */
    FILTER_C1,         /* after 0xc2, which begins the control characters U+0080 to U+009F */
    FILTER_STRING_C1,  /* the same in a string */
};

struct repl_filter {
    enum repl_filter_state state;
    char csi[64]; /* the sequence so far */
    size_t n_csi; /* more than fits: it is left out */
};

/* Appends what may be shown. */
void repl_filter(struct repl_filter *f, struct strbuf *out, const char *text, size_t len);
