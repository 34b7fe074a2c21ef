/* JSON in a memfd: how notes and documents travel between our processes. They may have secrets in
 * them, so no copy of the text is left in memory. */
#pragma once

#include <jansson.h>

/* Writes a tree, which it releases, into a new memfd that nobody can change. Returns the descriptor;
 * -E2BIG: the text is longer than `max`; -ENOMEM. */
int memfd_of_json(const char *name, json_t *tree, size_t max);
/* Reads a tree of at most `max` bytes. *ret is NULL if the text is no JSON. 0 or -errno. */
int memfd_read_json(int fd, size_t max, json_t **ret);
