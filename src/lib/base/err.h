/* Filling the one error type of the project, struct sg_error (sandglass.h). */
#pragma once

#include <sandglass.h>

#include "lib/base/base.h"

/* Each returns `code` (a negative errno), so that `return err_set(...)` reads well. e may be NULL.
 */
int err_set(struct sg_error *e, enum sg_error_kind kind, int code, const char *fmt, ...)
    PRINTF(4, 5);
/* Like err_set, with ": strerror(errno)" appended and kind and code derived from errno. */
int err_errno(struct sg_error *e, const char *fmt, ...) PRINTF(2, 3);
/* Prefixes context: "<context>: <message so far>". Returns r. */
int err_wrap(struct sg_error *e, int r, const char *fmt, ...) PRINTF(3, 4);

/* An error about what programs inside a sandbox made, their files or processes: neither the
 * server's fault nor that of whoever asked. Where room is short it stays one of room, and a disk
 * that fails stays the server's; any other becomes SG_ERR_GONE, -EBUSY: something is in the way.
 * r is the code that it has; returns the one that it has now. e may be NULL. */
int err_in_the_way(struct sg_error *e, int r);

/* The kind that an errno (positive) usually means to a caller. */
enum sg_error_kind err_kind_of(int err);
