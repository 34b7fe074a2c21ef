#include "cli/shared/acp_tar.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/tar/tar_out.h"
#include "lib/base/fd.h"
#include "lib/text/strbuf.h"

#define CHUNK (64u * 1024)

struct writer {
    const char *root; /* the directory's name, for errors */
    int out;
    struct tar_out tar;
    struct strbuf path; /* of the entry that is being written, from the root on */
    struct acp_tar_count count;
    unsigned depth;
    char chunk[CHUNK];
    struct sg_error *e;
};

static int put(void *arg, const void *data, size_t len)
{
    struct writer *w = arg;
    int r = fd_write_all(w->out, data, len);

    return r < 0 ? err_code(w->e, r, "cannot write the tar") : 0;
}

static int unreadable(struct writer *w)
{
    return err_errno(w->e, "cannot read '%.200s/%.200s'", w->root, w->path.buf);
}

static int put_entry(struct writer *w, const char *link, char type, const struct stat *st,
                     uint64_t size)
{
    struct tar_out_entry e = {.name = w->path.buf,
                              .link = link,
                              .type = type,
                              .mode = st->st_mode,
                              .mtime = st->st_mtime,
                              .size = size};

    return tar_out_entry(&w->tar, &e);
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
    return tar_out_pad(&w->tar, size);
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
    r = put_entry(w, "", '0', &st, size);
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
    return put_entry(w, target, '2', st, 0);
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
    r = put_entry(w, "", '5', st, 0);
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
    struct writer *w = xcalloc(1, sizeof(*w));
    int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r;

    w->root = name;
    w->out = out;
    w->tar = (struct tar_out){put, w};
    w->e = e;
    strbuf_init(&w->path, TAR_OUT_PATH_MAX);
    r = fd < 0 ? unreadable(w) : put_all(w, fd);
    if (r == 0)
        r = tar_out_end(&w->tar);
    if (r == 0)
        *ret = w->count;
    strbuf_done(&w->path);
    free(w);
    return r;
}
