/* See boot_id.c. */
#pragma once

#include "lib/base/err.h"

/* Gives the sandbox a boot_id of its own. /new and /new/proc must be in place. */
int boot_id_renew(struct sg_error *e);

#define UUID_LEN 36
/* A random UUID: version 4, variant 1, as the kernel's boot_id is. 0, or -EIO if the kernel has no
 * generator. */
int uuid_random(char ret[UUID_LEN + 1]);
