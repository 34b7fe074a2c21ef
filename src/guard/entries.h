/* A list of what is allowed or denied: addresses, networks, names and `*.names`, as a policy and
 * the operator's settings have them. Each entry has the text of its rule, for the record. */
#pragma once

#include "guard/cidr.h"
#include "guard/names.h"

struct entries {
    struct cidr_tree *networks;
    struct names *names;
    const char *all; /* the rule "0.0.0.0/0", which has IPv6 and every name in it; NULL */
    struct entry_text *texts;
};

void entries_init(struct entries *l);
void entries_done(struct entries *l); /* accepts a zeroed struct */
/* verb: "allow". The rule is the verb and the entry as it was given. */
int entries_add(struct entries *l, const char *verb, const char *entry, struct sg_error *e);
/* The rule for it, the most special one; NULL. */
const char *entries_address(const struct entries *l, const struct net_addr *a);
const char *entries_name(const struct entries *l, const char *name);
