/* Inode numbers of files that are open for writing while their sandbox is frozen, over and over. */
#include "layer_stack_random.h"

#include "inside/files/layer_stack_origin.h"

TAP_MAIN

#define PATHS(...) ((const char *const[]){__VA_ARGS__, NULL})

TEST(a_number_stays_over_freezes_and_on_other_disks)
{
    struct bed b;
    struct sandbox a, other, again;
    char text[24];
    ino_t number;

    bed_begin(&b);
    sandbox_begin(&a, &b, NULL, NULL);
    inside(true);
    EXPECT(mkdirat(a.root, "d", 0750) == 0);
    put_text(a.root, "d/db", "0");
    number = inode_of(a.root, "d/db");
    for (int i = 1; i <= 5; i++) {
        inside(false);
        sandbox_freeze(&a, &b, PATHS("/d/db"));
        inside(true);
        EXPECT(inode_of(a.root, "d/db") == number);
        snprintf(text, sizeof(text), "%d", i - 1);
        EXPECT(holds(a.root, "d/db", text));
        snprintf(text, sizeof(text), "%d", i);
        put_text(a.root, "d/db", text);
        EXPECT(inode_of(a.root, "d/db") == number);
    }
    for (int i = 0; i < 5; i++) {
        snprintf(text, sizeof(text), "u%d/d/db", i + 1);
        EXPECT(holds(a.scratch->mount, text, (char[]){(char)('0' + i), '\0'}));
    }
    inside(false);

    /* A branch of the first checkpoint, and one of the last; and a branch of a branch. */
    a.stack->n = 1;
    sandbox_begin(&other, &b, a.stack, PATHS("/d/db"));
    EXPECT(inode_of(other.root, "d/db") == number && holds(other.root, "d/db", "0"));
    sandbox_end(&other);
    a.stack->n = 5;
    sandbox_begin(&other, &b, a.stack, PATHS("/d/db"));
    EXPECT(inode_of(other.root, "d/db") == number && holds(other.root, "d/db", "4"));
    inside(true);
    put_text(other.root, "d/db", "branch");
    inside(false);
    for (int i = 0; i < 3; i++)
        sandbox_freeze(&other, &b, PATHS("/d/db"));
    EXPECT(inode_of(other.root, "d/db") == number && holds(other.root, "d/db", "branch"));
    sandbox_begin(&again, &b, other.stack, PATHS("/d/db"));
    EXPECT(inode_of(again.root, "d/db") == number && holds(again.root, "d/db", "branch"));
    EXPECT(holds(a.root, "d/db", "5"));
    sandbox_end(&again);
    sandbox_end(&other);
    sandbox_end(&a);
    bed_end(&b);
}

/* What our copy says of its origin is what the kernel's own says. */
TEST(the_origin_is_as_the_overlay_writes_it)
{
    struct bed b;
    struct sandbox a;
    struct origin kernels, ours;
    int fd, frozen;

    bed_begin(&b);
    sandbox_begin(&a, &b, NULL, NULL);
    inside(true);
    put_text(a.root, "f", "x");
    inside(false);
    sandbox_freeze(&a, &b, NULL);
    inside(true);
    put_text(a.root, "f", "y");
    inside(false);
    fd = openat(a.scratch->mount, "u2/f", O_RDONLY | O_CLOEXEC);
    frozen = openat(a.scratch->mount, "u1/f", O_RDONLY | O_CLOEXEC);
    EXPECT(origin_get(fd, &kernels) == 0 && origin_make(frozen, &ours) == 0);
    EXPECT(kernels.len == ours.len && memcmp(kernels.v, ours.v, ours.len) == 0);
    EXPECT(origin_get(frozen, &ours) == -ENODATA);
    close(frozen);
    close(fd);
    sandbox_end(&a);
    bed_end(&b);
}

/* Opened in the third layer after it came to be in the first, or in the template. */
TEST(what_the_overlay_copied_up_keeps_its_number)
{
    struct bed b;
    struct sandbox a;
    ino_t old, base;

    bed_begin(&b);
    put_text(b.template, "base", "t");
    sandbox_begin(&a, &b, NULL, NULL);
    inside(true);
    put_text(a.root, "old", "1");
    put_text(a.root, "other", "1");
    inside(false);
    sandbox_freeze(&a, &b, NULL);
    inside(true);
    put_text(a.root, "other", "2");
    old = inode_of(a.root, "old");
    base = inode_of(a.root, "base");
    inside(false);
    sandbox_freeze(&a, &b, PATHS("/old", "/base")); /* not copied up: nothing to be done */
    EXPECT(is_absent(a.scratch->mount, "u3/base"));
    inside(true);
    put_text(a.root, "old", "3");
    put_text(a.root, "base", "3");
    EXPECT(inode_of(a.root, "old") == old && inode_of(a.root, "base") == base);
    inside(false);
    for (int i = 0; i < 3; i++) {
        sandbox_freeze(&a, &b, PATHS("/old", "/base"));
        EXPECT(inode_of(a.root, "old") == old && inode_of(a.root, "base") == base);
    }
    EXPECT(holds(a.root, "old", "3") && holds(a.root, "base", "3"));
    sandbox_end(&a);
    bed_end(&b);
}

