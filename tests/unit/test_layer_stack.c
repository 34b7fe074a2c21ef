/* Merged layers show what they showed apart, under a real overlay. What fails at random says which
 * sequence it was. */
#include "layer_stack_random.h"

#include <sys/resource.h>

TAP_MAIN

/* Neighbours become one, from the top down so that the rest keeps its place. */
static void merge_runs(struct sandbox *x)
{
    char name[LAYER_NAME];
    unsigned made = 0;

    for (size_t end = x->stack->n; end > 0;) {
        size_t n = 1 + roll((unsigned)end);
        struct sg_error e = {0};
        snprintf(name, sizeof(name), "m%u", ++made);
        if (roll(4)) {
            EXPECT(sandbox_merge(x, end - n, n, name, NULL, 0, &e) == 0);
            EXPECT_STR(e.message, "");
        }
        end -= n;
    }
}

static void merge_sequence(uint64_t number)
{
    AUTO(free_p) char *before = NULL, *after = NULL, *alone = NULL;
    int failed = tap_failures;
    struct bed b;
    struct sandbox x;
    struct stack *old;

    with_numbers = true;
    begin_sequence(&b, &x, number);
    for (unsigned i = 0; i < 2 + number % 6; i++) {
        random_changes(&x);
        sandbox_freeze(&x, &b, NULL);
    }
    old = stack_copy(x.stack);
    before = show(&b, old);
    merge_runs(&x);
    after = show(&b, x.stack);
    EXPECT(is_same(before, after, "merged"));
    remove_others(&x, old);
    alone = show(&b, x.stack);
    EXPECT(is_same(before, alone, "merged, the others gone"));
    stack_free(old);
    end_sequence(&b, &x, number, failed);
}

TEST(random_layer_stack_show_the_same_when_merged)
{
    for (uint64_t i = 0; i < SEQUENCES; i++)
        merge_sequence(i);
}

/* ---- directed -------------------------------------------------------------------------------- */

static int handed_over;

static void take_over(void *arg, int mount, uint32_t first, const char *dir)
{
    (void)arg, (void)first, (void)dir;
    handed_over = fcntl(mount, F_DUPFD_CLOEXEC, 0);
}

static bool goes_to_another(size_t n_files, size_t bytes)
{
    AUTO(free_p) char *text = xcalloc(1, bytes + 1);
    struct scratch *s;
    char name[16];
    int r;

    EXPECT(scratch_make(64u << 20, 10000, &s, NULL) == 0);
    memset(text, 'x', bytes);
    for (size_t i = 0; i < n_files; i++) {
        snprintf(name, sizeof(name), "f%zu", i);
        put_text(s->mount, name, text);
    }
    s->discard = take_over;
    handed_over = -1;
    scratch_release(s);
    r = handed_over;
    close_p(&handed_over);
    return r >= 0;
}

/* It would be freed by whoever closes it, while others wait. */
TEST(a_large_scratch_is_handed_over_when_nobody_uses_it)
{
    EXPECT(!goes_to_another(3, 10));
    EXPECT(goes_to_another(1, 2u << 20));
    EXPECT(goes_to_another(1000, 1));
}

