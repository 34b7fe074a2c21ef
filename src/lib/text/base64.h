/* Base64 as in protobuf's JSON: the standard alphabet, padded when written. */
#pragma once

#include "lib/text/strbuf.h"

void base64_encode(struct strbuf *out, const void *data, size_t len);
/* Decodes the standard and the URL alphabet, with or without padding. -EINVAL for anything else;
 * `out` then holds the part before the error. */
int base64_decode(struct strbuf *out, const char *text, size_t len);
