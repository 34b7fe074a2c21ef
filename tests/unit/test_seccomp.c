/* The filter against a second opinion: an interpreter runs the compiled program, and an oracle
 * written from the policy in plain numbers (not from the table) says what it must answer. Then the
 * real thing is loaded into a child. */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/text/strbuf.h"
#include "tap.h"
#include "inside/stage/seccomp.h"
#include "inside/stage/seccomp_rules.h"

#ifdef __x86_64__
#define NATIVE AUDIT_ARCH_X86_64
#else
#define NATIVE AUDIT_ARCH_AARCH64
#endif
#define R_ALLOW  SECCOMP_RET_ALLOW
#define R_EPERM  (SECCOMP_RET_ERRNO | EPERM)
#define R_ENOSYS (SECCOMP_RET_ERRNO | ENOSYS)
#define R_ABSENT (SECCOMP_RET_ERRNO | EPROTONOSUPPORT)
#define BROKEN   0xdeadu /* no seccomp answer */

static uint32_t xorshift(void)
{
    static uint32_t s = 2463534242u;

    s ^= s << 13;
    s ^= s >> 17;
    return s ^= s << 5;
}

/* ---- a machine for classic BPF --------------------------------------------------------------- */

static uint32_t run(const struct seccomp_prog *p, const struct seccomp_data *d)
{
    uint32_t a = 0;

    for (size_t pc = 0; pc < p->len; pc++) {
        const struct sock_filter *i = &p->insns[pc];

        switch (i->code) {
        case BPF_LD | BPF_W | BPF_ABS:
            if (i->k % 4 || i->k + 4 > sizeof(*d))
                return BROKEN;
            memcpy(&a, (const char *)d + i->k, 4);
            break;
        case BPF_ALU | BPF_AND | BPF_K:
            a &= i->k;
            break;
        case BPF_JMP | BPF_JA:
            pc += i->k;
            break;
        case BPF_JMP | BPF_JEQ | BPF_K:
            pc += a == i->k ? i->jt : i->jf;
            break;
        case BPF_JMP | BPF_JGT | BPF_K:
            pc += a > i->k ? i->jt : i->jf;
            break;
        case BPF_JMP | BPF_JGE | BPF_K:
            pc += a >= i->k ? i->jt : i->jf;
            break;
        case BPF_RET | BPF_K:
            return i->k;
        default:
            return BROKEN;
        }
    }
    return BROKEN;
}

static const struct seccomp_prog *program_of(enum seccomp_role role)
{
    static struct seccomp_prog all[SECCOMP_WARDEN + 1];

    if (all[role].len == 0 && seccomp_compile(role, &all[role], NULL) < 0)
        abort();
    return &all[role];
}

static const struct seccomp_prog *program(void)
{
    return program_of(SECCOMP_PROGRAM);
}

TEST(compiles_short_and_well_formed)
{
    const struct seccomp_prog *p = program();

    printf("# %u instructions\n", p->len);
    EXPECT(p->len > 0 && p->len < 400);
    EXPECT(BPF_CLASS(p->insns[p->len - 1].code) == BPF_RET);
    for (unsigned i = 0; i < p->len; i++) {
        const struct sock_filter *f = &p->insns[i];

        if (BPF_CLASS(f->code) == BPF_JMP && BPF_OP(f->code) == BPF_JA)
            EXPECT(i + 1 + f->k < p->len);
        else if (BPF_CLASS(f->code) == BPF_JMP)
            EXPECT(i + 1u + f->jt < p->len && i + 1u + f->jf < p->len);
    }
}

TEST(foreign_architectures_die)
{
    static const uint32_t arches[] = {AUDIT_ARCH_I386, AUDIT_ARCH_ARM, AUDIT_ARCH_PPC64LE, 0, ~0u,
                                      NATIVE ^ 1};

    for (size_t i = 0; i < ARRAY_SIZE(arches); i++)
        for (int nr = 0; nr < 1024; nr++) {
            struct seccomp_data d = {.nr = nr, .arch = arches[i]};

            EXPECT(run(program(), &d) == SECCOMP_RET_KILL_PROCESS);
        }
}

