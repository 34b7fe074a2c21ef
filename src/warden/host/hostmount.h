/* A host directory or file inside a sandbox.
 *
 * The source is opened first and judged by what was opened: its real path must be below one of the
 * operator's roots, so neither a link nor a race leads elsewhere.
 *
 * Ids. Whoever owns the source is one user inside, `user` or root: what that person may read, the
 * code may read, and what the code writes belongs to them. Nobody else's id exists on the mount; in
 * particular no file of the host's root can be made or changed, whatever happens inside. A source
 * that root owns can be mounted read-only; what everybody may read can be read there. */
#pragma once

#include "lib/base/err.h"

struct hostmount_spec {
    const char *source;
    bool writable;
    const char *const *roots; /* NULL-terminated, absolute */
    uint32_t first_id;        /* its first id on the host */
    uint32_t owner_inside;    /* the id that stands for the source's owner */
};

int hostmount_open(const struct hostmount_spec *spec, int *ret_fd, struct sg_error *e);
