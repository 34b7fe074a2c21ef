/* Filling the one error type of the project, struct sg_error (sandglass.h). */
#pragma once

#include <sandglass.h>

#include "lib/base/base.h"

/* Each returns `code` (a negative errno), so that `return err_set(...)` reads well. e may be NULL.
 */
int err_set(struct sg_error *e, enum sg_error_kind kind, int code, const char *fmt, ...)
    PRINTF(4, 5);
#define err_invalid(e, ...) err_set(e, SG_ERR_INVALID, -EINVAL, __VA_ARGS__)
/* Like err_set, with ": strerror" of errno or of a code appended, and the kind derived from it. */
int err_errno(struct sg_error *e, const char *fmt, ...) PRINTF(2, 3);
#define err_code(e, code, ...) (errno = -(code), err_errno(e, __VA_ARGS__))
/* Prefixes context: "<context>: <message so far>". Returns r. */
int err_wrap(struct sg_error *e, int r, const char *fmt, ...) PRINTF(3, 4);

/* For an error about the files or processes that programs inside a sandbox made: it is neither the
 * server's fault nor the caller's. An error about lack of room stays one, and a failing disk stays
 * the server's fault; any other error becomes SG_ERR_GONE, -EBUSY: something is in the way. r is
 * the error's code so far; returns its new code. e may be NULL. */
int err_in_the_way(struct sg_error *e, int r);

/* The kind of error that an errno (positive) usually is to a caller. */
enum sg_error_kind err_kind_of(int err);
