/* What is said about a file: see ops.h for the wire form. */
#pragma once

#include <sys/stat.h>

#include "base/strbuf.h"

/* Describes `name` in dirfd without following it; dirfd itself if name is "". `path` is what the
 * entry says about its place. Appends to `out`. Call as the user. 0 or -errno. */
int entry_put(struct strbuf *out, int dirfd, const char *name, const char *path);
