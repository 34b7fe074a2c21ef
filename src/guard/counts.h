/* What the guard counts beside its record, for ASK_FIGURES (wire/guard.h). */
#pragma once

#include "guard/guard.h"

#define COUNTS_KINDS_MAX 128 /* of what is sanitised; further ones are not told apart */
#define COUNTS_NAME_MAX  63

struct count {
    char name[COUNTS_NAME_MAX + 1];
    uint64_t n;
};

/* Kinds are kept by name: the operator's patterns may be others after a reload. */
void counts_sanitised(struct guard *g, const char *kind, uint64_t n);
