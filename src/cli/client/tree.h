/* Draws lines in front of the rows of a table, which make a tree of them: each row stands below the
 * row that it comes from.
 *
 * A server may answer anything: rows whose parent is missing, or rows that are their own ancestors.
 * Each row is shown once; a row that no root leads to is shown as a root. */
#pragma once

#include <jansson.h>

#include "lib/base/err.h"

enum tree_flag {
    TREE_UTF8 = 1u << 0, /* draw with characters beyond ASCII */
    /* An only child stands below its parent and not to its right, so that a tree which is mostly a
     * chain stays narrow. Several roots are drawn as branches, because that is what they are. */
    TREE_STRAIGHT = 1u << 1,
};

/* TREE_UTF8 if standard output is a terminal and the locale's variables say UTF-8, else 0. */
unsigned tree_flags_of_terminal(void);
/* An arrow, " -> ", in the flags' characters. */
const char *tree_arrow(unsigned flags);

/* Called for each row, from top to bottom. `lines` stands before the row's name. */
typedef void tree_row_fn(void *arg, const json_t *row, const char *lines);

/* Walks the tree. The rows are objects; id and parent are keys in them. -E2BIG: too many rows. */
int tree_walk(const json_t *rows, const char *id, const char *parent, unsigned flags,
              tree_row_fn *fn, void *arg, struct sg_error *e);
