/* Verbs that another program does. It is looked for beside ours, so that a build, an installation
 * and a copy of either work without being told where they are: BIN/../libexec/sandglass/NAME. */
#pragma once

#include "lib/base/base.h"

/* Becomes that program. argv is the verb and its arguments, which it gets after its own name. Comes
 * back only to say, as an exit status, that there is no such program. */
int delegate(const char *name, char **argv);
/* The program's path, in a buffer of PATH_MAX bytes. 0 or -errno. */
int delegate_path(const char *name, char *buf, size_t cap);
