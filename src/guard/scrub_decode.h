/* One character of a text in which some are written with escapes, as scrub.h reads it. */
#pragma once

#include <sys/types.h>

#include "lib/base/base.h"

#define SCRUB_NEEDS_MORE (-1)
/* How many of the bytes at t, one at least, stand for the character in *ret; SCRUB_NEEDS_MORE: what
 * is there could be the beginning of an escape. */
ssize_t scrub_decode(const unsigned char *t, size_t len, unsigned char *ret);
/* The bytes that an escape begins with. */
#define SCRUB_ESCAPES "%\\&"
