/* Texts as descriptors: how documents and settings travel between the parts. */
#pragma once

#include "lib/base/err.h"

/* A sealed memfd that holds the text, to be read from its beginning. A fresh one for each reader:
 * the place to read from is shared by all who hold it. */
int text_memfd(const char *text, size_t len, struct sg_error *e);
