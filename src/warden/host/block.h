/* Block devices of files. */
#pragma once

#include "lib/base/err.h"

/* Makes a block device of the file: a loop device, which goes with its last user. One that is readonly
 * needs a file that is open for reading. */
int block_device_make(int file, bool readonly, int *ret, struct sg_error *e);
