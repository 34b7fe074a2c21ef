/* Lines in front of the rows of a table that make a tree of them: each below the one that it comes
 * from.
 *
 * What a server answers may be anything: rows whose parent is missing, or that are their own
 * ancestors. Each is shown once; what cannot be reached from a root is one. */
#pragma once

#include <jansson.h>

#include "lib/base/err.h"

enum tree_flag {
    TREE_UTF8 = 1u << 0, /* lines that are more than ASCII */
    /* An only child stands below its parent and not to the right of it, so that what is a chain
     * for the most part stays narrow. Several roots are drawn as what they are: branches. */
    TREE_STRAIGHT = 1u << 1,
};

/* TREE_UTF8 if standard output is a terminal that shows it, as the user's programs take it, or 0.
 */
unsigned tree_flags_of_terminal(void);
/* " -> " */
const char *tree_arrow(unsigned flags);

/* Called for each row, from top to bottom; `lines` are what stands before its name. */
typedef void tree_row_fn(void *arg, const json_t *row, const char *lines);

/* The rows are objects; id and parent are keys of theirs. -E2BIG: too many. */
int tree_walk(const json_t *rows, const char *id, const char *parent, unsigned flags,
              tree_row_fn *fn, void *arg, struct sg_error *e);
