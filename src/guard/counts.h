/* Counters of the guard besides its record, for ASK_FIGURES (wire/guard.h). */
#pragma once

#include "guard/guard.h"

#define COUNTS_KINDS_MAX 128 /* kinds of findings; further kinds share one count */
#define COUNTS_NAME_MAX  63

struct count {
    char name[COUNTS_NAME_MAX + 1];
    uint64_t n;
};

/* Adds n findings of a kind. Kinds are kept by name, because a reload may change the operator's
 * patterns. */
void counts_sanitised(struct guard *g, const char *kind, uint64_t n);
