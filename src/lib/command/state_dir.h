/* Where the state directory of a server on this machine is. */
#pragma once

#include "lib/base/err.h"

#define STATE_DIR_MAX 512

/* Where `sandglass serve` would look: the flag (NULL: none), the environment, the configuration
 * file. */
int state_dir_find(const char *flag, char ret[STATE_DIR_MAX], struct sg_error *e);
