/* Which name a sandbox was told an address for. It is a hint for the record, where a connection
 * says no name itself, and decides nothing: whoever has an address may have it from elsewhere. */
#pragma once

#include "guard/guard.h"

struct learned;

void learned_note(struct sandbox *s, const char *name, const struct net_addr *a);
/* NULL: none that is remembered. */
const char *learned_name(const struct sandbox *s, const struct net_addr *a);
void learned_free(struct learned *l); /* NULL is allowed */
