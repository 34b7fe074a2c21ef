#include <sys/resource.h>
#include <sys/wait.h>

#include "lib/text/strbuf.h"
#include "tap.h"

static bool sound(const struct strbuf *s)
{
    return s->buf && s->len <= s->max && s->buf[s->len] == '\0' &&
           (s->cap == 0 || s->len < s->cap) &&
           (s->cap == 0 || s->cap <= s->max + 1 || s->cap <= 64);
}

TEST(starts_empty_without_memory)
{
    struct strbuf s;

    strbuf_init(&s, 100);
    EXPECT(s.len == 0 && s.cap == 0 && !s.truncated);
    EXPECT_STR(s.buf, "");
    strbuf_add(&s, "", 0);
    strbuf_addstr(&s, "");
    strbuf_addf(&s, "%s", "");
    EXPECT(s.cap == 0 && sound(&s));
    strbuf_reset(&s);
    strbuf_consume(&s, 0);
    EXPECT(sound(&s));
    strbuf_done(&s);
}

TEST(done_accepts_a_zeroed_struct_and_twice)
{
    struct strbuf s = {0};

    strbuf_done(&s);
    EXPECT(s.buf != NULL);
    strbuf_done(&s);

    strbuf_init(&s, 10);
    strbuf_addstr(&s, "abc");
    strbuf_done(&s);
    EXPECT(s.len == 0 && s.cap == 0);
    EXPECT_STR(s.buf, "");
    strbuf_done(&s);
}

TEST(appends_of_every_kind)
{
    struct strbuf s;

    strbuf_init(&s, 100);
    strbuf_add(&s, "ab\0c", 4);
    strbuf_addstr(&s, "def");
    strbuf_addch(&s, '-');
    strbuf_addf(&s, "%d/%s", 42, "x");
    EXPECT(s.len == 12 && sound(&s));
    EXPECT(memcmp(s.buf, "ab\0cdef-42/x", 13) == 0);
    EXPECT(!s.truncated);
    strbuf_done(&s);
}

TEST(grows_to_its_bound_exactly)
{
    struct strbuf s;

    strbuf_init(&s, 1000);
    for (int i = 0; i < 1000; i++) {
        strbuf_addch(&s, (char)('a' + i % 26));
        EXPECT(sound(&s));
    }
    EXPECT(s.len == 1000 && !s.truncated);
    strbuf_addch(&s, 'z');
    EXPECT(s.len == 1000 && s.truncated && sound(&s));
    for (int i = 0; i < 1000; i++)
        EXPECT(s.buf[i] == 'a' + i % 26);
    strbuf_done(&s);
}

TEST(append_over_the_bound_keeps_what_fits)
{
    struct strbuf s;

    strbuf_init(&s, 8);
    strbuf_addstr(&s, "12345");
    strbuf_addstr(&s, "6789a");
    EXPECT_STR(s.buf, "12345678");
    EXPECT(s.truncated && sound(&s));

    strbuf_reset(&s);
    EXPECT(!s.truncated && s.len == 0);
    strbuf_addf(&s, "%s", "abcdefghijkl");
    EXPECT_STR(s.buf, "abcdefgh");
    EXPECT(s.truncated && sound(&s));
    strbuf_done(&s);
}

/* Bytes after a gap would be taken for what was cut. */
TEST(nothing_is_added_after_a_cut)
{
    struct strbuf s;

    strbuf_init(&s, 4);
    strbuf_addstr(&s, "12345");
    strbuf_consume(&s, 3);
    strbuf_addstr(&s, "67");
    strbuf_addf(&s, "%d", 8);
    EXPECT_STR(s.buf, "4");
    EXPECT(s.truncated);
    strbuf_reset(&s);
    strbuf_addstr(&s, "9");
    EXPECT_STR(s.buf, "9");
    EXPECT(!s.truncated);
    strbuf_done(&s);
}

TEST(bound_of_zero)
{
    struct strbuf s;

    strbuf_init(&s, 0);
    strbuf_addstr(&s, "");
    EXPECT(!s.truncated);
    strbuf_addch(&s, 'x');
    EXPECT(s.truncated && s.len == 0);
    EXPECT_STR(s.buf, "");
    strbuf_done(&s);

    strbuf_init(&s, 0);
    strbuf_addf(&s, "%d", 1);
    EXPECT(s.truncated && s.len == 0);
    EXPECT_STR(s.buf, "");
    strbuf_done(&s);
}

