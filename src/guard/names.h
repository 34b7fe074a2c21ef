/* Names, and finding the entry for one: exactly that name, or `*.x` for any below x.
 *
 * One table with open addressing. An entry is found by the hash of its labels, which is made from
 * the last label to the first, each with the hash of those behind it: one walk over a name gives
 * the hashes of all its endings. The hash has a key of this process (SipHash-1-3), because who
 * writes the entries is not trusted to leave them apart. */
#pragma once

#include "guard/policy.h"

/* A name or `*.` and a name, in the form of name_normalise; at most POLICY_NAME_MAX long, as the
 * text and as the result. -EINVAL. */
int name_pattern(const char *text, char ret[POLICY_NAME_MAX + 1]);
/* Slow and simple, for a few patterns. Both in normal form. */
bool name_matches(const char *pattern, const char *name);

struct names;
struct names *names_new(void);
void names_free(struct names *n); /* NULL is allowed */
/* A pattern in normal form. Of several values for the same one the first counts. value is not
 * NULL. */
void names_add(struct names *n, const char *pattern, const void *value);
/* The value of the most special pattern for a name in normal form; NULL. */
const void *names_find(const struct names *n, const char *name);
bool names_empty(const struct names *n);
