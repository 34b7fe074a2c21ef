#include "cli/shared/acp_tar.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/fd.h"
#include "lib/text/strbuf.h"

#define BLOCK      512
#define CHUNK      (64u * 1024)
#define OCTAL_11   ((1ull << 33) - 1) /* the most that eleven octal digits hold */
#define PATH_BOUND (16u * 1024)

struct header {
    char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], sum[8], type, link[100];
    char magic[6], version[2], owner[32], group[32], major[8], minor[8], prefix[155], pad[12];
};
_Static_assert(sizeof(struct header) == BLOCK, "as POSIX has it");

struct writer {
    const char *root; /* the directory's name, for errors */
    int out;
    struct strbuf path; /* of the entry that is being written, from the root on */
    struct acp_tar_count count;
    unsigned depth;
    char chunk[CHUNK];
    struct sg_error *e;
};

static int put(struct writer *w, const void *data, size_t len)
{
    int r = fd_write_all(w->out, data, len);

    return r < 0 ? err_code(w->e, r, "cannot write the tar") : 0;
}

static int pad(struct writer *w, uint64_t len)
{
    static const char zeros[BLOCK];
    size_t rest = (size_t)(len % BLOCK);

    return rest ? put(w, zeros, BLOCK - rest) : 0;
}

static int unreadable(struct writer *w)
{
    return err_errno(w->e, "cannot read '%.200s/%.200s'", w->root, w->path.buf);
}

/* ---- headers --------------------------------------------------------------------------------- */

static void octal(char *field, size_t len, uint64_t v)
{
    char text[32];

    snprintf(text, sizeof(text), "%0*llo", (int)len - 1, (unsigned long long)v);
    memcpy(field, text, len);
}

static void sum_up(struct header *h)
{
    unsigned sum = 0;
    char text[8];

    memset(h->sum, ' ', sizeof(h->sum));
    for (size_t i = 0; i < BLOCK; i++)
        sum += ((const unsigned char *)h)[i];
    snprintf(text, sizeof(text), "%06o", sum);
    memcpy(h->sum, text, 7); /* six digits and NUL; the space after them is there already */
}

static int put_header(struct writer *w, const char *name, const char *link, char type,
                      const struct stat *st, uint64_t size)
{
    struct header h = {.magic = "ustar", .version = {'0', '0'}, .type = type};

    memcpy(h.name, name, strnlen(name, sizeof(h.name)));
    memcpy(h.link, link, strnlen(link, sizeof(h.link)));
    octal(h.mode, sizeof(h.mode), st->st_mode & 07777);
    octal(h.uid, sizeof(h.uid), 0);
    octal(h.gid, sizeof(h.gid), 0);
    octal(h.size, sizeof(h.size), size <= OCTAL_11 ? size : 0);
    octal(h.mtime, sizeof(h.mtime),
          st->st_mtime < 0 || (uint64_t)st->st_mtime > OCTAL_11 ? 0 : (uint64_t)st->st_mtime);
    sum_up(&h);
    return put(w, &h, sizeof(h));
}

/* "LENGTH key=value\n", where the length counts its own digits. */
static void pax_record(struct strbuf *out, const char *key, const char *value)
{
    size_t rest = strlen(key) + strlen(value) + 3, len = rest + 1;
    char digits[24];

    while (len != rest + (size_t)snprintf(digits, sizeof(digits), "%zu", len))
        len++;
    strbuf_addf(out, "%s %s=%s\n", digits, key, value);
}

static int put_entry(struct writer *w, const char *name, const char *link, char type,
                     const struct stat *st, uint64_t size)
{
    AUTO(strbuf_done) struct strbuf pax = strbuf_upto(3 * PATH_BOUND);
    char digits[24];
    int r = 0;

    if (strlen(name) > sizeof((struct header *)0)->name)
        pax_record(&pax, "path", name);
    if (strlen(link) > sizeof((struct header *)0)->link)
        pax_record(&pax, "linkpath", link);
    snprintf(digits, sizeof(digits), "%llu", (unsigned long long)size);
    if (size > OCTAL_11)
        pax_record(&pax, "size", digits);
    if (pax.len > 0) {
        r = put_header(w, "././@PaxHeader", "", 'x', st, pax.len);
        if (r == 0)
            r = put(w, pax.buf, pax.len);
        if (r == 0)
            r = pad(w, pax.len);
    }
    return r < 0 ? r : put_header(w, name, link, type, st, size);
}

/* ---- what there is --------------------------------------------------------------------------- */

