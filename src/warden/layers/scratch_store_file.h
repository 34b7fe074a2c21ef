/* Makes a file system of the scratch store's own (scratch_store.h): in a file, on a block device of it. */
#pragma once

#include "warden/host/program.h"
#include "warden/layers/scratch_store.h"

#define SCRATCH_STORE_LEAST (256ull << 20) /* bytes, of which a file system is of use */
#define SCRATCH_FILE        PROGRAM_MORE_PATH

struct scratch_file_system {
    const char *name;
    const char *mkfs, *package; /* the program that makes it, and whose it is */
    const char
        *arguments[PROGRAM_ARGUMENTS + 1]; /* of that, up to a NULL; the file is SCRATCH_FILE */
    const char *options[8];                /* of the mount: up to a NULL */
};

/* How many bytes the scratch store gets. -ENOSPC. */
int scratch_file_size(const struct scratch_store_spec *spec, uint64_t *ret, struct sg_error *e);
/* Sets mount, top and bytes of the store. -EOPNOTSUPP: the kernel has no such file system. */
int scratch_file_open(struct scratch_store *s, const struct scratch_store_spec *spec,
                      const struct scratch_file_system *of, struct sg_error *e);
