/* See boot_id.c. */
#pragma once

#include "lib/base/err.h"

/* Gives the sandbox a boot_id of its own. /new and /new/proc must be in place. */
int boot_id_renew(struct sg_error *e);
