/* The files worker: see wire/files.h. */
#pragma once

#include "lib/base/err.h"
#include "wire/files.h"

int files_main(void);

/* Gives up all that the worker does not need. root: the only tree that it sees as files of a path;
 * trusted: it has to read attributes that only CAP_SYS_ADMIN can. */
int files_confine(int root, bool trusted, unsigned deadline_s, struct sg_error *e);

/* Saves the layers of a stack one after the other: each step but the last writes a temporary
 * directory, which is the next one's `below`. fds: the trees. */
int files_save(const struct files_request *q, const int *fds, uint64_t *ret_bytes,
               struct sg_error *e);
