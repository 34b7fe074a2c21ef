/* Text of unknown bytes as the inside of a JSON string, in ASCII alone, piece by piece.
 *
 * ASCII, because E2B's JavaScript client decodes each piece that the network brings by itself: a
 * character that is split between two of them would be lost. Invalid UTF-8 becomes U+FFFD, one for
 * each longest start of a character, as browsers and Python do it. A character whose bytes come in
 * different pieces of the text is kept in `struct escape` meanwhile. */
#pragma once

#include "lib/base/base.h"

/* The start of a character whose end has not come. */
struct escape {
    uint32_t code;
    uint8_t need;   /* bytes that are missing; 0: nothing is unfinished */
    uint8_t lo, hi; /* what the next of them may be */
};

/* Room that a text of n bytes may take, and the end of it. */
#define ESCAPE_ROOM(n) (6 * (n) + 6)
#define ESCAPE_END     6

/* Both return how many bytes they have written. */
size_t escape_text(struct escape *e, char *out, const void *text, size_t len);
size_t escape_end(struct escape *e, char *out); /* of the text: what is unfinished is invalid */
/* One UTF-16 unit: \uXXXX. */
char *escape_unit(char *out, uint32_t unit);
