/* Compiles the rules to BPF.
 *
 * Code is generated backwards, from the last instruction to the first, because BPF only jumps
 * forwards: the target of a jump then already has its place. Each generator is a function from
 * "where to go if so" and "where to go if not" to its own entry. A conditional jump reaches 255
 * instructions; if the target is farther away, reach() puts a nearer copy of a return, or a
 * stepping stone, in front.
 *
 * Order of the result: architecture check, tree over ranges of numbers, argument checks. An answer
 * that depends on the number alone touches no argument. So the kernel remembers in a bitmap which
 * numbers are always allowed, and does not run the program for them at all. */
#include "inside/stage/seccomp.h"

#include <linux/audit.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>

#include "lib/base/fault.h"
#include "inside/stage/seccomp_rules.h"

#if defined(__x86_64__)
#define NATIVE_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define NATIVE_ARCH AUDIT_ARCH_AARCH64
#else
#error "seccomp: add the audit architecture and the system calls of this machine"
#endif

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "the low half of an argument comes first");

/* The farthest target, one below the limit: the other branch may still move this one by one. */
#define REACH 254

/* Where to go: an index into the program under construction, or a verdict, for which any return of
 * that verdict will do. */
#define GOTO_VERDICT(v) (SECCOMP_PROG_MAX + (unsigned)(v))

struct compiler {
    struct sock_filter *insns;
    unsigned start;                 /* first instruction so far; grows towards 0 */
    unsigned returns[VERDICT_MAX_]; /* the nearest return of each verdict; SECCOMP_PROG_MAX: none */
    bool full;
};

struct span {
    uint32_t first; /* the span ends before the first of the next span */
    unsigned target;
};

static const uint32_t return_values[] = {
    [VERDICT_EPERM] = SECCOMP_RET_ERRNO | EPERM,
    [VERDICT_ENOSYS] = SECCOMP_RET_ERRNO | ENOSYS,
    [VERDICT_EPROTONOSUPPORT] = SECCOMP_RET_ERRNO | EPROTONOSUPPORT,
    [VERDICT_ALLOW] = SECCOMP_RET_ALLOW,
};
_Static_assert(ARRAY_SIZE(return_values) == VERDICT_MAX_, "every verdict has a return value");

static unsigned emit(struct compiler *c, unsigned code, unsigned jt, unsigned jf, uint32_t k)
{
    if (c->start == 0) {
        c->full = true;
        return 0;
    }
    c->insns[--c->start] = (struct sock_filter){(uint16_t)code, (uint8_t)jt, (uint8_t)jf, k};
    return c->start;
}

/* Returns a place within REACH from here that leads to the target. */
static unsigned reach(struct compiler *c, unsigned target)
{
    if (target >= SECCOMP_PROG_MAX) {
        unsigned *nearest = &c->returns[target - SECCOMP_PROG_MAX];

        if (*nearest == SECCOMP_PROG_MAX || *nearest - c->start > REACH)
            *nearest = emit(c, BPF_RET | BPF_K, 0, 0, return_values[target - SECCOMP_PROG_MAX]);
        return *nearest;
    }
    if (target - c->start > REACH)
        return emit(c, BPF_JMP | BPF_JA, 0, 0, target - c->start);
    return target;
}

static unsigned branch(struct compiler *c, unsigned op, uint32_t k, unsigned yes, unsigned no)
{
    no = reach(c, no);
    yes = reach(c, yes);
    return emit(c, BPF_JMP | op | BPF_K, yes - c->start, no - c->start, k);
}

static unsigned load(struct compiler *c, size_t offset)
{
    return emit(c, BPF_LD | BPF_W | BPF_ABS, 0, 0, (uint32_t)offset);
}

static unsigned in_range(struct compiler *c, struct seccomp_range r, unsigned yes, unsigned no)
{
    if (r.lo == r.hi)
        return branch(c, BPF_JEQ, r.lo, yes, no);
    if (r.hi != UINT32_MAX)
        yes = branch(c, BPF_JGT, r.hi, no, yes);
    return branch(c, BPF_JGE, r.lo, yes, no);
}

static unsigned test_argument(struct compiler *c, const struct seccomp_test *t, unsigned yes,
                              unsigned no)
{
    for (unsigned i = t->n_ranges; i-- > 0;)
        no = in_range(c, t->ranges[i], yes, no);
    if (t->mask != UINT32_MAX)
        emit(c, BPF_ALU | BPF_AND | BPF_K, 0, 0, t->mask);
    return load(c, offsetof(struct seccomp_data, args) + t->arg * sizeof(uint64_t));
}

static unsigned check_arguments(struct compiler *c, const struct seccomp_rule *rule)
{
    unsigned no = GOTO_VERDICT(rule->otherwise);

    for (unsigned i = rule->n_clauses; i-- > 0;) {
        const struct seccomp_clause *clause = &rule->clauses[i];
        unsigned yes = GOTO_VERDICT(i + rule->n_absent >= rule->n_clauses ? VERDICT_EPROTONOSUPPORT
                                                                          : rule->verdict);

        for (unsigned j = SECCOMP_TESTS_MAX; j-- > 0;)
            if (clause->tests[j].n_ranges)
                yes = test_argument(c, &clause->tests[j], yes, no);
        no = yes;
    }
    return no;
}