/* ---- the oracle, x86-64 numbers -------------------------------------------------------------- */
#ifdef __x86_64__

static bool socket_fine(uint32_t family, uint32_t type, uint32_t protocol)
{
    uint32_t plain = type & ~04000u & ~02000000u;

    if (family == 1)
        return plain == 1 || plain == 2 || plain == 5;
    if (family == 2 || family == 10)
        return (plain == 1 && (protocol == 0 || protocol == 6)) ||
               (plain == 2 && (protocol == 0 || protocol == 17));
    return family == 16 && (plain == 2 || plain == 3) && protocol == 0;
}

static bool setsockopt_fine(uint32_t level, uint32_t opt)
{
    switch (level) {
    case 0:
        return opt < 64 && opt != 16 && opt != 17 && opt != 19;
    case 1:
        return opt != 26 && opt != 50 && opt != 51 && opt != 52;
    case 6:
        return opt != 31;
    case 17:
        return opt != 100;
    case 41:
        return opt != 34 && opt != 35 && opt != 64 && opt != 65 && opt != 75;
    default:
        return true;
    }
}

static bool ioctl_fine(uint32_t cmd)
{
    static const uint32_t refused[] = {0x5412, 0x541c, 0x541d, 0x5423, 0x5437, 0x5453, 0x5454,
                                       0x5455, 0x5456, 0x5457, 0x5458, 0x5459, 0x545a, 0x545b};

    for (size_t i = 0; i < ARRAY_SIZE(refused); i++)
        if (cmd == refused[i])
            return false;
    return true;
}

static bool prctl_fine(uint32_t option)
{
    if (option == 35 || option == 62 || option == 67)
        return false;
    return option < 77 || option == 0x41555856 || option == 0x53564d41 || option == 0x59616d61;
}

static bool clone_fine(uint32_t flags)
{
    static const uint32_t refused[] = {
        0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000,
        0x40000000, 0x00000080, 0x00008000, 0x00002000, 0x00800000,
    };

    for (size_t i = 0; i < ARRAY_SIZE(refused); i++)
        if (flags & refused[i])
            return false;
    return true;
}

static bool node_fine(uint16_t mode)
{
    return !S_ISCHR(mode) && !S_ISBLK(mode) && !S_ISDIR(mode) && !S_ISLNK(mode) &&
           ((mode >> 12) == 0 || S_ISREG(mode) || S_ISFIFO(mode) || S_ISSOCK(mode));
}

/* -1: the number alone decides. */
static int arguments_fine(uint32_t nr, const __u64 *args)
{
    uint32_t a0 = (uint32_t)args[0], a1 = (uint32_t)args[1], a2 = (uint32_t)args[2];

    switch (nr) {
    case 16:
        return ioctl_fine(a1);
    case 28:
        return a2 != 12;
    case 41:
        return socket_fine(a0, a1, a2);
    case 53:
        return a0 == 1;
    case 54:
        return setsockopt_fine(a1, a2);
    case 56:
        return clone_fine(a0);
    case 133:
        return node_fine((uint16_t)args[1]);
    case 135:
        return a0 == 0 || a0 == 8 || a0 == 0x20000 || a0 == 0x20008 || a0 == 0xffffffff;
    case 157:
        return prctl_fine(a0);
    case 259:
        return node_fine((uint16_t)args[2]);
    case 302:
        return a0 == 0;
    case 317:
        return (a1 & ~(1u | 2 | 4 | 16)) == 0;
    default:
        return -1;
    }
}

