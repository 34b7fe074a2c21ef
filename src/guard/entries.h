/* A list of what is allowed or denied: addresses, networks, names and `*.names`, from a policy or
 * from the operator's settings. Each entry keeps the text of its rule, for the record. */
#pragma once

#include "lib/base/list.h"
#include "guard/cidr.h"
#include "guard/names.h"

struct entries {
    struct cidr_tree *networks;
    struct names *names;
    const char *all; /* the rule "0.0.0.0/0", for IPv6 and every name too; NULL */
    struct list texts;
};

void entries_init(struct entries *l);
void entries_done(struct entries *l); /* accepts a zeroed struct */
/* verb: "allow", for example. The rule's text is the verb and the entry as it was given. */
int entries_add(struct entries *l, const char *verb, const char *entry, struct sg_error *e);
/* The most specific rule for an address or a name; NULL: none. */
const char *entries_address(const struct entries *l, const struct net_addr *a);
const char *entries_name(const struct entries *l, const char *name);
