/* "Did you mean": the candidate nearest to a mistyped word. */
#pragma once

#include <stddef.h>

/* Returns the element of candidates (n of them, NULLs are passed over) that needs the fewest edits
 * to become `word`, or NULL if none is near enough to be meant. */
const char *suggest_nearest(const char *word, const char *const *candidates, size_t n);
