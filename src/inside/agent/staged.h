/* A file that appears whole or not at all: written beside its place under a name nobody knows, then
 * renamed there. Call these between confine_fs_begin and confine_fs_end, but for staged_write.
 *
 * Who watches the directory is to see one file created, or written to. So the names can be told
 * from others, and from the second kind a watch knows that what the rename brings was there. */
#pragma once

#include <limits.h>
#include <sys/types.h>

#include "inside/agent/agent.h"

#define STAGED_NAME_MAX 40

struct staged {
    int dirfd, fd; /* fd is -1 once it is over */
    char name[NAME_MAX + 1];
    char temp[STAGED_NAME_MAX];
};

/* An existing file must be writable for the user, and keeps its mode, not its owner. */
int staged_open(struct staged *s, const char *path, mode_t mode, bool make_parents);
int staged_write(struct staged *s, const void *data, size_t len);
/* *ret_fd is the file, now in its place. */
int staged_commit(struct staged *s, int *ret_fd);
/* Removes what was written. Does nothing after a commit, or on one that was never opened. */
void staged_abort(struct staged *s);

enum staged_kind { STAGED_NOT, STAGED_NEW, STAGED_REPLACES };
/* Whether this is such a name. */
enum staged_kind staged_kind_of(const char *name);
