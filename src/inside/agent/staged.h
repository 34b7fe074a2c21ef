/* A file that is written: so that it appears whole or not at all, beside its place under a random name, then
 * renamed; or in place, as programs do. Call these between confine_fs_begin and confine_fs_end.
 *
 * A client that watches the directory should see one file created, or one file written to, and
 * nothing of the detour. So the random names can be told from others, and there are two kinds: the
 * second kind tells the watch that the rename replaces a file. */
#pragma once

#include <limits.h>
#include <sys/types.h>

#include "inside/agent/agent.h"

#define STAGED_NAME_MAX 40

struct staged {
    int dirfd, fd; /* fd is -1 after commit or abort */
    bool in_place; /* it is the file itself */
    bool made;     /* in place, and it was not there before */
    char name[NAME_MAX + 1];
    char temp[STAGED_NAME_MAX];
};

/* If the file exists, the user must be able to write to it. The new file keeps its mode, but not
 * its owner. */
int staged_open(struct staged *s, const char *path, mode_t mode, bool make_parents);
/* Opens and empties the file itself, and gives it to `as`, with whose permissions the caller works. If it
 * was there before, what is written stays, whether or not it is committed. */
int staged_open_in_place(struct staged *s, const char *path, mode_t mode, bool make_parents,
                         const struct agent_user *as);
/* Renames the file into its place. *ret_fd is the file. */
int staged_commit(struct staged *s, int *ret_fd);
/* Removes the unfinished file, if it was made. Does nothing after a commit, or if it could not be opened. */
void staged_abort(struct staged *s);
/* The same, with the permissions of `as`. */
void staged_abort_as(struct staged *s, const struct agent_user *as);

enum staged_kind { STAGED_NOT, STAGED_NEW, STAGED_REPLACES };
/* Whether this is the name of a staged file, and of which kind. */
enum staged_kind staged_kind_of(const char *name);
