/* What is said about a file: see ops.h for the wire form. Call these as the user. */
#pragma once

#include <sys/stat.h>

#include "inside/agent/path.h"
#include "lib/text/strbuf.h"
#include "wire/agent.h"

/* No entry is longer. */
#define ENTRY_MAX (3 * OPS_PATH_MAX + FILE_META_MAX + FILE_META_KEYS_MAX * 10 + 1024)

/* Describes `name` in dirfd without following it; dirfd itself if name is "". `path` is what the
 * entry says about its place. Appends to `out`. 0 or -errno. */
int entry_put(struct strbuf *out, int dirfd, const char *name, const char *path);
/* The same for an open file whose status is known. */
int entry_put_file(struct strbuf *out, int fd, const struct stat *st, const char *path);
/* Opens the path, which may be a link, and describes it. */
int entry_put_path(struct strbuf *out, const char *path);
