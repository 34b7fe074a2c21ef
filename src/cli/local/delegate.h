/* Some verbs are done by another program. We look for that program relative to our own, so that a
 * build, an installation and a copy of either work without settings:
 * BIN/../libexec/sandglass/NAME. */
#pragma once

#include "lib/base/base.h"

/* Replaces this process by that program. argv is the verb and its arguments; the program gets them
 * after its own name. Returns only if there is no such program, with an exit status. */
int delegate(const char *name, char **argv);
/* Writes the program's path into a buffer of PATH_MAX bytes. 0 or -errno. */
int delegate_path(const char *name, char *buf, size_t cap);
