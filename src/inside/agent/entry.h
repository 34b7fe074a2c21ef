/* Entries: what the host is told about a file. wire/agent.h has the wire form. Call these with the
 * permissions of the user. */
#pragma once

#include <sys/stat.h>

#include "inside/agent/path.h"
#include "lib/text/strbuf.h"
#include "wire/agent.h"

/* The largest size of an entry. */
#define ENTRY_MAX (3 * OPS_PATH_MAX + FILE_META_MAX + FILE_META_KEYS_MAX * 10 + 1024)

/* Describes `name` in dirfd without following a link, or dirfd itself if name is "". The entry
 * gives `path` as the file's path. Appends to `out`. 0 or -errno. */
int entry_put(struct strbuf *out, int dirfd, const char *name, const char *path);
/* The same for an open file whose status is known. */
int entry_put_file(struct strbuf *out, int fd, const struct stat *st, const char *path);
/* Opens the path, which may be a link, and describes the file. */
int entry_put_path(struct strbuf *out, const char *path);
/* The same, for whoever does not have the permissions of the user yet. */
int entry_put_as(struct strbuf *out, const struct agent_user *as, const char *path);
