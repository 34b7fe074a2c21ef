/* Random changes of what a root overlay shows, and that as text, for comparing. */
#pragma once

#include "layer_stack_bed.h"

#include <dirent.h>
#include <limits.h>

#include "lib/text/strbuf.h"

#define SEQUENCES 250
#define WALK_MAX  (8u << 20)

/* ---- what an overlay shows, as text ---------------------------------------------------------- */

static bool with_numbers; /* inode numbers, which tell links from copies */

static inline void walk_xattrs(struct strbuf *out, int dir, const char *name)
{
    char names[1024], value[256];
    AUTO(close_p) int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : flistxattr(fd, names, sizeof(names));

    for (const char *p = names; n > 0 && p < names + n; p += strlen(p) + 1) {
        ssize_t len = fgetxattr(fd, p, value, sizeof(value));
        if (strncmp(p, "user.", 5) == 0)
            strbuf_addf(out, " %s=%.*s", p, (int)len, value);
        else if (strncmp(p, "system.", 7) == 0)
            strbuf_addf(out, " %s:%zd", p, len);
    }
}

static inline void walk_content(struct strbuf *out, int dir, const char *name,
                                const struct stat *st)
{
    char text[PATH_MAX] = "";
    AUTO(close_p) int fd = -1;
    ssize_t n;

    if (S_ISLNK(st->st_mode) && (n = readlinkat(dir, name, text, sizeof(text))) > 0)
        strbuf_addf(out, " -> %.*s", (int)n, text);
    if (!S_ISREG(st->st_mode))
        return;
    fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    n = read(fd, text, sizeof(text));
    EXPECT(n == st->st_size);
    strbuf_addf(out, " '%.*s'", (int)n, text);
}

/* The inode number of a directory is the overlay's own, and its size no matter. */
static inline void walk_entry(struct strbuf *out, int dir, const char *path, const char *name)
{
    struct stat st = {0};

    EXPECT(fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0);
    strbuf_addf(out, "%s/%s %o %u:%u %lld.%09ld", path, name, st.st_mode, st.st_uid, st.st_gid,
                (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
    if (!S_ISDIR(st.st_mode) && with_numbers)
        strbuf_addf(out, " n%llu", (unsigned long long)st.st_ino);
    walk_content(out, dir, name, &st);
    walk_xattrs(out, dir, name);
    strbuf_addf(out, "\n");
}

static inline void walk_dir(struct strbuf *out, int dir, const char *path)
{
    struct dirent **v = NULL;
    int n = scandirat(dir, ".", &v, NULL, alphasort);

    EXPECT(n >= 0);
    for (int i = 0; i < n; i++) {
        const char *name = v[i]->d_name;
        char sub[PATH_MAX];
        int fd = -1;
        if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0) {
            walk_entry(out, dir, path, name);
            fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        }
        if (fd >= 0) {
            EXPECT(snprintf(sub, sizeof(sub), "%s/%s", path, name) < (int)sizeof(sub));
            walk_dir(out, fd, sub);
            close(fd);
        }
        free(v[i]);
    }
    free(v);
}

static inline char *show_root(int root)
{
    struct strbuf out;

    strbuf_init(&out, WALK_MAX);
    walk_dir(&out, root, "");
    EXPECT(!out.truncated);
    return strbuf_detach(&out, NULL);
}

/* A root over a stack. */
static inline char *show(const struct bed *b, const struct stack *stack)
{
    struct sandbox x;
    char *text;

    sandbox_begin(&x, b, stack, NULL);
    text = show_root(x.root);
    sandbox_end(&x);
    return text;
}

/* ---- what sandboxes do ----------------------------------------------------------------------- */

static uint64_t seed;
static uint32_t first_id; /* as ids are where changes are made */

static inline unsigned roll(unsigned n)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (unsigned)((seed >> 20) % n);
}

static const char *const names[] = {"a", "b", "c", "...", "n\nl", "\xff"};

/* Names are few, so they meet. */
static inline void random_path(char path[64])
{
    size_t len = 0;

    for (unsigned i = 0, n = 1 + roll(4); i < n; i++)
        len += (size_t)snprintf(path + len, 64 - len, "%s%s", i ? "/" : "",
                                names[roll(ARRAY_SIZE(names))]);
}

static inline void remove_whole(int dir, const char *name)
{
    AUTO(close_p) int fd = -1;
    struct dirent **v = NULL;
    int n;

    if (unlinkat(dir, name, 0) == 0 || unlinkat(dir, name, AT_REMOVEDIR) == 0)
        return;
    fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    n = fd < 0 ? 0 : scandirat(fd, ".", &v, NULL, NULL);
    for (int i = 0; i < n; i++) {
        if (strcmp(v[i]->d_name, ".") != 0 && strcmp(v[i]->d_name, "..") != 0)
            remove_whole(fd, v[i]->d_name);
        free(v[i]);
    }
    free(v);
    unlinkat(dir, name, AT_REMOVEDIR);
}