static uint32_t expected(uint32_t nr, const __u64 *args)
{
    int fine = arguments_fine(nr, args);

    if (nr == 41 && (uint32_t)args[0] == 16 && (uint32_t)args[2] == 9)
        return R_ABSENT;
    if (fine >= 0)
        return fine ? R_ALLOW : R_EPERM;
    if (nr > 469)
        return R_ENOSYS;
    switch (nr) {
    case 335 ... 423:
    case 435:
    case 462:
    case 463:
    case 466:
    case 468:
    case 469:
        return R_ENOSYS;
    case 101:         /* ptrace */
    case 103:         /* syslog */
    case 134:         /* uselib */
    case 136:         /* ustat */
    case 139:         /* sysfs */
    case 153 ... 156: /* vhangup, modify_ldt, pivot_root, _sysctl */
    case 159:         /* adjtimex */
    case 163 ... 185: /* acct to security: mounts, swap, reboot, modules, quota, never written ones
                       */
    case 205 ... 212: /* thread areas, asynchronous io, lookup_dcookie */
    case 214 ... 216: /* old epoll, remap_file_pages */
    case 227:         /* clock_settime */
    case 236 ... 238: /* vserver, mbind, set_mempolicy */
    case 246:         /* kexec_load */
    case 248 ... 250: /* keys */
    case 256:         /* migrate_pages */
    case 272:         /* unshare */
    case 278:         /* vmsplice */
    case 279:         /* move_pages */
    case 298:         /* perf_event_open */
    case 300:         /* fanotify */
    case 301:
    case 303 ... 305: /* handles, clock_adjtime */
    case 308:         /* setns */
    case 310 ... 313: /* process_vm_*, kcmp, finit_module */
    case 320:         /* kexec_file_load */
    case 321:         /* bpf */
    case 323:         /* userfaultfd */
    case 333:         /* io_pgetevents */
    case 425 ... 433: /* io_uring, new mount calls */
    case 438:         /* pidfd_getfd */
    case 440:         /* process_madvise */
    case 442:         /* mount_setattr */
    case 443:         /* quotactl_fd */
    case 447:         /* memfd_secret */
    case 448:         /* process_mrelease */
    case 450:         /* set_mempolicy_home_node */
    case 451:         /* cachestat */
    case 457 ... 461: /* statmount, listmount, lsm_* */
    case 467:         /* open_tree_attr */
        return R_EPERM;
    default:
        return R_ALLOW;
    }
}

static unsigned long compared;

static void compare(uint32_t nr, uint64_t a0, uint64_t a1, uint64_t a2)
{
    static const uint64_t high_halves[] = {0, 1, 0x80000000, 0xffffffff};

    for (size_t i = 0; i < ARRAY_SIZE(high_halves); i++) {
        uint64_t h = high_halves[i] << 32;
        struct seccomp_data d = {.nr = (int)nr, .arch = NATIVE};

        d.args[0] = h | (uint32_t)a0;
        d.args[1] = h | (uint32_t)a1;
        d.args[2] = h | (uint32_t)a2;
        d.args[3] = xorshift();
        compared++;
        if (run(program(), &d) != expected(nr, d.args)) {
            printf("# call %u(%#llx, %#llx, %#llx)\n", nr, d.args[0], d.args[1], d.args[2]);
            EXPECT(run(program(), &d) == expected(nr, d.args));
            return;
        }
    }
}

TEST(every_number_gets_the_answer_of_the_policy)
{
    for (uint32_t nr = 0; nr < 1024; nr++) {
        compare(nr, 0, 0, 0);
        compare(nr, ~0u, ~0u, ~0u);
        for (int i = 0; i < 50; i++)
            compare(nr, xorshift() % 64, xorshift() % 64, xorshift() % 64);
        for (int bit = 0; bit < 32; bit++)
            for (unsigned others = 0; others < 2; others++)
                compare(nr, 1u << bit, others << bit, others << bit);
        compare(0x40000000u | nr, 0, 0, 0); /* x32 */
        compare(0x80000000u | nr, 0, 0, 0);
        compare(0xffffffffu - nr, 0, 0, 0);
    }
    for (int bit = 10; bit < 32; bit++)
        compare(1u << bit, 0, 0, 0);
}

