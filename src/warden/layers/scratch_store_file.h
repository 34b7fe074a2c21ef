/* Makes the file system of the scratch store (scratch_store.h): a file, and a btrfs in it. */
#pragma once

#include "warden/layers/scratch_store.h"

#define SCRATCH_STORE_LEAST (256ull << 20) /* bytes, of which a btrfs is of use */

/* Makes a file with all its space, and a file system in it. *ret_bytes: its size. */
int scratch_store_file_make(const struct scratch_store_spec *spec, int *ret_file,
                            uint64_t *ret_bytes, struct sg_error *e);