/* Writes exactly `size` bytes, because the header promised so many, even if the file has
 * changed. */
static int put_content(struct writer *w, int fd, uint64_t size)
{
    for (uint64_t left = size; left > 0;) {
        size_t want = left < CHUNK ? (size_t)left : CHUNK;
        ssize_t n = read(fd, w->chunk, want);
        int r;

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return unreadable(w);
        if (n == 0) {
            memset(w->chunk, 0, want);
            n = (ssize_t)want;
        }
        r = put(w, w->chunk, (size_t)n);
        if (r < 0)
            return r;
        left -= (uint64_t)n;
    }
    return pad(w, size);
}

static int put_file(struct writer *w, int dir, const char *name)
{
    AUTO(close_p)
    int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    struct stat st;
    uint64_t size;
    int r;

    if (fd < 0 && errno == ENOENT) /* the file was removed after it was listed */
        return 0;
    if (fd < 0 || fstat(fd, &st) < 0)
        return unreadable(w);
    size = S_ISREG(st.st_mode) && st.st_size > 0 ? (uint64_t)st.st_size : 0;
    r = put_entry(w, w->path.buf, "", '0', &st, size);
    if (r == 0)
        r = put_content(w, fd, size);
    w->count.files++;
    w->count.bytes += size;
    return r;
}

static int put_link(struct writer *w, int dir, const char *name, const struct stat *st)
{
    char target[PATH_MAX];
    ssize_t n = readlinkat(dir, name, target, sizeof(target) - 1);

    if (n < 0)
        return unreadable(w);
    target[n] = '\0';
    return put_entry(w, w->path.buf, target, '2', st, 0);
}

static int put_all(struct writer *w, int dir);

static int put_directory(struct writer *w, int dir, const char *name, const struct stat *st)
{
    int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), r;

    if (fd < 0)
        return unreadable(w);
    if (w->depth == ACP_TAR_DEPTH_MAX) {
        close(fd);
        return err_set(w->e, SG_ERR_INVALID, -E2BIG, "'%.200s' is more than %d directories deep",
                       w->path.buf, ACP_TAR_DEPTH_MAX);
    }
    strbuf_addch(&w->path, '/');
    w->depth++;
    r = put_entry(w, w->path.buf, "", '5', st, 0);
    if (r == 0)
        r = put_all(w, fd); /* closes fd */
    else
        close(fd);
    w->depth--;
    return r;
}

static void leave_out(struct writer *w)
{
    if (w->count.left_out++ == 0)
        snprintf(w->count.first_left_out, sizeof(w->count.first_left_out), "%.255s", w->path.buf);
}

static int put_one(struct writer *w, int dir, const char *name)
{
    size_t before = w->path.len;
    struct stat st;
    int r = 0;

    strbuf_addstr(&w->path, name);
    if (w->path.truncated)
        return err_set(w->e, SG_ERR_INVALID, -ENAMETOOLONG, "'%.200s...' is too long a path",
                       w->path.buf);
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        r = errno == ENOENT ? 0 : unreadable(w);
    else if (S_ISDIR(st.st_mode))
        r = put_directory(w, dir, name, &st);
    else if (S_ISREG(st.st_mode))
        r = put_file(w, dir, name);
    else if (S_ISLNK(st.st_mode))
        r = put_link(w, dir, name, &st);
    else
        leave_out(w);
    w->path.len = before;
    w->path.buf[before] = '\0';
    return r;
}

/* Writes all entries of a directory. Closes `dir`. */
static int put_all(struct writer *w, int dir)
{
    DIR *d = fdopendir(dir);
    struct dirent *entry;
    int r = 0;

    if (!d) {
        r = unreadable(w);
        close(dir);
        return r;
    }
    while (r == 0 && (errno = 0, entry = readdir(d)))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            r = put_one(w, dirfd(d), entry->d_name);
    if (r == 0 && errno)
        r = unreadable(w);
    closedir(d);
    return r;
}

int acp_tar_write(int dir, const char *name, int out, struct acp_tar_count *ret, struct sg_error *e)
{
    static const char end[2 * BLOCK];
    struct writer *w = xcalloc(1, sizeof(*w));
    int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r;

    w->root = name;
    w->out = out;
    w->e = e;
    strbuf_init(&w->path, PATH_BOUND);
    r = fd < 0 ? unreadable(w) : put_all(w, fd);
    if (r == 0)
        r = put(w, end, sizeof(end));
    if (r == 0)
        *ret = w->count;
    strbuf_done(&w->path);
    free(w);
    return r;
}