TEST(socket_families_types_and_protocols)
{
    static const uint32_t flags[] = {0, 04000, 02000000, 02004000, 0x10, 0x100, 0x80000000};
    static const uint32_t protocols[] = {0,  1,  2,   4,   6,   15,  16,  17,
                                         58, 89, 132, 136, 255, 256, 262, ~0u};

    for (uint32_t family = 0; family < 64; family++)
        for (uint32_t type = 0; type < 16; type++)
            for (size_t f = 0; f < ARRAY_SIZE(flags); f++)
                for (size_t p = 0; p < ARRAY_SIZE(protocols); p++)
                    compare(41, family, type | flags[f], protocols[p]);
    for (uint32_t protocol = 0; protocol < 1024; protocol++) {
        compare(41, 16, 3, protocol);
        compare(41, 2, 1, protocol);
        compare(41, 10, 2, protocol);
    }
    for (uint32_t family = 0; family < 256; family++)
        compare(53, family, 1, 0);
}

TEST(socket_options)
{
    for (uint32_t level = 0; level < 300; level++)
        for (uint32_t opt = 0; opt < 200; opt++)
            compare(54, xorshift(), level, opt);
    for (uint32_t opt = 0; opt < 0x20000; opt++)
        compare(54, 3, 0, opt);
    compare(54, 3, 0, ~0u);
    compare(54, 3, ~0u, 31);
}

TEST(clone_flags)
{
    /* fork, vfork, posix_spawn, a thread of glibc, a thread of Go */
    static const uint32_t usual[] = {17, 0x01200011, 0x4111, 0x4100, 0x3d0f00, 0x50f00};

    for (size_t i = 0; i < ARRAY_SIZE(usual); i++) {
        EXPECT(expected(56, (__u64[]){usual[i], 0, 0}) == R_ALLOW);
        compare(56, usual[i], 0, 0);
        for (int bit = 0; bit < 32; bit++)
            compare(56, usual[i] ^ 1u << bit, 0, 0);
    }
    for (int a = 0; a < 32; a++)
        for (int b = 0; b < 32; b++)
            compare(56, 1u << a | 1u << b, ~0u, ~0u);
}

TEST(other_arguments)
{
    for (uint32_t cmd = 0; cmd < 0x10000; cmd++)
        compare(16, xorshift(), cmd, 0);
    for (int bit = 0; bit < 32; bit++)
        compare(16, 0, 0x5412u | 1u << bit, 0);
    for (uint32_t mode = 0; mode < 0x20000; mode++) {
        compare(133, 0, mode, 0);
        compare(259, 0, 0, mode);
    }
    for (uint32_t v = 0; v < 0x400; v++) {
        compare(28, 0, 0, v);
        compare(157, v, 0, 0);
        compare(302, v, 0, 0);
        for (uint32_t op = 0; op < 6; op++)
            compare(317, op, v, 0);
        for (uint32_t base = 0; base < 4; base++)
            compare(135, base << 17 | v, 0, 0);
    }
    for (int near = -2; near <= 2; near++) {
        compare(157, 0x41555856u + (unsigned)near, 0, 0);
        compare(157, 0x53564d41u + (unsigned)near, 0, 0);
        compare(157, 0x59616d61u + (unsigned)near, 0, 0);
        compare(302, (unsigned)near, 0, 0);
        compare(135, (unsigned)near, 0, 0);
    }
    printf("# %lu answers compared\n", compared);
}

#endif

/* ---- the compiler, on made-up rules ---------------------------------------------------------- */

static uint32_t answer_of(enum seccomp_verdict v)
{
    static const uint32_t answers[VERDICT_MAX_] = {[VERDICT_ALLOW] = R_ALLOW,
                                                   [VERDICT_EPERM] = R_EPERM,
                                                   [VERDICT_ENOSYS] = R_ENOSYS,
                                                   [VERDICT_EPROTONOSUPPORT] = R_ABSENT};

    return answers[v];
}

static bool clause_holds(const struct seccomp_clause *clause, const struct seccomp_data *d)
{
    for (size_t t = 0; t < SECCOMP_TESTS_MAX; t++) {
        const struct seccomp_test *test = &clause->tests[t];
        bool hit = test->n_ranges == 0;

        for (unsigned i = 0; i < test->n_ranges; i++) {
            uint32_t v = (uint32_t)d->args[test->arg] & test->mask;

            hit |= v >= test->ranges[i].lo && v <= test->ranges[i].hi;
        }
        if (!hit)
            return false;
    }
    return true;
}

