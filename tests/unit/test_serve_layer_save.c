/* A layer written from an upper directory and the layer below it. Root only, like the rest of the
 * warden's tests. */
#include "tap.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#include "lib/base/fd.h"
#include "lib/base/sys.h"
#include "inside/files/layer_save.h"
#include "warden/layers/tree.h"

TAP_MAIN

#define FIRST_ID 0x20000000u

static char top[] = "/var/tmp/sandglass-layer.XXXXXX";
static int top_fd = -1;

static void begin(void)
{
    memcpy(top + strlen(top) - 6, "XXXXXX", 6);
    EXPECT(mkdtemp(top) != NULL);
    top_fd = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    EXPECT(top_fd >= 0);
    for (size_t i = 0; i < 3; i++)
        EXPECT(mkdirat(top_fd, (const char *[]){"upper", "below", "out"}[i], 0755) == 0);
}

static void end(void)
{
    close(top_fd);
    EXPECT(tree_remove(AT_FDCWD, top, NULL) == 0);
}

static void put(const char *path, const char *text)
{
    int fd = openat(top_fd, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    EXPECT(fd >= 0 && fd_write_all(fd, text, strlen(text)) == 0);
    close(fd);
}

static void dir(const char *path, bool opaque)
{
    char full[256];

    EXPECT(mkdirat(top_fd, path, 0755) == 0);
    snprintf(full, sizeof(full), "%s/%s", top, path);
    EXPECT(!opaque || setxattr(full, "user.overlay.opaque", "y", 1, 0) == 0);
}

static void whiteout(const char *path)
{
    EXPECT(mknodat(top_fd, path, S_IFCHR, makedev(0, 0)) == 0);
}

static bool is_whiteout(const char *path)
{
    struct stat st;

    return fstatat(top_fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISCHR(st.st_mode) &&
           st.st_rdev == 0;
}

static bool is_opaque(const char *path)
{
    char full[256], v = 0;

    snprintf(full, sizeof(full), "%s/%s", top, path);
    return getxattr(full, "user.overlay.opaque", &v, 1) == 1 && v == 'y';
}

static bool absent(const char *path)
{
    struct stat st;

    return fstatat(top_fd, path, &st, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT;
}

static bool holds(const char *path, const char *text)
{
    AUTO(free_p) char *got = NULL;

    return file_read(top_fd, path, 1u << 20, &got, NULL) == 0 && strcmp(got, text) == 0;
}

static uint64_t *left; /* see struct layer_save */

static int save(bool with_upper, bool with_below, uint64_t *bytes, struct sg_error *e)
{
    AUTO(close_p) int upper = openat(top_fd, "upper", O_PATH | O_DIRECTORY | O_CLOEXEC);
    AUTO(close_p) int below = openat(top_fd, "below", O_PATH | O_DIRECTORY | O_CLOEXEC);
    AUTO(close_p) int out = openat(top_fd, "out", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct layer_save l = {.upper = with_upper ? upper : -1,
                           .first_id = FIRST_ID,
                           .below = with_below ? below : -1,
                           .parent = out,
                           .aside = "new",
                           .name = "it",
                           .left = left};

    return layer_save_write(&l, bytes, e);
}

TEST(every_pair_of_upper_and_below)
{
    uint64_t bytes = 0;
    struct sg_error e = {0};

    begin();
    put("upper/new", "u");
    put("upper/both", "u");
    put("below/both", "b");
    put("below/only", "b");
    whiteout("upper/gone");
    put("below/gone", "b");
    whiteout("below/hidden");
    put("upper/returned", "u");
    whiteout("below/returned");
    put("upper/was_dir", "u");
    dir("below/was_dir", false);
    put("below/was_dir/x", "b");
    dir("upper/merged", false);
    put("upper/merged/u", "u");
    whiteout("upper/merged/w");
    dir("below/merged", false);
    put("below/merged/b", "b");
    put("below/merged/w", "b");
    dir("upper/opaque", true);
    put("upper/opaque/u", "u");
    dir("below/opaque", false);
    put("below/opaque/b", "b");
    dir("upper/was_file", false);
    put("upper/was_file/u", "u");
    put("below/was_file", "b");
    dir("upper/over_white", false);
    whiteout("below/over_white");
    dir("upper/over_opaque", false);
    dir("below/over_opaque", true);
    put("below/over_opaque/b", "b");
    dir("below/deep", false);
    dir("below/deep/er", true);
    put("below/deep/er/f", "b");

    EXPECT(save(true, true, &bytes, &e) == 0);
    EXPECT(bytes > 0);
    EXPECT(holds("out/it/new", "u") && holds("out/it/both", "u") && holds("out/it/only", "b"));
    EXPECT(is_whiteout("out/it/gone") && is_whiteout("out/it/hidden"));
    EXPECT(holds("out/it/returned", "u") && holds("out/it/was_dir", "u"));
    EXPECT(holds("out/it/merged/u", "u") && holds("out/it/merged/b", "b"));
    EXPECT(is_whiteout("out/it/merged/w") && !is_opaque("out/it/merged"));
    EXPECT(is_opaque("out/it/opaque") && absent("out/it/opaque/b"));
    EXPECT(holds("out/it/opaque/u", "u"));
    EXPECT(is_opaque("out/it/was_file") && holds("out/it/was_file/u", "u"));
    EXPECT(is_opaque("out/it/over_white"));
    EXPECT(is_opaque("out/it/over_opaque") && holds("out/it/over_opaque/b", "b"));
    EXPECT(!is_opaque("out/it/deep") && is_opaque("out/it/deep/er"));
    EXPECT(holds("out/it/deep/er/f", "b"));
    EXPECT(absent("out/new"));
    end();
}

TEST(ids_modes_times_and_attributes)
{
    struct timespec times[2] = {{.tv_sec = 5, .tv_nsec = 6}, {.tv_sec = 7, .tv_nsec = 8}};
    char full[256], value[8] = "";
    struct sg_error e = {0};
    struct stat st;
    uint64_t bytes;

    begin();
    put("upper/f", "x");
    EXPECT(fchownat(top_fd, "upper/f", FIRST_ID + 1000, FIRST_ID + 65535, 0) == 0);
    EXPECT(fchmodat(top_fd, "upper/f", 06755, 0) == 0);
    EXPECT(utimensat(top_fd, "upper/f", times, 0) == 0);
    snprintf(full, sizeof(full), "%s/upper/f", top);
    EXPECT(setxattr(full, "user.k", "value", 5, 0) == 0);
    EXPECT(setxattr(full, "trusted.k", "value", 5, 0) == 0);
    put("upper/foreign", "x");
    EXPECT(fchownat(top_fd, "upper/foreign", 12, FIRST_ID + 65536, 0) == 0);
    dir("upper/d", false);
    EXPECT(fchmodat(top_fd, "upper/d", 03770, 0) == 0);
    EXPECT(fchownat(top_fd, "upper/d", FIRST_ID, FIRST_ID, 0) == 0);
    EXPECT(symlinkat("/etc/passwd", top_fd, "upper/l") == 0);
    EXPECT(fchownat(top_fd, "upper/l", FIRST_ID + 3, FIRST_ID + 4, AT_SYMLINK_NOFOLLOW) == 0);

    EXPECT(save(true, false, &bytes, &e) == 0);
    EXPECT(fstatat(top_fd, "out/it/f", &st, 0) == 0);
    EXPECT(st.st_uid == 1000 && st.st_gid == 65535);
    EXPECT((st.st_mode & 07777) == 0755); /* no set-uid program of root's on the host */
    EXPECT(st.st_mtim.tv_sec == 7 && st.st_mtim.tv_nsec == 8);
    snprintf(full, sizeof(full), "%s/out/it/f", top);
    EXPECT(getxattr(full, "user.k", value, sizeof(value)) == 5 && memcmp(value, "value", 5) == 0);
    EXPECT(getxattr(full, "trusted.k", value, sizeof(value)) < 0);
    EXPECT(fstatat(top_fd, "out/it/foreign", &st, 0) == 0 && st.st_uid == 65534 &&
           st.st_gid == 65534);
    EXPECT(fstatat(top_fd, "out/it/d", &st, 0) == 0 && (st.st_mode & 07777) == 03770);
    EXPECT(st.st_uid == 0);
    EXPECT(fstatat(top_fd, "out/it/l", &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode));
    EXPECT(st.st_uid == 3 && st.st_gid == 4);
    end();
}

TEST(holes_links_and_special_files)
{
    struct sg_error e = {0};
    struct stat a, b;
    uint64_t bytes;
    int fd;

    begin();
    fd = openat(top_fd, "upper/sparse", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    EXPECT(pwrite(fd, "begin", 5, 0) == 5 && pwrite(fd, "middle", 6, 40 << 20) == 6);
    EXPECT(ftruncate(fd, 100 << 20) == 0 && close(fd) == 0);
    put("upper/one", "same");
    dir("upper/d", false);
    EXPECT(linkat(top_fd, "upper/one", top_fd, "upper/d/two", 0) == 0);
    EXPECT(mkfifoat(top_fd, "upper/fifo", 0640) == 0);
    EXPECT(mknodat(top_fd, "upper/null", S_IFCHR | 0666, makedev(1, 3)) == 0);
    EXPECT(mknodat(top_fd, "upper/sock", S_IFSOCK | 0666, 0) == 0);
    put("upper/empty", "");

    EXPECT(save(true, false, &bytes, &e) == 0);
    EXPECT(bytes < 10 << 20);
    EXPECT(fstatat(top_fd, "out/it/sparse", &a, 0) == 0 && a.st_size == 100 << 20);
    EXPECT(a.st_blocks < 1000);
    fd = openat(top_fd, "out/it/sparse", O_RDONLY | O_CLOEXEC);
    char text[7] = "";
    EXPECT(pread(fd, text, 6, 40 << 20) == 6 && strcmp(text, "middle") == 0);
    close(fd);
    EXPECT(fstatat(top_fd, "out/it/one", &a, 0) == 0 &&
           fstatat(top_fd, "out/it/d/two", &b, 0) == 0);
    EXPECT(a.st_ino == b.st_ino && a.st_nlink == 2);
    EXPECT(fstatat(top_fd, "out/it/fifo", &a, 0) == 0 && S_ISFIFO(a.st_mode));
    EXPECT((a.st_mode & 0777) == 0640);
    EXPECT(absent("out/it/null") && absent("out/it/sock"));
    EXPECT(holds("out/it/empty", ""));
    end();
}

TEST(what_comes_from_below_is_not_copied)
{
    struct sg_error e = {0};
    struct stat a, b;
    uint64_t bytes;

    begin();
    dir("below/d", false);
    put("below/d/f", "b");
    EXPECT(symlinkat("f", top_fd, "below/d/l") == 0);
    EXPECT(fchmodat(top_fd, "below/d", 0711, 0) == 0);
    EXPECT(save(false, true, &bytes, &e) == 0);
    EXPECT(fstatat(top_fd, "below/d/f", &a, 0) == 0 && fstatat(top_fd, "out/it/d/f", &b, 0) == 0);
    EXPECT(a.st_ino == b.st_ino);
    EXPECT(fstatat(top_fd, "out/it/d/l", &b, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(b.st_mode));
    EXPECT(fstatat(top_fd, "out/it/d", &b, 0) == 0 && (b.st_mode & 0777) == 0711);
    end();
}

/* Whiteouts in a directory that only the layer has. */
TEST(no_more_is_copied_than_may_be)
{
    struct sg_error e = {0};
    char text[40001];
    uint64_t bytes, most;

    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    begin();
    put("upper/one", text);
    put("upper/two", text);
    EXPECT(linkat(top_fd, "upper/one", top_fd, "upper/again", 0) == 0);
    put("below/three", text);
    left = &most;
    most = 70000;
    EXPECT(save(true, true, &bytes, &e) == -EBUSY && e.kind == SG_ERR_GONE);
    EXPECT(absent("out/new") && absent("out/it"));
    most = 100000;
    EXPECT(save(true, true, &bytes, &e) == 0 && most < 30000);
    EXPECT(holds("out/it/again", text) && holds("out/it/three", text));
    left = NULL;
    end();
}

TEST(what_was_removed_is_not_listed)
{
    AUTO(close_p) int fs = sys_fsopen("overlay"), root = -1, listed = -1;
    char lower[600];
    struct sg_error e = {0};
    uint64_t bytes;
    size_t n = 0;

    begin();
    dir("below/d", false);
    put("below/d/gone", "b");
    put("below/d/stays", "b");
    dir("below/e", false);
    whiteout("below/e/gone");
    dir("upper/d", false);
    whiteout("upper/d/gone");
    EXPECT(save(true, true, &bytes, &e) == 0);
    snprintf(lower, sizeof(lower), "%s/out/it:%s/upper/d", top, top);
    EXPECT(sys_fsconfig_string(fs, "lowerdir", lower) == 0 &&
           sys_fsconfig_flag(fs, "userxattr") == 0 && sys_fsconfig_create(fs) == 0);
    root = sys_fsmount(fs, 0);
    for (int i = 0; i < 2; i++) {
        listed = openat(root, i ? "d" : "e", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *d = fdopendir(listed);
        EXPECT(d != NULL);
        for (struct dirent *entry; (entry = readdir(d)) != NULL;)
            n += strcmp(entry->d_name, "gone") == 0;
        closedir(d);
        listed = -1;
    }
    EXPECT(n == 0);
    EXPECT(faccessat(root, "d/stays", F_OK, 0) == 0);
    end();
}

TEST(a_failure_leaves_nothing)
{
    struct sg_error e = {0};
    uint64_t bytes;
    int at;

    begin();
    put("upper/f", "u");
    dir("out/it", false);
    EXPECT(save(true, false, &bytes, &e) == -EEXIST);
    EXPECT(absent("out/new"));
    EXPECT(unlinkat(top_fd, "out/it", AT_REMOVEDIR) == 0);

    at = openat(top_fd, "upper", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; i < 2100; i++) {
        EXPECT(mkdirat(at, "n", 0755) == 0);
        int next = openat(at, "n", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        close(at);
        at = next;
    }
    close(at);
    EXPECT(save(true, false, &bytes, &e) == -EBUSY && e.kind == SG_ERR_GONE);
    EXPECT(strstr(e.message, "directories deep") != NULL);
    EXPECT(absent("out/new") && absent("out/it"));
    end();
}
