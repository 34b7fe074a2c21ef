/* Host names as policies and secrets write them: a name, or a pattern "*.NAME", which stands for
 * every name below NAME but not for NAME itself. */
#pragma once

#include <stdbool.h>

#define HOSTNAME_MAX 253

/* A name is made of labels of letters, digits and inner dashes. Underscores are allowed, since some
 * real names have them. Addresses pass this check too. */
bool hostname_valid(const char *s);
bool hostname_pattern_valid(const char *s);
/* Whether the pattern covers every host that `name` stands for. `name` may be a pattern itself. */
bool hostname_covers(const char *pattern, const char *name);
