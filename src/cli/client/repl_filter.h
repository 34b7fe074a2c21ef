/* Filters a sandbox's output before it reaches the user's terminal. Code may write, use colours and
 * move the cursor, as progress bars do. Left out are sequences that set titles or the clipboard,
 * load fonts, draw, or ask the terminal something, because its answer would be typed into our
 * input. Bytes come in pieces that may be cut anywhere; the text is valid UTF-8, since it comes
 * from JSON. */
#pragma once

#include "lib/text/strbuf.h"

enum repl_filter_state {
    FILTER_TEXT,
    FILTER_ESCAPE,     /* after ESC */
    FILTER_CSI,        /* after ESC [ */
    FILTER_STRING,     /* in ESC ] and the like, up to BEL or ESC \ */
    FILTER_STRING_END, /* after an ESC in a string */
    FILTER_C1,         /* after 0xc2, which begins the control characters U+0080 to U+009F */
    FILTER_STRING_C1,  /* after 0xc2 in a string */
};

struct repl_filter {
    enum repl_filter_state state;
    char csi[64]; /* the sequence so far */
    size_t n_csi; /* its length; a sequence that does not fit is left out */
};

/* Appends to `out` the part of the text that may be shown. */
void repl_filter(struct repl_filter *f, struct strbuf *out, const char *text, size_t len);
