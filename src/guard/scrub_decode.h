/* Decodes one character of a text that may have escapes, as scrub.h reads it. */
#pragma once

#include <sys/types.h>

#include "lib/base/base.h"

#define SCRUB_NEEDS_MORE (-1)
/* Returns how many of the bytes at t, at least one, stand for the character in *ret;
 * SCRUB_NEEDS_MORE: the bytes could be the beginning of an escape. */
ssize_t scrub_decode(const unsigned char *t, size_t len, unsigned char *ret);
/* The bytes that an escape begins with. */
#define SCRUB_ESCAPES "%\\&"
