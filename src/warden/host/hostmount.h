/* A directory or file of the host, mounted into a sandbox.
 *
 * The source is opened first, and the check looks at the opened file: its real path must be below
 * one of the operator's roots. So neither a link nor a race leads elsewhere.
 *
 * Ids: the owner of the source is mapped to one user inside, `user` or root. The code may read what
 * the owner may read, and what the code writes belongs to the owner. No other id exists on the
 * mount; in particular no file of the host's root can be made or changed, whatever happens inside.
 * A source that root owns can be mounted read-only; files that everybody may read can be read
 * there. */
#pragma once

#include "lib/base/err.h"

struct hostmount_spec {
    const char *source;
    bool writable;
    const char *const *roots; /* NULL-terminated, absolute */
    uint32_t first_id;        /* the sandbox's first id on the host */
    uint32_t owner_inside;    /* the id that stands for the source's owner */
};

int hostmount_open(const struct hostmount_spec *spec, int *ret_fd, struct sg_error *e);