static inline void write_some(int root, const char *path, int flags)
{
    char text[32];
    int fd = openat(root, path, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | flags, 0644),
        n = snprintf(text, sizeof(text), "%u,", roll(1000000));

    EXPECT(fd < 0 || write(fd, text, (size_t)n) == n || errno == EPIPE);
    close(fd);
}

static inline void change_looks(int root, const char *path)
{
    static const mode_t modes[] = {0600, 0755, 06755, 01777, 02775, 0444};
    struct timespec times[2] = {{.tv_sec = roll(1000)}, {.tv_sec = roll(1000), .tv_nsec = 5}};
    AUTO(close_p) int fd = openat(root, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    char key[16], value[16];
    /* Version 2: the user may all, one other may read, the group and the rest nothing. */
    static const unsigned char acl[] = {2,   0,   0,   0,   1,   0,   7,  0,   255, 255, 255,
                                        255, 2,   0,   4,   0,   0,   0,  0,   0,   4,   0,
                                        0,   0,   255, 255, 255, 255, 16, 0,   4,   0,   255,
                                        255, 255, 255, 32,  0,   0,   0,  255, 255, 255, 255};

    snprintf(key, sizeof(key), "user.%u", roll(3));
    snprintf(value, sizeof(value), "%u", roll(1000));
    switch (roll(7)) {
    case 0:
        (void)!fchmodat(root, path, modes[roll(ARRAY_SIZE(modes))], 0);
        break;
    case 1:
        (void)!fchownat(root, path, first_id + roll(65536), first_id + roll(65536),
                        AT_SYMLINK_NOFOLLOW);
        break;
    case 2:
        utimensat(root, path, times, AT_SYMLINK_NOFOLLOW);
        break;
    case 3:
        fremovexattr(fd, key);
        break;
    case 4:
        fsetxattr(fd, roll(2) ? "system.posix_acl_access" : "system.posix_acl_default", acl,
                  sizeof(acl), 0);
        break;
    default:
        fsetxattr(fd, key, value, strlen(value), 0);
        break;
    }
}

/* What cannot be done, is not. */
static inline void random_change(int root)
{
    char path[64], other[64];

    random_path(path);
    random_path(other);
    switch (roll(20)) {
    case 0:
    case 1:
        unlinkat(root, path, 0);
        break;
    case 2:
        remove_whole(root, path);
        break;
    case 3:
    case 4:
        renameat(root, path, root, other);
        break;
    case 5:
        (void)!linkat(root, path, root, other, 0);
        break;
    case 6:
        (void)!symlinkat(other, root, path);
        break;
    case 7:
        mkfifoat(root, path, 0640);
        mknodat(root, other, S_IFSOCK | 0600, 0);
        break;
    case 8:
        remove_whole(root, path);
        mkdirat(root, path, 0711);
        break;
    case 9:
        remove_whole(root, path);
        write_some(root, path, O_CREAT);
        break;
    case 10:
    case 11:
    case 12:
        change_looks(root, path);
        break;
    case 13:
    case 14:
        write_some(root, path, O_APPEND);
        break;
    case 15:
        write_some(root, path, O_TRUNC);
        break;
    case 16:
        write_some(root, path, O_CREAT);
        break;
    default:
        mkdirat(root, path, 0755);
        snprintf(other, sizeof(other), "%.60s/a", path);
        write_some(root, other, O_CREAT);
        break;
    }
}

/* ---- a sequence ------------------------------------------------------------------------------ */

static inline bool is_same(const char *a, const char *b, const char *when)
{
    const char *line = a;

    if (strcmp(a, b) == 0)
        return true;
    for (; *a && *a == *b; a++, b++)
        if (*a == '\n')
            line = a + 1;
    printf("# %s: '%.*s'\n", when, (int)strcspn(line, "\n"), line);
    printf("# differs in '%.*s'\n", (int)strcspn(b, "\n"), b);
    return false;
}

/* What is in no stack any more goes. */
static inline void remove_others(const struct sandbox *x, const struct stack *old)
{
    for (size_t i = 0; i < old->n; i++) {
        bool stays = false;
        for (size_t k = 0; k < x->stack->n; k++)
            stays |= strcmp(x->stack->v[k]->dir, old->v[i]->dir) == 0;
        EXPECT(stays || layer_stack_remove(x->scratch->mount, old->v[i]->dir, NULL) == 0);
    }
}

static inline void begin_sequence(struct bed *b, struct sandbox *x, uint64_t number)
{
    seed = number * 0x9e3779b97f4a7c15u + 1;
    bed_begin(b);
    first_id = 0;
    for (unsigned i = 0; i < 25; i++)
        random_change(b->template);
    first_id = FIRST_ID;
    sandbox_begin(x, b, NULL, NULL);
}

static inline void random_changes(struct sandbox *x)
{
    inside(true);
    for (unsigned k = 0, n = 5 + roll(40); k < n; k++)
        random_change(x->root);
    inside(false);
}

static inline void end_sequence(struct bed *b, struct sandbox *x, uint64_t number, int failed)
{
    sandbox_end(x);
    bed_end(b);
    if (tap_failures > failed)
        printf("# sequence %llu\n", (unsigned long long)number);
}
