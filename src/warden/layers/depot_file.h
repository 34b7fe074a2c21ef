/* Makes the file system of the depot (depot.h): a file, a btrfs in it, and a block device. */
#pragma once

#include "warden/layers/depot.h"

#define DEPOT_LEAST (256ull << 20) /* bytes, of which a btrfs is of use */

/* Makes a file with all its space, and a file system in it. *ret_bytes: its size. */
int depot_file_make(const struct depot_spec *spec, int *ret_file, uint64_t *ret_bytes,
                    struct sg_error *e);
/* Makes a block device of the file. It goes with its last user. */
int depot_file_attach(int file, int *ret_device, struct sg_error *e);
