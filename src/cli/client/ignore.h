/* The rules of a .dockerignore: which paths of a context do not count.
 *
 * A line is a pattern with *, ?, [a-z], \ and **, relative to the context's root. It also means all
 * that is below what it matches. One with ! in front takes paths back in. The last one that matches
 * decides. */
#pragma once

#include "lib/base/err.h"

struct ignore_rule {
    char *pattern;
    bool keeps; /* it began with ! */
};

struct ignore {
    struct ignore_rule *rules;
    size_t n, cap;
    bool has_exceptions;
};

void ignore_read(const char *text, struct ignore *ret);
void ignore_done(struct ignore *g);
/* path: without a slash at its begin or end, such as "src/main.c". */
bool ignore_has(const struct ignore *g, const char *path);
/* Whether a pattern with ** matches all of the path. */
bool ignore_match(const char *pattern, const char *path);
