/* Trees that are copied while somebody writes to them: what changes between two reads is changed by the
 * pass's own callback, so nothing here depends on time. */
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "front/backup/tree.h"
#include "lib/base/fd.h"
#include "tap.h"

TAP_MAIN

static char top[64];
static int from = -1, to = -1;

static void begin(void)
{
    snprintf(top, sizeof(top), "/tmp/tree.XXXXXX");
    EXPECT(mkdtemp(top) != NULL);
    int dir = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    EXPECT(mkdirat(dir, "from", 0755) == 0 && mkdirat(dir, "to", 0755) == 0);
    from = openat(dir, "from", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    to = openat(dir, "to", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    EXPECT(from >= 0 && to >= 0);
    close(dir);
}

static void end(void)
{
    close_p(&from);
    close_p(&to);
    EXPECT(tree_drop(AT_FDCWD, top) == 0);
}

static void put(const char *name, const char *text)
{
    AUTO(close_p) int fd = openat(from, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    EXPECT(fd >= 0 && fd_write_all(fd, text, strlen(text)) == 0);
}

static void expect_copy(const char *name, const char *text)
{
    AUTO(free_p) char *copy = NULL;

    EXPECT(file_read(to, name, 1u << 20, &copy, NULL) == 0);
    EXPECT_STR(copy ? copy : "(nothing)", text);
}

static bool is_there(const char *name)
{
    return faccessat(to, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Copies, and then takes the checksum of the copy, as a backup does. */
static int copy(void (*meanwhile)(void *arg, uint64_t bytes), void *arg, struct tree_sum *ret)
{
    struct tree_pass pass = {
        .from = from, .to = to, .live = true, .progress = meanwhile, .arg = arg};
    struct tree_pass again = {.from = to, .to = -1};
    struct tree_sum sum;
    struct sg_error e = {0};
    int r = tree_pass(&pass, ret, &e);

    if (r < 0)
        printf("# %s\n", e.message);
    EXPECT(r < 0 || tree_pass(&again, &sum, &e) == 0);
    return r;
}

static void change_once(void *arg, uint64_t bytes UNUSED)
{
    unsigned *left = arg;

    if (*left > 0)
        put("f", "newer and longer");
    *left -= *left > 0;
}

static void grow(void *arg, uint64_t bytes UNUSED)
{
    AUTO(close_p) int fd = openat(from, "f", O_WRONLY | O_APPEND | O_CLOEXEC);

    ++*(unsigned *)arg;
    EXPECT(fd_write_all(fd, "more", 4) == 0);
}

TEST(a_file_that_changes_is_copied_again)
{
    struct tree_sum sum;
    unsigned left = 1;

    begin();
    put("f", "old");
    EXPECT(copy(change_once, &left, &sum) == 0 && sum.torn == 0 && left == 0);
    expect_copy("f", "newer and longer");
    end();
}

TEST(a_file_that_always_changes_is_counted)
{
    struct tree_sum sum;
    unsigned times = 0;

    begin();
    put("f", "old");
    EXPECT(copy(grow, &times, &sum) == 0 && sum.torn == 1 && times == 3);
    end();
}

/* Called after the first file was read; the names of the directory have been read before. */
static void trouble(void *arg, uint64_t bytes UNUSED)
{
    bool *done = arg;

    if (*done)
        return;
    *done = true;
    EXPECT(unlinkat(from, "b-gone", 0) == 0);
    EXPECT(unlinkat(from, "c-dir/file", 0) == 0 && unlinkat(from, "c-dir", AT_REMOVEDIR) == 0);
    EXPECT(unlinkat(from, "d-file", 0) == 0 && symlinkat("/etc/passwd", from, "d-file") == 0);
    EXPECT(unlinkat(from, "e-link", 0) == 0 && mkfifoat(from, "e-link", 0600) == 0);
    EXPECT(unlinkat(from, "f-dir", AT_REMOVEDIR) == 0 && symlinkat("/etc", from, "f-dir") == 0);
}

TEST(what_goes_meanwhile_is_left_out_and_nothing_is_followed)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    AUTO(close_p) int sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct tree_sum sum;
    struct stat st;
    bool done = false;

    begin();
    put("a-first", "first");
    put("b-gone", "b");
    EXPECT(mkdirat(from, "c-dir", 0755) == 0 && mkdirat(from, "f-dir", 0755) == 0);
    put("c-dir/file", "c");
    put("d-file", "d");
    EXPECT(symlinkat("x", from, "e-link") == 0);
    put("g-last", "last");
    snprintf(name.sun_path, sizeof(name.sun_path), "%.40s/from/h-socket", top);
    EXPECT(bind(sock, (struct sockaddr *)&name, sizeof(name)) == 0);
    EXPECT(copy(trouble, &done, &sum) == 0 && done);
    expect_copy("a-first", "first");
    expect_copy("g-last", "last");
    EXPECT(!is_there("b-gone") && !is_there("c-dir") && !is_there("h-socket"));
    /* What took a place meanwhile is copied as what it is. */
    EXPECT(fstatat(to, "d-file", &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode));
    EXPECT(fstatat(to, "f-dir", &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode));
    EXPECT(fstatat(to, "e-link", &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISFIFO(st.st_mode));
    end();
}

TEST(a_tree_that_nobody_writes_to_must_not_change)
{
    struct tree_pass pass = {.from = -1, .to = -1};
    struct sg_error e = {0};
    struct tree_sum sum;
    bool done = false;

    begin();
    put("a-first", "first");
    put("b-gone", "b");
    EXPECT(mkdirat(from, "c-dir", 0755) == 0 && mkdirat(from, "f-dir", 0755) == 0);
    put("c-dir/file", "c");
    put("d-file", "d");
    put("e-link", "e");
    pass.from = from;
    pass.progress = trouble;
    pass.arg = &done;
    EXPECT(tree_pass(&pass, &sum, &e) < 0 && strstr(e.message, "b-gone"));
    end();
}

static void sum_of(const char *name, bool old, struct tree_sum *ret)
{
    AUTO(close_p) int dir = openat(from, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct tree_pass pass = {.from = dir, .to = -1, .old_sums = old};
    struct sg_error e = {0};

    EXPECT(tree_pass(&pass, ret, &e) == 0);
}

/* A mebibyte of zeros and a word, as a hole or written out; or more of them. */
static void put_zeros(const char *name, size_t zeros, bool hole)
{
    AUTO(close_p) int fd = openat(from, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    AUTO(free_p) char *text = xcalloc(1, zeros);

    EXPECT(fd >= 0 && (hole || pwrite(fd, text, zeros, 0) == (ssize_t)zeros));
    EXPECT(pwrite(fd, "end", 3, (off_t)zeros) == 3);
}

TEST(the_checksum_is_of_what_is_in_a_file_not_of_where_its_holes_are)
{
    struct tree_sum hole, zeros, longer, old;

    begin();
    EXPECT(mkdirat(from, "1", 0755) == 0 && mkdirat(from, "2", 0755) == 0 &&
           mkdirat(from, "3", 0755) == 0);
    put_zeros("1/f", 1u << 20, true);
    put_zeros("2/f", 1u << 20, false);
    put_zeros("3/f", (1u << 20) + (256u << 10), true);
    sum_of("1", false, &hole);
    sum_of("2", false, &zeros);
    sum_of("3", false, &longer);
    EXPECT_STR(hole.sha256, zeros.sha256);
    EXPECT(strcmp(hole.sha256, longer.sha256) != 0);
    EXPECT(hole.bytes < zeros.bytes);
    sum_of("1", true, &old);
    sum_of("2", true, &zeros);
    EXPECT_STR(old.sha256, zeros.sha256);
    EXPECT(strcmp(old.sha256, hole.sha256) != 0 && old.bytes == zeros.bytes);
    end();
}