TEST(bound_as_large_as_it_gets)
{
    struct strbuf s;

    strbuf_init(&s, SIZE_MAX);
    for (int i = 0; i < 5000; i++)
        strbuf_addstr(&s, "0123456789");
    EXPECT(s.len == 50000 && !s.truncated && sound(&s));
    strbuf_done(&s);
}

TEST(format_longer_than_the_space_left)
{
    struct strbuf s;

    strbuf_init(&s, 4096);
    strbuf_addstr(&s, "start:");
    strbuf_addf(&s, "%0500d", 7);
    EXPECT(s.len == 506 && sound(&s));
    EXPECT(memcmp(s.buf, "start:000", 9) == 0 && s.buf[505] == '7');
    strbuf_done(&s);
}

TEST(consume_drops_from_the_front)
{
    struct strbuf s;

    strbuf_init(&s, 100);
    strbuf_addstr(&s, "header body");
    strbuf_consume(&s, 7);
    EXPECT_STR(s.buf, "body");
    strbuf_consume(&s, 0);
    EXPECT_STR(s.buf, "body");
    strbuf_consume(&s, 4);
    EXPECT(s.len == 0 && sound(&s));
    strbuf_addstr(&s, "again");
    EXPECT_STR(s.buf, "again");
    strbuf_done(&s);
}

TEST(detach_gives_the_memory_away)
{
    struct strbuf s;
    size_t len = 99;

    strbuf_init(&s, 10);
    strbuf_addstr(&s, "text");
    AUTO(free_p) char *text = strbuf_detach(&s, &len);
    EXPECT_STR(text, "text");
    EXPECT(len == 4 && s.len == 0 && s.cap == 0 && s.max == 10);

    strbuf_addstr(&s, "new");
    EXPECT_STR(text, "text");
    EXPECT_STR(s.buf, "new");
    strbuf_done(&s);
}

TEST(detach_of_an_empty_buffer_is_heap_memory_too)
{
    struct strbuf s;

    strbuf_init(&s, 10);
    char *text = strbuf_detach(&s, NULL);
    EXPECT_STR(text, "");
    text[0] = '\0';
    free(text);
    strbuf_done(&s);
}

/* The sanitizers' allocator would end the program instead of failing, as malloc does by default. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
__attribute__((visibility("default"))) const char *__tsan_default_options(void);

const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

const char *__tsan_default_options(void)
{
    return "allocator_may_return_null=1";
}

TEST(no_memory_marks_the_buffer)
{
    struct strbuf s;

    strbuf_init(&s, SIZE_MAX);
    strbuf_addstr(&s, "kept");
    /* 64 PiB are beyond any address space: the allocation fails before a byte is read. */
    strbuf_add(&s, "x", (size_t)1 << 56);
    EXPECT(s.truncated && sound(&s));
    EXPECT_STR(s.buf, "kept");
    strbuf_done(&s);
}

/* True if fn does not return in a child process. */
static bool dies(void (*fn)(void))
{
    fflush(stdout);
    pid_t pid = fork();

    if (pid == 0) {
        setrlimit(RLIMIT_CORE, &(struct rlimit){0});
        close(STDERR_FILENO);
        fn();
        _exit(0);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    return !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}

static void consume_too_much(void)
{
    struct strbuf s;

    strbuf_init(&s, 10);
    strbuf_addstr(&s, "abc");
    strbuf_consume(&s, 4);
}

static void allocate_too_much(void)
{
    volatile size_t n = SIZE_MAX;

    free(xcalloc(n, 2));
}

TEST(our_mistakes_end_the_program)
{
    EXPECT(dies(consume_too_much));
    EXPECT(dies(allocate_too_much));
}

TEST(xcalloc_is_zeroed_and_xstrdup_copies)
{
    AUTO(free_p) unsigned char *p = xcalloc(100, 7);
    AUTO(free_p) char *copy = xstrdup("text");
    unsigned sum = 0;

    for (size_t i = 0; i < 700; i++)
        sum += p[i];
    EXPECT(sum == 0);
    EXPECT_STR(copy, "text");
}

TAP_MAIN

/* What was written while it grew would stay behind in memory. */
TEST(reserved_it_does_not_move)
{
    struct strbuf s;

    strbuf_init(&s, 100000);
    strbuf_reserve(&s);
    const char *at = s.buf;
    EXPECT(s.len == 0 && !s.truncated && s.buf[0] == '\0');
    for (int i = 0; i < 10000; i++)
        strbuf_addstr(&s, "0123456789");
    EXPECT(s.buf == at && s.len == 100000 && !s.truncated);
    strbuf_wipe(&s);
    EXPECT(s.len == 0 && s.cap == 0 && s.buf[0] == '\0');
    strbuf_wipe(&s);
}
