/* Where the next page of contexts begins, as text that clients hand back and do not read.
 *
 * It carries no mac, unlike a token of front/e2b/page.h: all servers on one database must take it,
 * and they share no key. It needs none: it is a place in the list of whoever asks, and names a
 * moment and an id that give no access to anything. */
#pragma once

#include "front/store/contexts.h"

#define CURSOR_LEN (16 + ID_LEN)

struct cursor {
    int64_t at_ms;
    char id[ID_LEN + 1];
};

/* After this row. */
void cursor_make(const struct ctx_row *row, char ret[CURSOR_LEN + 1]);
/* -EINVAL: it is none of ours. */
int cursor_read(const char *text, struct cursor *ret);
