/* The place where the next page of contexts begins, as text that clients hand back and do not read.
 *
 * Unlike a token of front/e2b/page.h, a cursor carries no MAC: all servers on one database must
 * take it, and they share no key. It needs none: a cursor is only a place in the list of the tenant
 * who asks, and names a time and an id that give no access to anything. */
#pragma once

#include "front/store/contexts.h"

#define CURSOR_LEN (16 + ID_LEN)

struct cursor {
    int64_t at_ms;
    char id[ID_LEN + 1];
};

/* The place after this row. */
void cursor_make(const struct ctx_row *row, char ret[CURSOR_LEN + 1]);
/* -EINVAL: the text is no cursor of ours. */
int cursor_read(const char *text, struct cursor *ret);
