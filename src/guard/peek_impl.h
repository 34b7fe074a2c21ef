/* What the readers of first bytes share. */
#pragma once

#include <string.h>

#include "guard/peek.h"

/* The host that a connection names, in SNI or in Host. Sets ret->name, or ret->address: whatever a
 * resolver of old might read as an address is one and not a name (10.9.9.9, 0x7f.1, 2130706433).
 * -EINVAL: it is no host. */
int peek_host(const char *p, size_t len, struct peek *ret);

/* What methods and names of header fields are made of. */
static inline bool peek_is_token(char c)
{
    return c > 0x20 && c < 0x7f && !strchr("()<>@,;:\\\"/[]?={}", c);
}