static uint32_t interpret(const struct seccomp_policy *p, const struct seccomp_data *d)
{
    uint32_t nr = (uint32_t)d->nr;

    for (size_t i = 0; i < p->n_rules; i++) {
        const struct seccomp_rule *rule = &p->rules[i];

        if (rule->nr != nr)
            continue;
        for (unsigned j = 0; j < rule->n_clauses; j++)
            if (clause_holds(&rule->clauses[j], d))
                return j + rule->n_absent >= rule->n_clauses ? R_ABSENT : answer_of(rule->verdict);
        return answer_of(rule->n_clauses ? rule->otherwise : rule->verdict);
    }
    for (size_t i = 0; i < p->n_holes; i++)
        if (nr >= p->holes[i].lo && nr <= p->holes[i].hi)
            return R_ENOSYS;
    return nr > p->last_nr ? R_ENOSYS : R_EPERM;
}

#define MADE_RANGES  4
#define MADE_CLAUSES 3
struct made {
    struct seccomp_rule rules[SECCOMP_NR_MAX + 1];
    struct seccomp_clause clauses[SECCOMP_NR_MAX + 1][MADE_CLAUSES];
    struct seccomp_range ranges[SECCOMP_NR_MAX + 1][MADE_CLAUSES][SECCOMP_TESTS_MAX][MADE_RANGES];
};

static void make_test(struct seccomp_test *test, struct seccomp_range *ranges)
{
    test->arg = xorshift() % 6;
    test->mask = xorshift() % 2 ? UINT32_MAX : xorshift() | xorshift();
    test->n_ranges = xorshift() % (MADE_RANGES + 1);
    test->ranges = ranges;
    for (unsigned i = 0; i < test->n_ranges; i++) {
        ranges[i].lo = xorshift() % 32;
        ranges[i].hi = xorshift() % 4 ? ranges[i].lo + xorshift() % 8 : UINT32_MAX;
    }
}

/* Fills m and returns a policy over it; `checked` in 256 calls have argument checks. */
static struct seccomp_policy make_policy(struct made *m, unsigned checked)
{
    static const struct seccomp_range holes[] = {{20, 25}, {90, 140}};
    struct seccomp_policy p = {.rules = m->rules, .holes = holes, .n_holes = ARRAY_SIZE(holes)};

    memset(m, 0, sizeof(*m));
    p.last_nr = xorshift() % (SECCOMP_NR_MAX + 1);
    for (unsigned nr = 0; nr <= p.last_nr; nr++) {
        struct seccomp_rule *rule = &m->rules[p.n_rules];
        struct seccomp_clause *clauses = m->clauses[nr];

        if (xorshift() % 3 == 0)
            continue;
        *rule = (struct seccomp_rule){.name = "made", .nr = nr, .clauses = clauses};
        rule->verdict = xorshift() % VERDICT_MAX_;
        rule->otherwise = xorshift() % VERDICT_MAX_;
        rule->n_clauses = xorshift() % 256 < checked ? 1 + xorshift() % MADE_CLAUSES : 0;
        rule->n_absent = rule->n_clauses ? xorshift() % rule->n_clauses : 0;
        for (unsigned c = 0; c < rule->n_clauses; c++)
            for (unsigned t = 0; t < SECCOMP_TESTS_MAX; t++)
                make_test(&clauses[c].tests[t], m->ranges[nr][c][t]);
        p.n_rules++;
    }
    return p;
}

static unsigned differences(const struct seccomp_policy *policy, const struct seccomp_prog *prog)
{
    unsigned wrong = 0;

    for (unsigned nr = 0; nr < 2 * SECCOMP_NR_MAX; nr++)
        for (int tries = 0; tries < 8; tries++) {
            struct seccomp_data d = {.nr = (int)nr, .arch = NATIVE};

            for (int a = 0; a < 6; a++)
                d.args[a] = (uint64_t)xorshift() << 32 | xorshift() % (tries % 2 ? 48 : UINT32_MAX);
            wrong += run(prog, &d) != interpret(policy, &d);
        }
    return wrong;
}

