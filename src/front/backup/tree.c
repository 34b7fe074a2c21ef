#include "front/backup/tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#include "lib/base/fd.h"

#define DEPTH_MAX  2100 /* directories in each other; a layer's are not deeper */
#define BLOCK      (256u * 1024)
#define NAMES_MAX  (64u * 1024) /* names of a file's attributes: the most that the kernel lists */
#define VALUE_MAX  (64u * 1024)
#define LINK_MAX   4096
#define DIGEST_LEN 32
#define TRIES_MAX  3 /* of a file that changes */

/* ---- files that share an inode --------------------------------------------------------------- */

struct same {
    dev_t dev;
    ino_t ino;
    struct timespec mtime; /* in a live tree another file may have the number by now */
    char *copy;            /* the path of the copy; NULL: not copied */
    uint8_t digest[DIGEST_LEN];
    struct map_node by_inode;
};

void tree_links_free(struct map *same)
{
    MAP_EACH(struct same, s, same, by_inode) {
        map_remove(same, &s->by_inode);
        free(s->copy);
        free(s);
    }
}

static uint64_t hash_of(const struct stat *st)
{
    return hash_bytes(st->st_dev, &st->st_ino, sizeof(st->st_ino));
}

/* ---- a pass ---------------------------------------------------------------------------------- */

struct work {
    const struct tree_pass *pass;
    struct tree_sum sum;
    EVP_MD_CTX *all;
    char *block, *names, *value;
    struct sg_error *e;
};

/* Whether an error says only that a program was there meanwhile. */
static bool has_changed(const struct work *w, int code)
{
    return w->pass && w->pass->live &&
           (code == ENOENT || code == ENOTDIR || code == ELOOP || code == ENXIO);
}

static int fail(struct work *w, const char *doing, const char *name)
{
    return err_errno(w->e, "%s '%.100s'", doing, name);
}

static void add(struct work *w, const void *data, size_t len)
{
    EVP_DigestUpdate(w->all, data, len);
}

static void add_number(struct work *w, uint64_t n)
{
    char text[24];
    int len = snprintf(text, sizeof(text), "%llu;", (unsigned long long)n);

    add(w, text, (size_t)len);
}

static void add_text(struct work *w, const char *text, size_t len)
{
    add_number(w, len);
    add(w, text, len);
}

static void add_owner(struct work *w, const struct stat *st)
{
    add_number(w, st->st_mode);
    add_number(w, st->st_uid);
    add_number(w, st->st_gid);
}

