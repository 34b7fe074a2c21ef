/* Names, and finding the entry for one: exactly that name, or `*.x` for any name below x.
 *
 * The entries are in one map, under a hash of their labels. The hash is built from the last label to
 * the first, each label with the hash of those behind it, so one walk over a name gives the hashes
 * of all its endings. */
#pragma once

#include "lib/base/base.h"

#define POLICY_NAME_MAX 253

/* Lower case, one trailing dot removed, letters, digits, '-' and '_', labels of 1 to 63, at most
 * POLICY_NAME_MAX; no address. ret has POLICY_NAME_MAX + 1 bytes. -EINVAL. */
int name_normalise(const char *name, size_t len, char *ret);

/* Normalises a name, or `*.` and a name, to the form of name_normalise; text and result have at
 * most POLICY_NAME_MAX bytes. -EINVAL. */
int name_pattern(const char *text, char ret[POLICY_NAME_MAX + 1]);
/* Whether a pattern matches a name, both in normal form. Slow and simple, for a few patterns. */
bool name_matches(const char *pattern, const char *name);

struct names;
struct names *names_new(void);
void names_free(struct names *n); /* NULL is allowed */
/* Adds a pattern in normal form. If the same pattern is added again, its first value stays. value
 * is not NULL. */
void names_add(struct names *n, const char *pattern, const void *value);
/* The value of the most specific pattern for a name in normal form; NULL: none matches. */
const void *names_find(const struct names *n, const char *name);
bool names_empty(const struct names *n);