/* Merging the layers and removing what they were of changes no number, neither of what was taken
 * along nor of what a sandbox has copied up since. */
TEST(numbers_stay_when_layer_stack_are_merged_and_removed)
{
    struct bed b;
    struct sandbox a, late;
    ino_t db, log;
    int uppers[2];

    bed_begin(&b);
    sandbox_begin(&a, &b, NULL, NULL);
    inside(true);
    put_text(a.root, "db", "0");
    put_text(a.root, "log", "0");
    put_text(a.root, "still", "0");
    db = inode_of(a.root, "db");
    log = inode_of(a.root, "log");
    inside(false);
    sandbox_freeze(&a, &b, PATHS("/db"));
    sandbox_freeze(&a, &b, PATHS("/db"));
    inside(true);
    put_text(a.root, "log", "1"); /* copied up after it was frozen */
    put_text(a.root, "db", "1");
    inside(false);
    sandbox_begin(&late, &b, a.stack, PATHS("/db"));

    uppers[0] = openat(a.scratch->mount, a.upper, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    uppers[1] = openat(late.scratch->mount, late.upper, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    EXPECT(sandbox_merge(&a, 0, 2, "m1", uppers, 2, NULL) == 0);
    EXPECT(inode_of(a.root, "db") == db && inode_of(a.root, "log") == log);
    EXPECT(inode_of(late.root, "db") == db);
    EXPECT(inode_of(a.scratch->mount, "m1/still") == inode_of(a.scratch->mount, "u1/still"));
    EXPECT(inode_of(a.scratch->mount, "m1/log") != inode_of(a.scratch->mount, "u1/log"));
    sandbox_end(&late);

    /* It goes on over the merged one, and the others go. */
    sandbox_freeze(&a, &b, PATHS("/db", "/log"));
    EXPECT(layer_stack_remove(a.scratch->mount, "u1", NULL) == 0);
    EXPECT(layer_stack_remove(a.scratch->mount, "u2", NULL) == 0);
    EXPECT(is_absent(a.scratch->mount, "u1"));
    EXPECT(inode_of(a.root, "db") == db && inode_of(a.root, "log") == log);
    sandbox_freeze(&a, &b, PATHS("/db", "/log"));
    EXPECT(sandbox_merge(&a, 0, a.stack->n, "m2", NULL, 0, NULL) == 0);
    sandbox_freeze(&a, &b, PATHS("/db", "/log"));
    EXPECT(layer_stack_remove(a.scratch->mount, "m1", NULL) == 0);
    EXPECT(layer_stack_remove(a.scratch->mount, "u3", NULL) == 0);
    EXPECT(layer_stack_remove(a.scratch->mount, "u4", NULL) == 0);
    EXPECT(inode_of(a.root, "db") == db && inode_of(a.root, "log") == log);
    EXPECT(holds(a.root, "db", "1") && holds(a.root, "log", "1") && holds(a.root, "still", "0"));
    sandbox_begin(&late, &b, a.stack, PATHS("/db"));
    EXPECT(inode_of(late.root, "db") == db && holds(late.root, "db", "1"));
    sandbox_end(&late);
    close(uppers[0]);
    close(uppers[1]);
    sandbox_end(&a);
    bed_end(&b);
}

TEST(what_is_too_large_is_left_to_the_overlay)
{
    struct carry_budget left = {.files = 9, .steps = 1000, .bytes = 4096};
    struct bed b;
    struct sandbox a;
    struct stat st;

    bed_begin(&b);
    sandbox_begin(&a, &b, NULL, NULL);
    inside(true);
    put_text(a.root, "one", "x");
    put_text(a.root, "two", "x");
    inside(false);
    sandbox_freeze(&a, &b, NULL);
    EXPECT(carry(&a, "/one", &left) == 0);
    EXPECT(left.bytes == 0 && left.files == 8);
    EXPECT(carry(&a, "/two", &left) == 0);
    EXPECT(left.files == 8);
    int upper = openat(a.scratch->mount, a.upper, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    EXPECT(fstatat(upper, "one", &st, 0) == 0 && fstatat(upper, "two", &st, 0) < 0);
    close(upper);
    sandbox_end(&a);
    bed_end(&b);
}

/* A directory below a directory, so often; `file` is in the last. */
static void make_deep(int root, size_t depth, const char *file, char ret_path[PATH_MAX])
{
    int at = fcntl(root, F_DUPFD_CLOEXEC, 0);
    AUTO(strbuf_done) struct strbuf path = {0};

    strbuf_init(&path, PATH_MAX);
    for (size_t i = 0; i < depth; i++) {
        EXPECT(mkdirat(at, "d", 0755) == 0 || errno == EEXIST);
        int in = openat(at, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        EXPECT(in >= 0);
        close(at);
        at = in;
        strbuf_addf(&path, "/d");
    }
    put_text(at, file, "x");
    close(at);
    strbuf_addf(&path, "/%s", file);
    snprintf(ret_path, PATH_MAX, "%s", path.buf);
}

static bool was_carried(const struct sandbox *a, const char *path)
{
    int upper = openat(a->scratch->mount, a->upper, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct stat st;
    bool there = fstatat(upper, path + 1, &st, AT_SYMLINK_NOFOLLOW) == 0;

    close(upper);
    return there;
}

TEST(what_is_deep_is_left_to_the_overlay)
{
    struct carry_budget left = CARRY_BUDGET;
    char fits[PATH_MAX], deep[PATH_MAX];
    struct bed b;
    struct sandbox a;

    bed_begin(&b);
    sandbox_begin(&a, &b, NULL, NULL);
    inside(true);
    make_deep(a.root, CARRY_PARTS_MAX - 1, "fits", fits);
    make_deep(a.root, CARRY_PARTS_MAX, "deep", deep);
    inside(false);
    sandbox_freeze(&a, &b, NULL);
    EXPECT(carry(&a, deep, &left) == 0);
    EXPECT(!was_carried(&a, deep) && left.files == 64);
    EXPECT(carry(&a, fits, &left) == 0);
    EXPECT(was_carried(&a, fits) && left.files == 63);
    sandbox_end(&a);
    bed_end(&b);
}

/* Of many files in a tall stack some come along, and what that costs is bounded. */
TEST(a_budget_for_all_files_together)
{
    struct carry_budget left = CARRY_BUDGET;
    char path[32], deep[PATH_MAX];
    size_t carried = 0;
    struct bed b;
    struct sandbox a;

    bed_begin(&b);
    sandbox_begin(&a, &b, NULL, NULL);
    for (unsigned layer = 0; layer < 20; layer++) {
        inside(true);
        make_deep(a.root, 20, "file", deep);
        for (unsigned i = 0; i < 5; i++) {
            snprintf(path, sizeof(path), "f%u", layer * 5 + i);
            put_text(a.root, path, "x");
        }
        inside(false);
        sandbox_freeze(&a, &b, NULL);
    }
    for (unsigned i = 0; i < 100; i++) {
        snprintf(path, sizeof(path), "/f%u", i);
        EXPECT(carry(&a, path, &left) == 0);
        carried += was_carried(&a, path);
    }
    EXPECT(carried >= 10 && carried <= 64);
    left.steps = 300; /* a way of 20 through 20 layers takes more */
    left.files = 1;
    EXPECT(carry(&a, deep, &left) == 0);
    EXPECT(!was_carried(&a, deep) && left.files == 1);
    sandbox_end(&a);
    bed_end(&b);
}

/* Attributes are bytes too, also those of directories on the way. */
TEST(attributes_count)
{
    static char value[30000];
    struct carry_budget left = {.files = 9, .steps = 1000, .bytes = 8192};
    struct bed b;
    struct sandbox a;
    int fd;

    memset(value, 'v', sizeof(value));
    bed_begin(&b);
    sandbox_begin(&a, &b, NULL, NULL);
    inside(true);
    EXPECT(mkdirat(a.root, "dir", 0755) == 0);
    fd = openat(a.root, "dir", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    EXPECT(fsetxattr(fd, "user.much", value, sizeof(value), 0) == 0);
    put_text(fd, "file", "x");
    close(fd);
    inside(false);
    sandbox_freeze(&a, &b, NULL);
    EXPECT(carry(&a, "/dir/file", &left) == 0);
    EXPECT(!was_carried(&a, "/dir"));
    left.bytes = 65536;
    EXPECT(carry(&a, "/dir/file", &left) == 0);
    EXPECT(was_carried(&a, "/dir/file") && left.bytes < 65536 - sizeof(value));
    sandbox_end(&a);
    bed_end(&b);
}

TEST(looks_of_files_and_their_directories)
{
    struct timespec times[2] = {{.tv_sec = 5, .tv_nsec = 6}, {.tv_sec = 7, .tv_nsec = 8}};
    struct bed b;
    struct sandbox a;
    struct stat st;
    char value[8] = "";
    int fd, up;

    bed_begin(&b);
    EXPECT(mkdirat(b.template, "d", 0755) == 0 && mkdirat(b.template, "d/e", 0755) == 0);
    put_text(b.template, "d/e/below", "t");
    sandbox_begin(&a, &b, NULL, NULL);
    inside(true);
    EXPECT(unlinkat(a.root, "d/e/below", 0) == 0 && unlinkat(a.root, "d/e", AT_REMOVEDIR) == 0);
    EXPECT(mkdirat(a.root, "d/e", 0700) == 0); /* opaque */
    put_text(a.root, "d/e/new", "n");
    fd = openat(a.root, "d/e/f", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    EXPECT(pwrite(fd, "end", 3, 40 << 20) == 3);
    EXPECT(fsetxattr(fd, "user.k", "value", 5, 0) == 0);
    EXPECT(fchown(fd, FIRST_ID + 1000, FIRST_ID + 65535) == 0 && fchmod(fd, 0754) == 0);
    EXPECT(futimens(fd, times) == 0);
    close(fd);
    EXPECT(fchownat(a.root, "d/e", FIRST_ID + 7, FIRST_ID + 8, 0) == 0);
    EXPECT(fchmodat(a.root, "d/e", 03771, 0) == 0);
    EXPECT(utimensat(a.root, "d/e", times, 0) == 0 && utimensat(a.root, "d", times, 0) == 0);
    inside(false);
    sandbox_freeze(&a, &b, PATHS("/d/e/f", "/d/e/f", "//d/e/new"));

    for (int i = 0; i < 2; i++) {
        const char *path = i ? "d/e" : "d";
        EXPECT(fstatat(a.root, path, &st, 0) == 0);
        EXPECT(st.st_mtim.tv_sec == 7 && st.st_mtim.tv_nsec == 8);
    }
    EXPECT(st.st_uid == FIRST_ID + 7 && st.st_gid == FIRST_ID + 8);
    EXPECT((st.st_mode & 07777) == 03771);
    EXPECT(fstatat(a.root, "d/e/f", &st, 0) == 0 && (st.st_mode & 07777) == 0754);
    EXPECT(st.st_uid == FIRST_ID + 1000 && st.st_gid == FIRST_ID + 65535);
    EXPECT(st.st_mtim.tv_sec == 7 && st.st_atim.tv_nsec == 6);
    EXPECT(st.st_size == (40 << 20) + 3 && st.st_blocks < 1000);
    fd = openat(a.root, "d/e/f", O_RDONLY | O_CLOEXEC);
    EXPECT(fgetxattr(fd, "user.k", value, sizeof(value)) == 5);
    EXPECT(pread(fd, value, 3, 40 << 20) == 3 && memcmp(value, "end", 3) == 0);
    close(fd);
    up = openat(a.scratch->mount, "u2/d/e", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    EXPECT(up >= 0 && fgetxattr(up, "user.overlay.opaque", value, 1) < 0);
    close(up);
    EXPECT(is_absent(a.root, "d/e/below") && holds(a.root, "d/e/new", "n"));
    sandbox_end(&a);
    bed_end(&b);
}

TEST(what_is_not_taken_along)
{
    struct bed b;
    struct sandbox a;
    struct stat st;
    char deep[PATH_MAX];

    bed_begin(&b);
    sandbox_begin(&a, &b, NULL, NULL);
    inside(true);
    EXPECT(mkdirat(a.root, "d", 0755) == 0 && mkdirat(a.root, "gone", 0755) == 0);
    EXPECT(mkfifoat(a.root, "fifo", 0644) == 0 && symlinkat("d", a.root, "link") == 0);
    put_text(a.root, "d/f", "x");
    put_text(a.root, "gone/f", "x");
    put_text(a.root, "removed", "x");
    inside(false);
    sandbox_freeze(&a, &b, NULL);
    inside(true);
    EXPECT(unlinkat(a.root, "gone/f", 0) == 0 && unlinkat(a.root, "gone", AT_REMOVEDIR) == 0);
    EXPECT(unlinkat(a.root, "removed", 0) == 0);
    put_text(a.root, "gone", "a file now");
    inside(false);
    for (size_t i = 0; i + 2 < sizeof(deep); i += 2)
        memcpy(deep + i, "/x", 3);
    sandbox_freeze(&a, &b,
                   PATHS("/d", "/fifo", "/link", "/link/f", "/gone/f", "/removed", "/nowhere", "/",
                         "", "/d/../d/f", "/d/f/f", deep));
    EXPECT(scratch_is_empty(a.scratch, a.upper, NULL) == 1);

    /* Two names of one file become two files, as the overlay has it. */
    inside(true);
    EXPECT(linkat(a.root, "d/f", a.root, "same", 0) == 0);
    inside(false);
    sandbox_freeze(&a, &b, PATHS("/d/f", "/same"));
    EXPECT(holds(a.root, "d/f", "x") && holds(a.root, "same", "x"));
    EXPECT(fstatat(a.root, "same", &st, 0) == 0 && st.st_nlink == 1);
    EXPECT(inode_of(a.root, "d/f") != inode_of(a.root, "same"));
    sandbox_end(&a);
    bed_end(&b);
}

/* ---- at random ------------------------------------------------------------------------------- */

#define OPEN_MAX 4

struct open_files {
    char paths[OPEN_MAX][66]; /* absolute */
    const char *list[OPEN_MAX + 1];
    ino_t numbers[OPEN_MAX];
    size_t n;
};

/* Opening for writing has the overlay copy it up. */
static void open_some(struct open_files *o, const struct sandbox *x)
{
    struct open_how how = {.flags = O_RDWR | O_NONBLOCK | O_CLOEXEC,
                           .resolve = RESOLVE_NO_SYMLINKS};

    *o = (struct open_files){0};
    inside(true);
    for (unsigned i = 0; i < OPEN_MAX; i++) {
        char *path = o->paths[o->n];
        struct stat st;
        path[0] = '/';
        random_path(path + 1);
        if (i == 0)
            snprintf(path, sizeof(o->paths[0]), "/db");
        AUTO(close_p) int fd = sys_openat2(x->root, path + 1, &how);
        if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_nlink > 1)
            continue;
        o->numbers[o->n] = st.st_ino;
        o->list[o->n++] = path;
    }
    inside(false);
}

static void check_open(const struct open_files *o, const struct sandbox *x, const char *when)
{
    for (size_t i = 0; i < o->n; i++)
        if (inode_of(x->root, o->paths[i] + 1) != o->numbers[i]) {
            printf("# %s: '%s' has another number\n", when, o->paths[i]);
            EXPECT(false);
        }
}

static void move_on(const struct bed *b, struct sandbox *x, unsigned round)
{
    AUTO(free_p) char *before = NULL, *after = NULL;
    AUTO(close_p) int upper = -1;
    struct open_files o;
    struct stack *old;
    char name[LAYER_NAME];

    random_changes(x);
    open_some(&o, x);
    EXPECT(o.n > 0);
    before = show_root(x->root);
    old = stack_copy(x->stack);
    upper = openat(x->scratch->mount, x->upper, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    snprintf(name, sizeof(name), "m%u", round);
    if (old->n > 1 && roll(3) == 0)
        EXPECT(sandbox_merge(x, 0, 2 + roll((unsigned)old->n - 1), name, &upper, 1, NULL) == 0);
    check_open(&o, x, "merged");
    sandbox_freeze(x, b, o.list);
    check_open(&o, x, "frozen");
    remove_others(x, old);
    check_open(&o, x, "removed");
    after = show_root(x->root);
    EXPECT(is_same(before, after, "taken along"));
    stack_free(old);
}

static void carry_sequence(uint64_t number)
{
    int failed = tap_failures;
    struct bed b;
    struct sandbox x;
    ino_t db;

    with_numbers = false;
    begin_sequence(&b, &x, number);
    inside(true);
    put_text(x.root, "db", "first");
    db = inode_of(x.root, "db");
    inside(false);
    for (unsigned i = 0; i < 8; i++)
        move_on(&b, &x, i);
    EXPECT(inode_of(x.root, "db") == db && holds(x.root, "db", "first"));
    end_sequence(&b, &x, number, failed);
}

TEST(random_files_are_taken_along_unchanged)
{
    for (uint64_t i = 0; i < SEQUENCES; i++)
        carry_sequence(i);
}