TEST(random_policies_compile_to_what_they_say)
{
    static struct made made;
    static struct seccomp_prog prog;
    unsigned compiled = 0, longest = 0, refused = 0;

    for (unsigned i = 0; i < 300; i++) {
        struct seccomp_policy policy = make_policy(&made, i % 24);
        struct sg_error e = {0};
        int r = seccomp_compile_policy(&policy, SECCOMP_PROGRAM, &prog, &e);

        if (r == -E2BIG) {
            EXPECT(strstr(e.message, "longer than") != NULL);
            refused++;
            continue;
        }
        EXPECT(r == 0);
        EXPECT(differences(&policy, &prog) == 0);
        compiled++;
        longest = prog.len > longest ? prog.len : longest;
    }
    printf("# %u compiled, longest %u, %u too long\n", compiled, longest, refused);
    EXPECT(compiled >= 100 && longest > 450 && refused > 0);
}

static int compile_error(struct seccomp_policy policy, struct sg_error *ret)
{
    static struct seccomp_prog prog;

    return seccomp_compile_policy(&policy, SECCOMP_PROGRAM, &prog, ret);
}

TEST(wrong_tables_are_refused)
{
    static const struct seccomp_rule twice[] = {{.name = "first", .nr = 3},
                                                {.name = "second", .nr = 3}};
    struct sg_error e = {0};

    EXPECT(compile_error((struct seccomp_policy){.rules = twice, .n_rules = 2, .last_nr = 9}, &e) ==
           -EINVAL);
    EXPECT(strstr(e.message, "first") && strstr(e.message, "second"));
    EXPECT(compile_error((struct seccomp_policy){.rules = twice, .n_rules = 1, .last_nr = 2}, &e) ==
           -EINVAL);
    EXPECT(compile_error((struct seccomp_policy){.last_nr = SECCOMP_NR_MAX + 1}, &e) == -EINVAL);
    EXPECT(compile_error((struct seccomp_policy){.last_nr = SECCOMP_NR_MAX}, &e) == 0);
}

TEST(explain_names_calls_answers_and_conditions)
{
    struct strbuf out;

    strbuf_init(&out, 1 << 20);
    seccomp_explain(&out);
    EXPECT(!out.truncated);
    EXPECT(strstr(out.buf, "\nbpf                      EPERM\n") != NULL);
    EXPECT(strstr(out.buf, "\nclone3                   ENOSYS\n") != NULL);
    EXPECT(strstr(out.buf, "\nread                     allow\n") != NULL);
    EXPECT(strstr(out.buf,
                  "\nprlimit64                allow: pid 0: the caller itself; else EPERM\n") !=
           NULL);
    strbuf_done(&out);
}

/* ---- loaded ---------------------------------------------------------------------------------- */

/* Runs fn under the filter of a role in a child and returns its wait status. */
static int confined_as(enum seccomp_role role, int (*fn)(void))
{
    int status = -1;
    const struct seccomp_prog *p = program_of(role);
    pid_t pid;

    fflush(stdout);
    pid = fork();
    if (pid == 0) {
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || seccomp_load(p) < 0)
            _exit(250);
        _exit(fn());
    }
    waitpid(pid, &status, 0);
    return status;
}

static int confined(int (*fn)(void))
{
    return confined_as(SECCOMP_PROGRAM, fn);
}

struct attempt {
    const char *what;
    int want; /* errno, 0 = success */
    long nr;
    uint64_t args[5];
};

