/* What bytes of unknown origin are. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* The type of a picture that models can see, by its first bytes; NULL if it is none. */
const char *media_picture(const void *p, size_t len);
/* UTF-8 without control characters but those of text. part: characters at its ends may be cut. */
bool media_is_text(const void *p, size_t len, bool part);
