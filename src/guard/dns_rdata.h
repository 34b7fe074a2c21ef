/* What is in a record, by its type: read, checked, and written again without compression. */
#pragma once

#include "guard/dns_names.h"

/* Appends the data of the record at p[at], `n` bytes, to out. -EBADMSG: it is not what its type
 * says, or has nothing in it that a sandbox may see. */
int dns_rdata_copy(const uint8_t *p, size_t len, size_t at, size_t n, uint16_t type,
                   struct strbuf *out);