/* Expects the call's number in the accumulator. */
static unsigned tree(struct compiler *c, const struct span *spans, size_t n)
{
    size_t half = n / 2;
    unsigned below, above;

    if (n == 1)
        return spans[0].target;
    above = tree(c, spans + half, n - half);
    below = tree(c, spans, half);
    return branch(c, BPF_JGE, spans[half].first, above, below);
}

static int index_rules(const struct seccomp_policy *policy, const struct seccomp_rule **by_nr,
                       struct sg_error *e)
{
    if (policy->last_nr > SECCOMP_NR_MAX)
        return err_set(e, SG_ERR_INTERNAL, -EINVAL, "seccomp rules: %u is above SECCOMP_NR_MAX",
                       policy->last_nr);
    for (size_t i = 0; i < policy->n_rules; i++) {
        const struct seccomp_rule *rule = &policy->rules[i];

        if (rule->nr > policy->last_nr)
            return err_set(e, SG_ERR_INTERNAL, -EINVAL, "seccomp rules: %s (%u) is above last_nr",
                           rule->name, rule->nr);
        if (by_nr[rule->nr])
            return err_set(e, SG_ERR_INTERNAL, -EINVAL, "seccomp rules: %u is both %s and %s",
                           rule->nr, by_nr[rule->nr]->name, rule->name);
        by_nr[rule->nr] = rule;
    }
    return 0;
}

static bool is_hole(const struct seccomp_policy *policy, unsigned nr)
{
    for (size_t i = 0; i < policy->n_holes; i++)
        if (nr >= policy->holes[i].lo && nr <= policy->holes[i].hi)
            return true;
    return false;
}

/* Every role may do what programs may do with some argument. */
static unsigned target_of_role(const struct seccomp_rule *rule, enum seccomp_role role)
{
    bool allowed = rule->verdict == VERDICT_ALLOW || rule->also & 1u << role ||
                   (rule->n_clauses && rule->otherwise == VERDICT_ALLOW);

    return GOTO_VERDICT(allowed ? VERDICT_ALLOW : rule->verdict);
}

/* Emits the argument checks, and lists for all numbers in order where each one leads. */
static size_t make_spans(struct compiler *c, const struct seccomp_policy *policy,
                         enum seccomp_role role, const struct seccomp_rule **by_nr,
                         struct span *spans)
{
    size_t n = 0;

    for (unsigned nr = 0; nr <= policy->last_nr + 1; nr++) {
        const struct seccomp_rule *rule = nr <= policy->last_nr ? by_nr[nr] : NULL;
        unsigned target = GOTO_VERDICT(VERDICT_EPERM);

        if (rule && role != SECCOMP_PROGRAM)
            target = target_of_role(rule, role);
        else if (rule && rule->n_clauses)
            target = check_arguments(c, rule);
        else if (rule)
            target = GOTO_VERDICT(rule->verdict);
        else if (nr > policy->last_nr || is_hole(policy, nr))
            target = GOTO_VERDICT(VERDICT_ENOSYS);
        if (n == 0 || spans[n - 1].target != target)
            spans[n++] = (struct span){nr, target};
    }
    return n;
}

/* The last span ends at UINT32_MAX, so x32 numbers (bit 30 set) are "newer than the list": ENOSYS.
 */
static void prologue(struct compiler *c, unsigned root)
{
    root = reach(c, root);
    if (root != c->start)
        emit(c, BPF_JMP | BPF_JA, 0, 0, root - c->start);
    load(c, offsetof(struct seccomp_data, nr));
    emit(c, BPF_RET | BPF_K, 0, 0, SECCOMP_RET_KILL_PROCESS);
    emit(c, BPF_JMP | BPF_JEQ | BPF_K, 1, 0, NATIVE_ARCH);
    load(c, offsetof(struct seccomp_data, arch));
}

int seccomp_compile_policy(const struct seccomp_policy *policy, enum seccomp_role role,
                           struct seccomp_prog *ret, struct sg_error *e)
{
    const struct seccomp_rule *by_nr[SECCOMP_NR_MAX + 1] = {0};
    struct span spans[SECCOMP_NR_MAX + 2];
    struct compiler c = {.insns = ret->insns, .start = SECCOMP_PROG_MAX};
    int r = index_rules(policy, by_nr, e);

    if (r < 0)
        return r;
    for (unsigned v = 0; v < VERDICT_MAX_; v++)
        c.returns[v] = SECCOMP_PROG_MAX;
    prologue(&c, tree(&c, spans, make_spans(&c, policy, role, by_nr, spans)));
    if (c.full)
        return err_set(e, SG_ERR_INTERNAL, -E2BIG,
                       "seccomp rules: the program is longer than %d instructions",
                       SECCOMP_PROG_MAX);
    ret->len = (unsigned short)(SECCOMP_PROG_MAX - c.start);
    memmove(ret->insns, ret->insns + c.start, ret->len * sizeof(ret->insns[0]));
    return 0;
}

int seccomp_compile(enum seccomp_role role, struct seccomp_prog *ret, struct sg_error *e)
{
    return seccomp_compile_policy(&seccomp_policy, role, ret, e);
}

int seccomp_confine(enum seccomp_role role, struct sg_error *e)
{
    struct seccomp_prog prog;
    int r = seccomp_compile(role, &prog, e);

    return r < 0 ? r : err_internal(e, seccomp_load(&prog), "load the system-call filter");
}
