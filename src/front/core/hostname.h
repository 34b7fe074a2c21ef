/* Names of hosts as policies and secrets have them: a name, or "*." and a name, which stands for
 * every name below that one and not for it itself. */
#pragma once

#include <stdbool.h>

#define HOSTNAME_MAX 253

/* Labels of letters, digits and inner dashes; an underscore is seen in the wild. Addresses pass
 * too. */
bool hostname_valid(const char *s);
bool hostname_pattern_valid(const char *s);
/* Whether all that `name` stands for, which may be a pattern as well, is meant by the pattern. */
bool hostname_covers(const char *pattern, const char *name);
