/* Base64 as protobuf's JSON has it: the standard alphabet, padded when written. */
#pragma once

#include "lib/text/strbuf.h"

void base64_encode(struct strbuf *out, const void *data, size_t len);
/* Takes the standard and the URL alphabet, with or without padding. -EINVAL for anything else; what
 * was decoded until then is in `out`. */
int base64_decode(struct strbuf *out, const char *text, size_t len);
