/* Whether bytes are UTF-8 as RFC 3629 has it: no overlong forms, no surrogates, nothing beyond
 * U+10FFFF. Piece by piece: a character may be cut anywhere. */
#pragma once

#include "lib/base/base.h"

/* Zeroed: at the begin of a text. */
struct utf8_state {
    uint8_t need;   /* bytes that the character still has */
    uint8_t lo, hi; /* between which the next of them must be */
};

/* False: it is none, and no more of it will be. */
bool utf8_feed(struct utf8_state *s, const void *data, size_t len);
/* Whether a text may end here. */
static inline bool utf8_whole(const struct utf8_state *s)
{
    return s->need == 0;
}
/* All of it at once. */
bool utf8_valid(const void *data, size_t len);
