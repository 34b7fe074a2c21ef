/* How much a sandbox may ask: whoever serves a zone reads the names that are asked in it. */
#pragma once

#include "guard/guard.h"

#define DNS_PENDING_MAX 64 /* questions of a sandbox at once */

/* One question more. False: it has asked too often in this second. */
bool dns_budget_question(struct dns_budget *b, uint64_t now_ns);
/* A name: each counts for a minute, once. False: there were DNS_NAMES_PER_MINUTE others. */
bool dns_budget_name(struct dns_budget *b, const char *name, uint64_t now_ns);
/* Whether something about a name is to be put on record: not if it was, within a minute. */
bool dns_budget_tells(struct dns_budget *b, const char *what, const char *name, uint64_t now_ns);
