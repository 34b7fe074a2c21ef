/* Bounds how much a sandbox may ask, because whoever serves a zone reads the names that are asked
 * in it. */
#pragma once

#include "guard/guard.h"

#define DNS_PENDING_MAX 64 /* questions of a sandbox at once */

/* Counts a question. False: the sandbox has asked too often in this second. */
bool dns_budget_question(struct dns_budget *b, uint64_t now_ns);
/* Counts a name, each once a minute. False: there were DNS_NAMES_PER_MINUTE others in this
 * minute. */
bool dns_budget_name(struct dns_budget *b, const char *name, uint64_t now_ns);
/* Whether to put a decision about a name on record: not if it was within the last minute. */
bool dns_budget_tells(struct dns_budget *b, const char *what, const char *name, uint64_t now_ns);
