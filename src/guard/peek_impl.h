/* Shared by hello.c and peek_http.c. */
#pragma once

#include <string.h>

#include "guard/peek.h"

/* Reads the host that a connection names, in SNI or in Host. Sets ret->name, or ret->address:
 * whatever an old resolver might read as an address counts as one and not as a name (10.9.9.9,
 * 0x7f.1, 2130706433). -EINVAL: it is no host. */
int peek_host(const char *p, size_t len, struct peek *ret);
