/* Turns text of unknown bytes into the inside of a JSON string, in ASCII alone, piece by piece.
 *
 * Why ASCII: E2B's JavaScript client decodes each piece that the network brings by itself, so a
 * character that is split between two pieces would be lost. Invalid UTF-8 becomes U+FFFD, one for
 * each longest start of a character, as browsers and Python do it. The first bytes of a character
 * whose last bytes come in the next piece of the text are kept in `struct escape`. */
#pragma once

#include "lib/base/base.h"

/* A character of which only the first bytes have come. */
struct escape {
    uint32_t code;
    uint8_t need;   /* missing bytes; 0: no character is unfinished */
    uint8_t lo, hi; /* range of the next byte */
};

/* Bytes that the escaped form of n bytes may take, and those that escape_end may write. */
#define ESCAPE_ROOM(n) (6 * (n) + 6)
#define ESCAPE_END     6

/* Both return the number of bytes written. */
size_t escape_text(struct escape *e, char *out, const void *text, size_t len);
size_t escape_end(struct escape *e, char *out); /* an unfinished character is invalid */
/* Writes one UTF-16 unit as \uXXXX. Returns where it ends. */
char *escape_unit(char *out, uint32_t unit);
