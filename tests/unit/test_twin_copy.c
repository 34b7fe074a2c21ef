/* Copying a process in memory that somebody else can write: the one call that was meant, or none.
 */
#include "twin_rig.h"

#include "inside/broker/frozen_kernels.h"

#if CPU_KNOWN

static void *shared_page(void)
{
    return mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

TEST(a_copy_has_the_memory_and_goes_its_own_way)
{
    struct sg_error e = {0};
    struct twin t = twin_start(NULL, NULL, &e);
    uint64_t at = (uint64_t)(uintptr_t)&tap_failures; /* somewhere in K, too */
    int here = 0, there = 12345, now = 0;
    pid_t copy = 0;

    EXPECT(source_copy(t.h, &t.state, t.call_at, &copy, &e) == 0);
    EXPECT(copy > 0 && copy != t.h);
    EXPECT(tracee_read(copy, at, &here, sizeof(here)) == 0);
    EXPECT(tracee_write(copy, at, &there, sizeof(there)) == 0);
    EXPECT(tracee_read(t.k, at, &now, sizeof(now)) == 0 && now == here);
    EXPECT(tracee_read(t.h, at, &now, sizeof(now)) == 0 && now == here);
    twin_go(&t);
    EXPECT(twin_answers(&t));
    tracee_kill(copy);
    twin_end(&t);
}

TEST(one_after_the_other_can_be_copied_and_copies_too)
{
    struct sg_error e = {0};
    struct twin t = twin_start(NULL, NULL, &e);
    pid_t copies[4] = {0};

    for (int i = 0; i < 4; i++)
        EXPECT(source_copy(i < 2 ? t.h : copies[i - 1], &t.state, t.call_at, &copies[i], &e) == 0);
    for (int i = 0; i < 4; i++)
        tracee_kill(copies[i]);
    twin_go(&t);
    EXPECT(twin_answers(&t));
    twin_end(&t);
}

/* What K has put in the place of the system-call instruction. */
static void refused(const uint8_t *code, size_t len)
{
    struct sg_error e = {0};
    struct twin t = twin_start(NULL, NULL, &e);
    uint8_t before[16];
    pid_t copy = 0;

    EXPECT(tracee_read(t.k, t.call_at, before, len) == 0);
    for (size_t i = 0; i < len; i += sizeof(long)) { /* its code cannot be written otherwise */
        long word;
        memcpy(&word, code + i, sizeof(word));
        EXPECT(ptrace(PTRACE_POKEDATA, t.k, (void *)(uintptr_t)(t.call_at + i), (void *)word) == 0);
    }
    EXPECT(source_copy(t.h, &t.state, t.call_at, &copy, &e) == -ESRCH);
    EXPECT(copy == 0);
    EXPECT(kill(t.h, 0) < 0); /* and reaped */
    EXPECT(kill(t.k, 0) == 0);
    t.h = 0;
    for (size_t i = 0; i < len; i += sizeof(long)) {
        long word;
        memcpy(&word, before + i, sizeof(word));
        ptrace(PTRACE_POKEDATA, t.k, (void *)(uintptr_t)(t.call_at + i), (void *)word);
    }
    twin_go(&t);
    EXPECT(twin_answers(&t)); /* the source is untouched */
    twin_end(&t);
}

TEST(another_call_ends_the_twin)
{
    /* mov eax, getppid; syscall */
    static const uint8_t code[8] = {0xb8, SYS_getppid, 0, 0, 0, 0x0f, 0x05, 0xcc};

    refused(code, sizeof(code));
}

TEST(the_right_call_with_other_arguments_ends_the_twin)
{
    /* mov edi, CLONE_UNTRACED | SIGCHLD; syscall */
    static const uint8_t code[8] = {0xbf, SIGCHLD, 0, 0x80, 0, 0x0f, 0x05, 0xcc};

    refused(code, sizeof(code));
}

TEST(the_right_call_at_another_place_ends_the_twin)
{
    static const uint8_t code[8] = {0x90, 0x90, 0x0f, 0x05, 0xcc, 0xcc, 0xcc, 0xcc};

    refused(code, sizeof(code));
}

TEST(the_call_of_another_processor_mode_ends_the_twin)
{
    static const uint8_t code[8] = {0xcd, 0x80, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc};

    refused(code, sizeof(code));
}

TEST(a_trap_or_a_loop_ends_the_twin)
{
    static const uint8_t trap[8] = {0xcc, 0xcc}, loop[8] = {0xeb, 0xfe}, fault[8] = {0x0f, 0x0b};

    refused(trap, sizeof(trap));
    refused(loop, sizeof(loop));
    refused(fault, sizeof(fault));
}

/* A page of K with a call in it, which another thread of the same memory rewrites all the time. */
struct race {
    uint8_t *code;
    pid_t *racer; /* shared with us */
};

static int race_on(void *arg)
{
    volatile uint16_t *at = arg;

    for (;;) {
        *at = 0x050f; /* syscall */
        *at = 0x9090; /* two that do nothing, and then another call */
    }
    return 0;
}

static void begin_race(void *arg)
{
    static const uint8_t rest[] = {0xb8, SYS_getppid, 0, 0, 0, 0x0f, 0x05, 0xeb, 0xf7};
    struct race *r = arg;
    char *stack = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    memcpy(r->code + 2, rest, sizeof(rest));
    *r->racer = clone(race_on, stack + 65536, CLONE_VM | SIGCHLD, r->code);
    if (*r->racer < 0)
        _exit(1);
}

TEST(who_rewrites_the_instruction_gets_a_copy_or_nothing)
{
    int copied = 0, ended = 0;

    for (int tries = 0; tries < 24; tries++) {
        struct sg_error e = {0};
        struct race r = {.code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
                                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
                         .racer = shared_page()};
        struct twin t = twin_start(begin_race, &r, &e);
        pid_t copy = 0;
        int got = source_copy(t.h, &t.state, (uint64_t)(uintptr_t)r.code, &copy, &e);

        EXPECT(got == 0 || got == -ESRCH);
        EXPECT((got == 0) == (copy > 0));
        copied += got == 0;
        ended += got < 0;
        if (got < 0) {
            EXPECT(kill(t.h, 0) < 0);
            t.h = 0;
        } else {
            tracee_kill(copy);
        }
        EXPECT(kill(t.k, 0) == 0);
        kill(*r.racer, SIGKILL);
        twin_end(&t);
        munmap(r.code, 4096);
        munmap(r.racer, 4096);
    }
    printf("# %d copied, %d ended\n", copied, ended);
    EXPECT(copied + ended == 24);
}

/* ---- sets of frozen kernels ------------------------------------------------------------------ */

struct shared {
    char *page, *hidden;
};

static void share(void *arg)
{
    struct shared *s = arg;

    memcpy(s->page, "before", 7);
    memcpy(s->hidden, "hidden", 7);
    mprotect(s->hidden, 4096, PROT_NONE);
}

static struct inspected inspected_of(pid_t pid)
{
    struct inspected s = {.pid = pid, .inside = pid, .dir = -1};

    EXPECT(procfs_open(pid, &s.dir) == 0);
    EXPECT(procfs_status(s.dir, &s.status) == 0);
    return s;
}

static void says(pid_t pid, const void *at, const char *what)
{
    char text[8] = "";

    EXPECT(tracee_read(pid, (uint64_t)(uintptr_t)at, text, strlen(what) + 1) == 0);
    EXPECT_STR(text, what);
}

TEST(shared_memory_is_the_copys_own)
{
    struct sg_error e = {0};
    struct shared s = {.page = shared_page(), .hidden = shared_page()};
    struct twin t = twin_start(share, &s, &e);
    struct inspected k = inspected_of(t.k);
    struct open_files none = {.n = 0};
    struct look_shared pages = {.n = 2};
    struct frozen_kernels *m = frozen_kernels_new(1, 2);
    pid_t copy = 0;

    pages.all[0].start = (uint64_t)(uintptr_t)s.page;
    pages.all[1].start = (uint64_t)(uintptr_t)s.hidden;
    pages.all[0].len = pages.all[1].len = 4096;
    pages.all[0].prot = PROT_READ | PROT_WRITE;
    EXPECT(frozen_kernels_add(m,
                              &(struct frozen_kernels_spec){.h = t.h,
                                                            .k = &k,
                                                            .state = &t.state,
                                                            .call_at = t.call_at,
                                                            .open_files = &none,
                                                            .shared = &pages,
                                                            .door = -1},
                              &e) == 0);
    EXPECT_STR(e.message, "");
    memcpy(s.page, "after", 6); /* shared with K, and with us */
    says(t.k, s.page, "after");
    struct frozen_kernel *frozen = LIST_FIRST(struct frozen_kernel, &m->kernels, link);
    says(frozen->source.pid, s.page, "before");
    EXPECT(frozen_kernels_copy(frozen, false, &copy, &e) == 0);
    says(copy, s.page, "before");
    EXPECT(tracee_write(copy, (uint64_t)(uintptr_t)s.page, "copy", 5) == 0);
    says(frozen->source.pid, s.page, "before");
    says(t.k, s.page, "after");
    /* What cannot be read is there all the same. */
    EXPECT(tracee_read(copy, (uint64_t)(uintptr_t)s.hidden, &(char){0}, 1) == -EFAULT);
    tracee_kill(copy);
    pid_t pid = frozen->source.pid;
    frozen_kernels_end(m);
    tracee_kill(pid);
    close(k.dir);
    twin_end(&t);
}

#else

TEST(there_is_nothing_to_test_for_this_processor)
{
    EXPECT(!CPU_KNOWN);
}

#endif

TAP_MAIN
