/* Texts as descriptors: so documents and settings travel between processes. */
#pragma once

#include "lib/base/err.h"

/* A sealed memfd that holds the text, with the read position at its beginning. Each reader needs a
 * memfd of its own, since all who hold one share its read position. */
int text_memfd(const char *text, size_t len, struct sg_error *e);
