/* Finds out whether bytes of unknown origin are a picture or text. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* The media type of a picture that models can see, by its first bytes. NULL: it is no such
 * picture. */
const char *media_picture(const void *p, size_t len);
/* Whether the bytes are UTF-8 without control characters, except those that texts have. part: the
 * bytes are a part of a file, so characters at both ends may be cut. */
bool media_is_text(const void *p, size_t len, bool part);
