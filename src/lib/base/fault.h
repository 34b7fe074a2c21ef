/* Errors that are the server's own fault, whatever their errno: SG_ERR_INTERNAL. */
#pragma once

#include "lib/base/err.h"

/* As err_code does, appends the reason to the message. Returns r; 0 is no error. */
int err_internal(struct sg_error *e, int r, const char *fmt, ...) PRINTF(3, 4);