static const struct attempt attempts[] = {
    {"getpid", 0, SYS_getpid, {0}},
    {"a TCP socket", 0, SYS_socket, {AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0}},
    {"a unix socket", 0, SYS_socket, {AF_UNIX, SOCK_SEQPACKET, 0}},
    {"a route socket", 0, SYS_socket, {AF_NETLINK, SOCK_RAW, 0}},
    {"an uevent socket", EPERM, SYS_socket, {AF_NETLINK, SOCK_RAW, 15}},
    {"an audit socket", EPROTONOSUPPORT, SYS_socket, {AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 9}},
    {"AF_ALG", EPERM, SYS_socket, {38, SOCK_SEQPACKET, 0}},
    {"AF_VSOCK", EPERM, SYS_socket, {40, SOCK_STREAM, 0}},
    {"MPTCP", EPERM, SYS_socket, {AF_INET, SOCK_STREAM, 262}},
    {"TCP_ULP", EPERM, SYS_setsockopt, {~0u, 6, 31}},
    {"TCP_NODELAY", EBADF, SYS_setsockopt, {~0u, 6, 1}},
    {"bpf", EPERM, SYS_bpf, {0}},
    {"io_uring_setup", EPERM, 425, {1}},
    {"clone3", ENOSYS, 435, {0}},
    {"unshare of nothing", EPERM, SYS_unshare, {0}},
    {"clone into a user namespace", EPERM, SYS_clone, {0x10000011}},
    {"the same with high bits", EPERM, SYS_clone, {0x100000010000011}},
    {"ptrace", EPERM, SYS_ptrace, {0}},
    {"a whiteout", EPERM, SYS_mknodat, {~0u, 0, S_IFCHR | 0600}},
    {"a FIFO without a name", EFAULT, SYS_mknodat, {~0u, 0, S_IFIFO | 0600}},
    {"TIOCSTI", EPERM, SYS_ioctl, {~0u, 0x5412}},
    {"TIOCSTI with high bits", EPERM, SYS_ioctl, {~0u, 0x100005412}},
    {"TIOCGWINSZ", EBADF, SYS_ioctl, {~0u, 0x5413}},
    {"limits of pid 1", EPERM, SYS_prlimit64, {1, RLIMIT_CORE}},
    {"own limits", 0, SYS_prlimit64, {0, RLIMIT_CORE}},
    {"query personality", 0, SYS_personality, {0xffffffff}},
    {"no address randomisation", EPERM, SYS_personality, {0x40000}},
    {"a filter", EFAULT, SYS_seccomp, {SECCOMP_SET_MODE_FILTER, 0, 0}},
    {"a filter with a listener", EPERM, SYS_seccomp, {SECCOMP_SET_MODE_FILTER, 8, 0}},
    {"a call of the future", ENOSYS, 500, {0}},
#ifdef __x86_64__
    {"x32 getpid", ENOSYS, 0x40000000 + 39, {0}},
#endif
};

static int results_fd;

static int try_all(void)
{
    for (size_t i = 0; i < ARRAY_SIZE(attempts); i++) {
        const uint64_t *a = attempts[i].args;
        int got = syscall(attempts[i].nr, a[0], a[1], a[2], a[3], a[4]) < 0 ? errno : 0;

        if (write(results_fd, &got, sizeof(got)) != sizeof(got))
            return 1;
    }
    return 0;
}

TEST(kernel_enforces_it)
{
    int fds[2] = {-1, -1}, got;

    EXPECT(pipe2(fds, O_CLOEXEC) == 0);
    results_fd = fds[1];
    EXPECT(confined(try_all) == 0);
    close(fds[1]);
    for (size_t i = 0; i < ARRAY_SIZE(attempts); i++) {
        EXPECT(read(fds[0], &got, sizeof(got)) == sizeof(got));
        if (got != attempts[i].want)
            printf("# %s: errno %d, not %d\n", attempts[i].what, got, attempts[i].want);
        EXPECT(got == attempts[i].want);
    }
    close(fds[0]);
}

/* ---- the other roles ------------------------------------------------------------------------- */

#define S (1u << SECCOMP_SPAWNER)
#define A (1u << SECCOMP_AGENT)
#define Z (1u << SECCOMP_ZYGOTE)
#define B (1u << SECCOMP_BROKER)
#define W (1u << SECCOMP_WARDEN)

