/* Extended attributes of a file, in the form in which EROFS stores them, LIST has them, and the writer copies them:
 *
 *   one byte: length of the name   one: which prefix   two: length of the value   name   value   zeros to a multiple of 4
 *
 * A world has user.* and security.capability. All others are left out: labels of security modules and
 * access lists name things of the machine that the image was made on, and trusted.* and user.overlay.* would say to the overlay that
 * a sandbox gets what is in its layers. */
#pragma once

#include "image/image.h"

enum attr_prefix { ATTR_USER = 1, ATTR_SECURITY = 6 }; /* EROFS's numbers */

struct attrs {
    size_t len;
    uint8_t v[IMAGE_XATTRS_MAX];
};

/* Sets an attribute by its full name; the last value counts. One that a world does not have is left out.
 * -E2BIG: all together have more than `max` bytes. */
int attrs_set(struct attrs *a, const char *name, const void *value, size_t len, size_t max);
/* Whether these bytes are attributes that a world has, each name once. */
bool attrs_are_valid(const uint8_t *v, size_t len);