static bool kept_attribute(const char *name)
{
    return strncmp(name, "user.", 5) == 0 || strncmp(name, "trusted.overlay.", 16) == 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The attributes of an open file or directory, in the order of their names. */
static int pass_attributes(struct work *w, int from, int to, const char *name)
{
    ssize_t len = flistxattr(from, w->names, NAMES_MAX);
    AUTO(free_p) char **list = NULL;
    size_t n = 0;

    if (len < 0 && (errno == ENOTSUP || errno == EOPNOTSUPP))
        len = 0;
    if (len < 0)
        return fail(w, "list the attributes of", name);
    list = xcalloc((size_t)len / 2 + 1, sizeof(*list));
    for (char *p = w->names; p < w->names + len; p += strlen(p) + 1)
        if (kept_attribute(p))
            list[n++] = p;
    qsort(list, n, sizeof(*list), by_name);
    add_number(w, n);
    for (size_t i = 0; i < n; i++) {
        ssize_t size = fgetxattr(from, list[i], w->value, VALUE_MAX);

        if (size < 0 && errno == ENODATA && w->pass->live)
            continue;
        if (size < 0 || (to >= 0 && fsetxattr(to, list[i], w->value, (size_t)size, 0) < 0))
            return fail(w, "copy the attributes of", name);
        add_text(w, list[i], strlen(list[i]));
        add_text(w, w->value, (size_t)size);
    }
    return 0;
}

static bool is_zero(const char *p, size_t len)
{
    return len > 0 && p[0] == '\0' && memcmp(p, p + 1, len - 1) == 0;
}

/* The digest of a file. Of blocks of zeros only their number is hashed: holes may be longer than any
 * disk, and are not read. */
struct content {
    EVP_MD_CTX *md;
    uint64_t zeros; /* blocks of them, up to here */
    bool old;
};

static void end_zeros(struct content *c)
{
    char text[24];
    int len = snprintf(text, sizeof(text), "%llu;", (unsigned long long)c->zeros);

    if (c->zeros > 0)
        EVP_DigestUpdate(c->md, text, (size_t)len);
    c->zeros = 0;
}

static void add_block(struct content *c, const char *p, size_t len, bool zero)
{
    if (zero && len == BLOCK && !c->old) {
        c->zeros++;
        return;
    }
    end_zeros(c);
    EVP_DigestUpdate(c->md, p, len);
}

/* How many bytes from here on need not be read: whole blocks of a hole. */
static uint64_t skip_hole(struct content *c, int from, uint64_t at, uint64_t max)
{
    bool maybe = !c->old && (at == 0 || c->zeros > 0);
    off_t data = maybe ? lseek(from, (off_t)at, SEEK_DATA) : (off_t)at;
    uint64_t end = data >= 0 ? (uint64_t)data : errno == ENXIO ? max : at;
    uint64_t blocks = end > at ? ((end < max ? end : max) - at) / BLOCK : 0;

    c->zeros += blocks;
    return blocks * BLOCK;
}

/* Blocks of zeros stay holes. */
static int pass_content(struct work *w, int from, int to, uint64_t max, const char *name,
                        uint8_t digest[DIGEST_LEN])
{
    struct content c = {.md = EVP_MD_CTX_new(), .old = w->pass && w->pass->old_sums};
    uint64_t at = 0;
    ssize_t n = 0;
    int r = 0;

    EVP_DigestInit_ex(c.md, EVP_sha256(), NULL);
    while (r == 0 && at < max) {
        at += skip_hole(&c, from, at, max);
        size_t want = max - at < BLOCK ? (size_t)(max - at) : BLOCK;

        n = pread(from, w->block, want, (off_t)at);
        if (n <= 0)
            break;
        bool zero = is_zero(w->block, (size_t)n);
        add_block(&c, w->block, (size_t)n, zero);
        if (to >= 0 && !zero && pwrite(to, w->block, (size_t)n, (off_t)at) != n)
            r = fail(w, "write the copy of", name);
        at += (uint64_t)n;
        w->sum.bytes += (uint64_t)n;
        if (w->pass && w->pass->progress)
            w->pass->progress(w->pass->arg, (uint64_t)n);
    }
    if (r == 0 && n < 0)
        r = fail(w, "read", name);
    if (r == 0 && to >= 0 && ftruncate(to, (off_t)at) < 0)
        r = fail(w, "write the copy of", name);
    end_zeros(&c);
    EVP_DigestFinal_ex(c.md, digest, NULL);
    EVP_MD_CTX_free(c.md);
    return r;
}

static bool same_time(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

/* Copies a file that may change meanwhile: the copy is the file at one time, or it counts as torn. *st
 * becomes what the copy is of. */
static int pass_live(struct work *w, int from, int to, struct stat *st, const char *name,
                     uint8_t digest[DIGEST_LEN])
{
    for (unsigned tries = 1;; tries++) {
        struct stat now;
        int r = pass_content(w, from, to, (uint64_t)st->st_size, name, digest);

        if (r < 0 || fstat(from, &now) < 0)
            return r;
        if (same_time(&now.st_ctim, &st->st_ctim) && now.st_size == st->st_size)
            return 0;
        if (tries == TRIES_MAX) {
            w->sum.torn++;
            return 0;
        }
        *st = now;
        if (to >= 0 && ftruncate(to, 0) < 0)
            return fail(w, "write the copy of", name);
    }
}

/* Owner before mode: changing the owner takes bits away. */
static int finish_copy(struct work *w, int to, const struct stat *st, const char *name)
{
    const struct timespec times[2] = {st->st_atim, st->st_mtim};

    if (to >= 0 && (fchown(to, st->st_uid, st->st_gid) < 0 || fchmod(to, st->st_mode & 07777) < 0 ||
                    futimens(to, times) < 0))
        return fail(w, "set the owner of the copy of", name);
    return 0;
}

static void remember(struct work *w, const struct stat *st, int to_dir, const char *name,
                     const uint8_t digest[DIGEST_LEN])
{
    struct same *s = xcalloc(1, sizeof(*s));

    *s = (struct same){.dev = st->st_dev, .ino = st->st_ino, .mtime = st->st_mtim};
    if (to_dir >= 0) {
        char path[64], place[4096];
        snprintf(path, sizeof(path), "/proc/self/fd/%d", to_dir);
        ssize_t n = readlink(path, place, sizeof(place) - 1);
        if (n > 0) {
            place[n] = '\0';
            if (asprintf(&s->copy, "%s/%s", place, name) < 0)
                s->copy = NULL;
        }
    }
    memcpy(s->digest, digest, DIGEST_LEN);
    map_add(w->pass->same, &s->by_inode, hash_of(st));
}

static struct same *find_same(const struct work *w, const struct stat *st)
{
    return MAP_FIND(struct same, s, w->pass->same, hash_of(st), by_inode,
                    s->ino == st->st_ino && s->dev == st->st_dev &&
                        same_time(&s->mtime, &st->st_mtim));
}

static int pass_opened(struct work *w, int from, int to_dir, const char *name, struct stat *st)
{
    bool shared = st->st_nlink > 1 && w->pass->same;
    struct same *known = shared ? find_same(w, st) : NULL;
    AUTO(close_p) int to = -1;
    uint8_t digest[DIGEST_LEN];
    int r = 0;

    bool linked =
        known && to_dir >= 0 && known->copy && linkat(AT_FDCWD, known->copy, to_dir, name, 0) == 0;
    if (to_dir >= 0 && !linked) {
        to = openat(to_dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (to < 0)
            return fail(w, "make the copy of", name);
    }
    if (linked || (known && to_dir < 0))
        memcpy(digest, known->digest, DIGEST_LEN);
    else if (w->pass->live)
        r = pass_live(w, from, to, st, name, digest);
    else
        r = pass_content(w, from, to, (uint64_t)st->st_size, name, digest);
    if (r == 0)
        r = pass_attributes(w, from, to, name);
    if (r == 0)
        r = finish_copy(w, to, st, name);
    if (r < 0)
        return r;
    add_number(w, (uint64_t)st->st_size);
    add(w, digest, sizeof(digest));
    if (shared && !known)
        remember(w, st, to_dir, name, digest);
    return 0;
}

static int pass_regular(struct work *w, int from_dir, int to_dir, const char *name,
                        const struct stat *st)
{
    AUTO(close_p)
    int from = openat(from_dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat opened = *st;

    if (from < 0)
        return has_changed(w, errno) ? 0 : fail(w, "open", name);
    if (w->pass->live && (fstat(from, &opened) < 0 || !S_ISREG(opened.st_mode)))
        return 0;
    return pass_opened(w, from, to_dir, name, &opened);
}

static int pass_link(struct work *w, int from_dir, int to_dir, const char *name,
                     const struct stat *st)
{
    char target[LINK_MAX + 1];
    ssize_t n = readlinkat(from_dir, name, target, LINK_MAX);

    if (n < 0 && (has_changed(w, errno) || (w->pass->live && errno == EINVAL)))
        return 0;
    if (n < 0)
        return fail(w, "read the link", name);
    target[n] = '\0';
    add_text(w, target, (size_t)n);
    if (to_dir >= 0 && (symlinkat(target, to_dir, name) < 0 ||
                        fchownat(to_dir, name, st->st_uid, st->st_gid, AT_SYMLINK_NOFOLLOW) < 0))
        return fail(w, "copy the link", name);
    return 0;
}

/* A pipe, or a whiteout. */
static int pass_node(struct work *w, int to_dir, const char *name, const struct stat *st)
{
    if (to_dir >= 0 && (mknodat(to_dir, name, st->st_mode & (S_IFMT | 0777), 0) < 0 ||
                        fchownat(to_dir, name, st->st_uid, st->st_gid, AT_SYMLINK_NOFOLLOW) < 0))
        return fail(w, "copy", name);
    return 0;
}

static int pass_dir(struct work *w, int from, int to, unsigned depth);

static int pass_sub(struct work *w, int from_dir, int to_dir, const char *name,
                    const struct stat *st, unsigned depth)
{
    AUTO(close_p)
    int from = openat(from_dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    AUTO(close_p) int to = -1;
    struct stat opened = *st;

    if (from < 0 || (w->pass->live && fstat(from, &opened) < 0))
        return has_changed(w, errno) ? 0 : fail(w, "open", name);
    if (to_dir >= 0) {
        if (mkdirat(to_dir, name, 0700) < 0)
            return fail(w, "make the copy of", name);
        to = openat(to_dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (to < 0)
            return fail(w, "open the copy of", name);
    }
    int r = pass_attributes(w, from, to, name);
    if (r == 0)
        r = pass_dir(w, from, to, depth + 1);
    return r < 0 ? r : finish_copy(w, to, &opened, name);
}

static int pass_entry(struct work *w, int from, int to, const char *name, unsigned depth)
{
    struct stat st;

    if (fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return has_changed(w, errno) ? 0 : fail(w, "stat", name);
    if (w->pass->live && S_ISSOCK(st.st_mode))
        return 0;
    w->sum.files++;
    add_text(w, name, strlen(name));
    add_owner(w, &st);
    switch (st.st_mode & S_IFMT) {
    case S_IFREG:
        return pass_regular(w, from, to, name, &st);
    case S_IFDIR:
        return pass_sub(w, from, to, name, &st, depth);
    case S_IFLNK:
        return pass_link(w, from, to, name, &st);
    case S_IFIFO:
        return pass_node(w, to, name, &st);
    case S_IFCHR:
        if (st.st_rdev == 0)
            return pass_node(w, to, name, &st);
        break;
    default:
        break;
    }
    return err_invalid(w->e, "'%.100s' is a device or a socket", name);
}

void tree_names_free(struct tree_names *names)
{
    for (size_t i = 0; i < names->n; i++)
        free(names->at[i]);
    free(names->at);
    *names = (struct tree_names){0};
}

int tree_names(int dir, struct tree_names *ret)
{
    int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    struct tree_names names = {0};
    size_t cap = 0;
    struct dirent *entry;

    if (!d) {
        int r = -errno;
        close_p(&fd);
        return r;
    }
    while ((entry = readdir(d)) != NULL) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        names.at = xgrow(names.at, names.n, &cap, sizeof(names.at[0]));
        names.at[names.n++] = xstrdup(entry->d_name);
    }
    closedir(d);
    if (names.n > 0)
        qsort(names.at, names.n, sizeof(names.at[0]), by_name);
    *ret = names;
    return 0;
}

static int pass_dir(struct work *w, int from, int to, unsigned depth)
{
    AUTO(tree_names_free) struct tree_names names = {0};
    int r = depth > DEPTH_MAX ? -ELOOP : tree_names(from, &names);

    if (r == -ENOENT && w->pass->live) /* it was removed */
        return 0;
    if (r < 0)
        return err_code(w->e, r, "list a directory %u levels below", depth);
    add_number(w, names.n);
    for (size_t i = 0; r == 0 && i < names.n; i++)
        r = pass_entry(w, from, to, names.at[i], depth);
    return r;
}

static void hex(const uint8_t *bytes, size_t len, char *ret)
{
    for (size_t i = 0; i < len; i++)
        snprintf(ret + 2 * i, 3, "%02x", bytes[i]);
}

int tree_pass(const struct tree_pass *p, struct tree_sum *ret, struct sg_error *e)
{
    AUTO(free_p)
    char *block = xcalloc(1, BLOCK), *names = xcalloc(1, NAMES_MAX), *value = xcalloc(1, VALUE_MAX);
    struct work w = {
        .pass = p, .all = EVP_MD_CTX_new(), .block = block, .names = names, .value = value, .e = e};
    uint8_t digest[DIGEST_LEN];
    struct stat st = {0};
    int r = fstat(p->from, &st) < 0 ? err_errno(e, "stat a directory") : 0;

    EVP_DigestInit_ex(w.all, EVP_sha256(), NULL);
    add_owner(&w, &st);
    if (r == 0)
        r = pass_attributes(&w, p->from, p->to, ".");
    if (r == 0)
        r = pass_dir(&w, p->from, p->to, 0);
    if (r == 0)
        r = finish_copy(&w, p->to, &st, ".");
    EVP_DigestFinal_ex(w.all, digest, NULL);
    EVP_MD_CTX_free(w.all);
    if (r < 0)
        return r;
    hex(digest, sizeof(digest), w.sum.sha256);
    *ret = w.sum;
    return 0;
}

int tree_file(int from_dir, const char *name, int to_dir, const char *to, uint64_t max,
              struct tree_sum *ret, struct sg_error *e)
{
    AUTO(close_p)
    int in = openat(from_dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    AUTO(free_p) char *block = xcalloc(1, BLOCK);
    AUTO(close_p) int out = -1;
    struct work w = {.block = block, .e = e};
    uint8_t digest[DIGEST_LEN];
    struct stat st;

    if (in < 0 || fstat(in, &st) < 0)
        return err_errno(e, "open '%s'", name);
    if (!S_ISREG(st.st_mode))
        return err_invalid(e, "'%s' is not a regular file", name);
    if (to) {
        out = openat(to_dir, to, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (out < 0)
            return err_errno(e, "make '%s'", to);
    }
    if ((uint64_t)st.st_size < max)
        max = (uint64_t)st.st_size;
    int r = pass_content(&w, in, out, max, name, digest);
    if (r == 0 && out >= 0 && fchmod(out, st.st_mode & 0777) < 0)
        r = err_errno(e, "set the mode of '%s'", to);
    if (r < 0)
        return r;
    w.sum.files = 1;
    hex(digest, sizeof(digest), w.sum.sha256);
    *ret = w.sum;
    return 0;
}

int tree_drop(int dir, const char *name)
{
    AUTO(tree_names_free) struct tree_names names = {0};
    AUTO(close_p) int fd = -1;

    if (unlinkat(dir, name, 0) == 0 || errno == ENOENT)
        return 0;
    fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int r = tree_names(fd, &names);
    for (size_t i = 0; r == 0 && i < names.n; i++)
        r = tree_drop(fd, names.at[i]);
    if (r == 0 && unlinkat(dir, name, AT_REMOVEDIR) < 0)
        r = -errno;
    return r;
}