static const struct {
    long nr;
    unsigned allowed;
    uint64_t args[3]; /* with these, none that is allowed says EPERM */
} own_calls[] = {
    {SYS_getpid, S | A | Z | B | W, {0}},
    {SYS_socket, S | A | Z | B | W, {AF_NETLINK, SOCK_RAW, 12}},
    {SYS_mount, S | A | W, {0}},
    {SYS_move_mount, S | A | W, {~0u, 0, ~0u}},
    {SYS_fsopen, S | W, {0}},
    {SYS_setns, S | Z | B | W, {~0u}},
    {SYS_unshare, S | B | W, {0}},
    {SYS_ptrace, B | W, {16 /* attach */, 0x7fffffff}},
    {SYS_process_vm_writev, B | W, {0x7fffffff}},
    {SYS_kcmp, B | W, {0x7fffffff, 0x7fffffff}},
    {SYS_bpf, W, {~0u}},
    {SYS_name_to_handle_at, W, {~0u, 0}},
    {SYS_open_by_handle_at, 0, {~0u, 0}},
    {SYS_io_uring_setup, 0, {0}},
    {SYS_userfaultfd, 0, {~0u}},
    {SYS_perf_event_open, 0, {0}},
    {SYS_keyctl, 0, {~0u}},
    {SYS_init_module, 0, {0}},
    {SYS_kexec_load, 0, {0}},
    {SYS_clock_settime, 0, {0}},
    {SYS_pidfd_getfd, 0, {~0u}},
};

static enum seccomp_role tried_role;

static int try_own_calls(void)
{
    for (size_t i = 0; i < ARRAY_SIZE(own_calls); i++) {
        const uint64_t *a = own_calls[i].args;
        bool refused = syscall(own_calls[i].nr, a[0], a[1], a[2], 0, 0) < 0 && errno == EPERM;

        if (refused == !!(own_calls[i].allowed & 1u << tried_role)) {
            printf("# role %d, call %ld: refused %d\n", tried_role, own_calls[i].nr, refused);
            fflush(stdout);
            return 1;
        }
    }
    return 0;
}

TEST(each_role_may_make_its_own_calls_and_no_others)
{
    for (tried_role = SECCOMP_SPAWNER; tried_role <= SECCOMP_WARDEN; tried_role++)
        EXPECT(confined_as(tried_role, try_own_calls) == 0);
}

/* A program's call must pass the filters of all its ancestors, whatever its arguments. */
TEST(ancestors_allow_what_programs_may_do)
{
    static const uint64_t odd[] = {0, 1, 2, 3, 0x10, 0xffffffff};

    for (enum seccomp_role role = SECCOMP_SPAWNER; role <= SECCOMP_WARDEN; role++)
        for (int nr = 0; nr < 512; nr++)
            for (size_t i = 0; i < ARRAY_SIZE(odd) * ARRAY_SIZE(odd); i++) {
                uint64_t a = odd[i % ARRAY_SIZE(odd)], b = odd[i / ARRAY_SIZE(odd)];
                struct seccomp_data d = {.nr = nr, .arch = NATIVE, .args = {a, b, a}};

                if (run(program(), &d) == SECCOMP_RET_ALLOW)
                    EXPECT(run(program_of(role), &d) == SECCOMP_RET_ALLOW);
            }
}

static void *thread_main(void *arg)
{
    *(int *)arg = 42;
    return NULL;
}

static int use_processes_and_threads(void)
{
    int seen = 0, status = -1;
    pthread_t thread;
    pid_t pid;

    if (pthread_create(&thread, NULL, thread_main, &seen) != 0)
        return 1;
    pthread_join(thread, NULL);
    pid = fork();
    if (pid == 0)
        _exit(7);
    if (waitpid(pid, &status, 0) != pid || WEXITSTATUS(status) != 7)
        return 2;
    return seen == 42 ? 0 : 3;
}

TEST(threads_and_children_work)
{
    EXPECT(confined(use_processes_and_threads) == 0);
}

#ifdef __x86_64__
static int old_gate(void)
{
    long r = 20; /* getpid of i386 */

    __asm__ volatile("int $0x80" : "+a"(r) : : "memory", "r8", "r9", "r10", "r11");
    return 0;
}

/* SIGSEGV where the kernel has no 32-bit calls at all. */
TEST(thirty_two_bit_gate_kills)
{
    int status = confined(old_gate);

    EXPECT(WIFSIGNALED(status) && (WTERMSIG(status) == SIGSYS || WTERMSIG(status) == SIGSEGV));
}
#endif

TAP_MAIN