static void layer_dir(struct sandbox *x, const char *path, bool opaque)
{
    AUTO(close_p) int fd = -1;

    EXPECT(mkdirat(x->scratch->mount, path, 0755) == 0);
    fd = openat(x->scratch->mount, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    EXPECT(!opaque || fsetxattr(fd, "user.overlay.opaque", "y", 1, 0) == 0);
}

static bool is_opaque(struct sandbox *x, const char *path)
{
    AUTO(close_p) int fd = openat(x->scratch->mount, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    char v = 0;

    EXPECT(fd >= 0);
    return fgetxattr(fd, "user.overlay.opaque", &v, 1) == 1 && v == 'y';
}

/* Three layers by hand: u1, u2, u3, of which the middle one decides. */
TEST(opaque_where_something_is_hidden)
{
    static const char *const tops[] = {"over_dir",      "over_opaque",  "over_file",
                                       "over_whiteout", "over_nothing", "opaque"};
    struct bed b;
    struct sandbox x;
    int at;
    char path[32];

    bed_begin(&b);
    sandbox_begin(&x, &b, NULL, NULL);
    sandbox_freeze(&x, &b, NULL);
    sandbox_freeze(&x, &b, NULL);
    sandbox_freeze(&x, &b, NULL);
    at = x.scratch->mount;
    for (size_t i = 0; i < ARRAY_SIZE(tops); i++) {
        snprintf(path, sizeof(path), "u1/%s", tops[i]);
        layer_dir(&x, path, false);
        snprintf(path, sizeof(path), "u1/%s/low", tops[i]);
        put_text(at, path, "1");
        snprintf(path, sizeof(path), "u3/%s", tops[i]);
        layer_dir(&x, path, i == 5);
        snprintf(path, sizeof(path), "u3/%s/high", tops[i]);
        put_text(at, path, "3");
    }
    layer_dir(&x, "u2/over_dir", false);
    put_text(at, "u2/over_dir/middle", "2");
    layer_dir(&x, "u2/over_opaque", true);
    put_text(at, "u2/over_opaque/middle", "2");
    put_text(at, "u2/over_file", "2");
    EXPECT(mknodat(at, "u2/over_whiteout", S_IFCHR, makedev(0, 0)) == 0);
    EXPECT(mknodat(at, "u2/whiteout", S_IFCHR, makedev(0, 0)) == 0);

    EXPECT(sandbox_merge(&x, 0, 3, "m", NULL, 0, NULL) == 0);
    EXPECT(!is_opaque(&x, "m/over_dir") && !is_opaque(&x, "m/over_nothing"));
    EXPECT(is_opaque(&x, "m/over_opaque") && is_opaque(&x, "m/over_file"));
    EXPECT(is_opaque(&x, "m/over_whiteout") && is_opaque(&x, "m/opaque"));
    EXPECT(holds(at, "m/over_dir/low", "1") && holds(at, "m/over_dir/middle", "2"));
    EXPECT(holds(at, "m/over_nothing/low", "1"));
    EXPECT(is_absent(at, "m/over_opaque/low") && holds(at, "m/over_opaque/middle", "2"));
    EXPECT(is_absent(at, "m/over_file/low") && is_absent(at, "m/over_whiteout/low"));
    EXPECT(is_absent(at, "m/opaque/low") && holds(at, "m/opaque/high", "3"));
    EXPECT(inode_of(at, "m/whiteout") == inode_of(at, "u2/whiteout"));
    EXPECT(is_absent(at, "aside"));
    sandbox_end(&x);
    bed_end(&b);
}

#define DEEP 5000

/* Deeper than any path can say, and with few descriptors. */
TEST(depth_takes_no_descriptors)
{
    struct rlimit old, few = {.rlim_cur = 64};
    struct bed b;
    struct sandbox x;
    int fd, next;

    bed_begin(&b);
    sandbox_begin(&x, &b, NULL, NULL);
    sandbox_freeze(&x, &b, NULL);
    sandbox_freeze(&x, &b, NULL);
    for (int k = 1; k <= 2; k++) {
        fd = openat(x.scratch->mount, k == 1 ? "u1" : "u2", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        for (int i = 0; i < DEEP; i++, fd = next) {
            EXPECT(mkdirat(fd, "n", 0755) == 0);
            next = openat(fd, "n", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
            close(fd);
        }
        put_text(fd, k == 1 ? "low" : "high", "x");
        close(fd);
    }
    EXPECT(getrlimit(RLIMIT_NOFILE, &old) == 0);
    few.rlim_max = old.rlim_max;
    EXPECT(setrlimit(RLIMIT_NOFILE, &few) == 0);
    EXPECT(sandbox_merge(&x, 0, 2, "m", NULL, 0, NULL) == 0);
    EXPECT(layer_stack_remove(x.scratch->mount, "u1", NULL) == 0);
    EXPECT(layer_stack_remove(x.scratch->mount, "u2", NULL) == 0);
    EXPECT(is_absent(x.scratch->mount, "u1") && is_absent(x.scratch->mount, "u2"));
    EXPECT(setrlimit(RLIMIT_NOFILE, &old) == 0);
    fd = openat(x.scratch->mount, "m", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; i < DEEP; i++, fd = next) {
        next = openat(fd, "n", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        close(fd);
    }
    EXPECT(holds(fd, "low", "x") && holds(fd, "high", "x"));
    close(fd);
    sandbox_end(&x);
    bed_end(&b);
}

TEST(a_failure_leaves_nothing)
{
    static const char *const dirs[] = {"s1", "s2"};
    struct layer_stack_merge m = {.dirs = dirs, .n = 2, .aside = "aside", .name = "m"};
    struct sg_error e = {0};
    struct scratch *s;
    char path[32];

    EXPECT(scratch_make(1u << 20, 60, &s, NULL) == 0);
    m.scratch = s->mount;
    EXPECT(mkdirat(s->mount, "s1", 0755) == 0 && mkdirat(s->mount, "s2", 0755) == 0);
    for (int i = 0; i < 5; i++) {
        snprintf(path, sizeof(path), "s%d/d%d", 1 + i % 2, i);
        EXPECT(mkdirat(s->mount, path, 0755) == 0);
        snprintf(path, sizeof(path), "s%d/d%d/f", 1 + i % 2, i);
        put_text(s->mount, path, "x");
    }
    EXPECT(mkdirat(s->mount, "m", 0755) == 0);
    EXPECT(layer_stack_merge(&m, &e) == -EEXIST && is_absent(s->mount, "aside"));
    EXPECT(unlinkat(s->mount, "m", AT_REMOVEDIR) == 0);

    /* No inode left for its third directory. */
    for (int i = 0; symlinkat("x", s->mount, (char[]){'l', (char)('A' + i), '\0'}) == 0; i++)
        ;
    for (int i = 0; i < 3; i++)
        EXPECT(unlinkat(s->mount, (char[]){'l', (char)('A' + i), '\0'}, 0) == 0);
    EXPECT(layer_stack_merge(&m, &e) == -ENOSPC);
    EXPECT(is_absent(s->mount, "aside") && is_absent(s->mount, "m"));
    EXPECT(holds(s->mount, "s1/d0/f", "x") && holds(s->mount, "s2/d1/f", "x"));
    EXPECT(layer_stack_remove(s->mount, "nothing", NULL) == 0);
    scratch_release(s);
}
