/* What went wrong, for whoever started this program: every error has one of these codes, as errno
 * in `struct sg_error` and as a word on standard output. */
#pragma once

#include "lib/base/err.h"

/* What was asked for makes no sense: a reference, a field of the request. */
#define fault_invalid(e, ...) err_invalid(e, __VA_ARGS__)
/* The registry wants other credentials, or none will do. */
#define fault_denied(e, ...) err_set(e, SG_ERR_DENIED, -EACCES, __VA_ARGS__)
/* There is no such image, tag, layer. */
#define fault_not_found(e, ...) err_set(e, SG_ERR_NOT_FOUND, -ENOENT, __VA_ARGS__)
/* The image is for other machines. */
#define fault_platform(e, ...) err_set(e, SG_ERR_UNSUPPORTED, -ENOEXEC, __VA_ARGS__)
/* A kind of image that nobody here can read. */
#define fault_unsupported(e, ...) err_set(e, SG_ERR_UNSUPPORTED, -EOPNOTSUPP, __VA_ARGS__)
/* More than the limits of the request, or of this program. */
#define fault_limit(e, ...) err_set(e, SG_ERR_LIMIT, -EFBIG, __VA_ARGS__)
/* What came is not what was promised: a digest, a length, JSON. */
#define fault_corrupt(e, ...) err_set(e, SG_ERR_INVALID, -EBADMSG, __VA_ARGS__)
/* An address or a redirect that must not be followed. */
#define fault_forbidden(e, ...)   err_set(e, SG_ERR_DENIED, -EPERM, __VA_ARGS__)
#define fault_certificate(e, ...) err_set(e, SG_ERR_DENIED, -EKEYREJECTED, __VA_ARGS__)
#define fault_network(e, ...)     err_set(e, SG_ERR_INTERNAL, -ENETUNREACH, __VA_ARGS__)
#define fault_timeout(e, ...)     err_set(e, SG_ERR_INTERNAL, -ETIMEDOUT, __VA_ARGS__)
/* The registry answered, but not with what it has: too many requests, its own errors. */
#define fault_busy(e, ...)      err_set(e, SG_ERR_INTERNAL, -EBUSY, __VA_ARGS__)
#define fault_cancelled(e, ...) err_set(e, SG_ERR_GONE, -ECANCELED, __VA_ARGS__)

/* The word of a code: "not_found"; "storage" and "internal" are those without a line above. */
const char *fault_word(int code);
