/* Remembers for which name a sandbox was told an address. The name is a hint for the record, where
 * a connection says no name itself. It decides nothing: a sandbox may have an address from
 * elsewhere. */
#pragma once

#include "guard/guard.h"

void learned_note(struct sandbox *s, const char *name, const struct net_addr *a);
/* NULL: no name is remembered. */
const char *learned_name(const struct sandbox *s, const struct net_addr *a);
void learned_free(struct learned *l); /* NULL is allowed */
