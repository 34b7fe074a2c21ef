#include "pull/bundle.h"

#include <string.h>
#include <sys/stat.h>

#include "lib/base/sys.h"
#include "pull/fault.h"

#define COPY_BYTES (256u << 10)

int bundle_open(struct bundle *b, int fd, bool directory, const struct deadline *d,
                struct sg_error *e)
{
    struct stat st;

    *b = (struct bundle){.dir = directory ? fd : -1, .deadline = d};
    if (!directory)
        return tar_open(&b->tar, fd, e);
    if (fstat(fd, &st) < 0 || !S_ISDIR(st.st_mode))
        return fault_invalid(e, "the layout is not a directory");
    return 0;
}

void bundle_done(struct bundle *b)
{
    tar_done(&b->tar);
}

void piece_done(struct piece *p)
{
    if (p->own)
        close_p(&p->fd);
    *p = (struct piece){0};
}

/* Nothing below the directory may lead out of it, or be anything but a file. */
static int open_below(int dir, const char *path, struct piece *ret, struct sg_error *e)
{
    struct open_how how = {.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
                           .resolve =
                               RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
    AUTO(close_p) int fd = sys_openat2(dir, path, &how);
    struct stat st;

    if (fd < 0 && errno == ENOENT)
        return -ENOENT;
    if (fd < 0 && (errno == ELOOP || errno == EXDEV))
        return fault_corrupt(e, "'%.200s' of the layout is a link", path);
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_errno(e, "open '%.200s' of the layout", path);
    if (!S_ISREG(st.st_mode))
        return fault_corrupt(e, "'%.200s' of the layout is not a file", path);
    *ret = (struct piece){.fd = steal_fd(&fd), .own = true, .size = (uint64_t)st.st_size};
    return 0;
}

int bundle_find(const struct bundle *b, const char *path, struct piece *ret, struct sg_error *e)
{
    struct piece p = {.fd = b->tar.fd};

    if (b->dir >= 0)
        return open_below(b->dir, path, ret, e);
    if (!tar_find(&b->tar, path, &p.offset, &p.size))
        return -ENOENT;
    *ret = p;
    return 0;
}

/* ---- reading --------------------------------------------------------------------------------- */

static int read_at(const struct piece *p, uint64_t at, void *buf, size_t len, struct sg_error *e)
{
    ssize_t n = pread(p->fd, buf, len, (off_t)(p->offset + at));

    if (n < 0)
        return err_errno(e, "read the image");
    return (size_t)n == len ? 0 : fault_corrupt(e, "the image was cut off while it was read");
}

int piece_read(const struct piece *p, const char *what, size_t max, char **ret, struct sg_error *e)
{
    AUTO(free_p) char *text = NULL;
    int r;

    if (p->size > max)
        return fault_limit(e, "%s has more than %zu bytes", what, max);
    text = xcalloc(1, p->size + 1);
    r = read_at(p, 0, text, p->size, e);
    if (r == 0)
        *ret = steal_ptr(&text);
    return r;
}

/* Hands all bytes on, in pieces. */
static int each_piece(const struct bundle *b, const struct piece *p,
                      int (*take)(void *arg, const void *data, size_t len, struct sg_error *e),
                      void *arg, struct sg_error *e)
{
    AUTO(free_p) char *buf = xcalloc(1, COPY_BYTES);
    int r = 0;

    for (uint64_t at = 0; r == 0 && at < p->size;) {
        size_t len = p->size - at < COPY_BYTES ? (size_t)(p->size - at) : COPY_BYTES;

        r = deadline_check(b->deadline, e);
        if (r == 0)
            r = read_at(p, at, buf, len, e);
        if (r == 0)
            r = take(arg, buf, len, e);
        at += len;
    }
    return r;
}

struct copy {
    struct part *part;
    struct report *report;
};

static int take_copy(void *arg, const void *data, size_t len, struct sg_error *e)
{
    struct copy *c = arg;
    int r = part_add(c->part, data, len, e);

    if (r == 0 && report_progress(c->report, c->part->bytes) < 0)
        return fault_cancelled(e, "cancelled");
    return r;
}

int piece_copy(const struct bundle *b, const struct piece *p, struct part *part,
               struct report *report, struct sg_error *e)
{
    struct copy c = {.part = part, .report = report};

    return each_piece(b, p, take_copy, &c, e);
}

static int take_hash(void *arg, const void *data, size_t len, struct sg_error *e UNUSED)
{
    hasher_add(arg, data, len);
    return 0;
}

int piece_digest(const struct bundle *b, const struct piece *p, struct digest *ret,
                 struct sg_error *e)
{
    AUTO(hasher_done) struct hasher h = {0};
    int r;

    hasher_init(&h, NULL);
    r = each_piece(b, p, take_hash, &h, e);
    if (r == 0)
        *ret = hasher_end(&h);
    return r;
}
