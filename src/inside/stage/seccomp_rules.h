/* The policy as data: what seccomp_rules.c writes down and seccomp.c compiles.
 *
 * Every argument that the policy looks at is declared 32 bits wide or narrower in the kernel (int,
 * unsigned int, umode_t), and the flags of clone are cut to their low half by the kernel itself. So
 * a test reads the low 32 bits of the register and nothing else: looking at the high half as well
 * would let a caller smuggle a value past the filter that the kernel then takes without that half.
 */
#pragma once

#include "inside/stage/seccomp.h"

/* Highest number that a policy may know; bounds the tables of the compiler. */
#define SECCOMP_NR_MAX 511u

enum seccomp_verdict {
    VERDICT_EPERM, /* also what a known but unlisted call gets */
    VERDICT_ENOSYS,
    VERDICT_EPROTONOSUPPORT,
    VERDICT_ALLOW,
    VERDICT_MAX_,
};

struct seccomp_range {
    uint32_t lo, hi; /* both inclusive */
};

/* True if (argument & mask) lies in one of the ranges. */
struct seccomp_test {
    uint32_t mask;
    unsigned arg, n_ranges;
    const struct seccomp_range *ranges;
};

/* A clause is true if all of its tests are. */
#define SECCOMP_TESTS_MAX 3
struct seccomp_clause {
    struct seccomp_test tests[SECCOMP_TESTS_MAX]; /* a test with n_ranges == 0 is unused */
};

struct seccomp_rule {
    const char *name;
    const char *words; /* the clauses in words; NULL without clauses */
    const struct seccomp_clause *clauses;
    unsigned n_clauses;
    unsigned n_absent; /* of the last clauses: EPROTONOSUPPORT, as of a kernel that lacks it */
    unsigned nr;
    enum seccomp_verdict
        verdict; /* for a call that matches any clause; for every call if there are none */
    enum seccomp_verdict otherwise; /* for the other calls */
    unsigned also; /* roles that may make the call although programs may not: 1 << role */
};

struct seccomp_policy {
    const struct seccomp_rule *rules; /* in any order, each number once */
    size_t n_rules;
    const struct seccomp_range *holes; /* numbers that were never given out: ENOSYS */
    size_t n_holes;
    unsigned last_nr; /* the newest call there was when the rules were written; ENOSYS above */
};

extern const struct seccomp_policy seccomp_policy;

int seccomp_compile_policy(const struct seccomp_policy *policy, enum seccomp_role role,
                           struct seccomp_prog *ret, struct sg_error *e);
