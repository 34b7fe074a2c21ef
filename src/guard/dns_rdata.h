/* Reads and checks the data of a record by its type, and writes it again without compression. */
#pragma once

#include "guard/dns_names.h"

/* Appends the data of the record at p[at], `n` bytes, to out. -EBADMSG: the data does not fit its
 * type, or has nothing in it that a sandbox may see. */
int dns_rdata_copy(const uint8_t *p, size_t len, size_t at, size_t n, uint16_t type,
                   struct strbuf *out);
