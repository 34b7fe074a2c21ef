/* Whether bytes are UTF-8 as RFC 3629 has it: no overlong forms, no surrogates, nothing beyond
 * U+10FFFF. The text may come in pieces, cut anywhere, even inside a character. */
#pragma once

#include "lib/base/base.h"

/* Zeroed: at the beginning of a text. */
struct utf8_state {
    uint8_t need;   /* bytes of the character that have not come yet */
    uint8_t lo, hi; /* the next byte must be between these */
};

/* False: the text is no UTF-8, whatever follows. */
bool utf8_feed(struct utf8_state *s, const void *data, size_t len);
/* Whether a text may end here. */
static inline bool utf8_whole(const struct utf8_state *s)
{
    return s->need == 0;
}
/* Checks a whole text at once. */
bool utf8_valid(const void *data, size_t len);
