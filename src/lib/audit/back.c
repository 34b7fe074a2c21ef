/* Reads the lines of a chain, from the newest to the oldest. The writer may be at work meanwhile:
 * it only appends whole lines, and text after the last newline is left for the next time. Files are
 * open only while a piece is read, so that reading all chains at once does not need a descriptor
 * for each. */
#include <fcntl.h>
#include <sys/stat.h>

#include "lib/audit/audit_impl.h"

#define WINDOW (64u * 1024)

int audit_back_open(struct audit_back *b, int dir, uint64_t below, struct sg_error *e)
{
    *b = (struct audit_back){.dir = dir, .below = below, .buf = malloc(WINDOW)};
    b->first = b->at = b->buf;
    if (dir < 0)
        return err_errno(e, "open the directory of the record");
    if (!b->buf)
        return err_set(e, SG_ERR_LIMIT, -ENOMEM, "out of memory");
    return audit_files(dir, &b->files, &b->n, e);
}

void audit_back_done(struct audit_back *b)
{
    close_p(&b->dir);
    free(b->files);
    free(b->buf);
}

/* Where the last whole line of a file ends. */
static int64_t last_newline(int fd, char *buf)
{
    struct stat st;
    int64_t end;

    if (fstat(fd, &st) < 0)
        return -errno;
    for (end = st.st_size; end > 0;) {
        size_t n = end < WINDOW ? (size_t)end : WINDOW;
        ssize_t got = pread(fd, buf, n, end - (int64_t)n);
        const char *at = got == (ssize_t)n ? memrchr(buf, '\n', n) : NULL;

        if (at)
            return end - (int64_t)n + (at + 1 - buf);
        if (got != (ssize_t)n)
            return got < 0 ? -errno : 0;
        end -= (int64_t)n;
    }
    return 0;
}

/* Whether a file has only lines at or above a number, judged by its first line. */
static bool is_above(int fd, uint64_t seq)
{
    char start[32] = "";
    unsigned long long first;

    return pread(fd, start, sizeof(start) - 1, 0) > 0 &&
           sscanf(start, "{\"seq\":%llu,", &first) == 1 && first >= seq;
}

/* Reads the lines before b->end. The first one is left out, because it may be only the end of a
 * line. */
static int read_window(struct audit_back *b, int fd)
{
    size_t n = b->end < WINDOW ? (size_t)b->end : WINDOW, used;
    ssize_t got = pread(fd, b->buf, n, b->end - (int64_t)n);
    char *newline;

    if (got != (ssize_t)n) {
        b->end = 0;
        return got < 0 ? -errno : 0;
    }
    newline = memchr(b->buf, '\n', n);
    b->at = b->buf + n;
    b->first = (size_t)b->end == n ? b->buf : newline ? newline + 1 : b->at;
    used = (size_t)(b->at - b->first);
    /* No line of ours fills a window: such bytes are skipped. */
    b->end -= (int64_t)(used > 0 ? used : n);
    return 0;
}

/* Reads the next piece. 0: there is no more. */
static int next_window(struct audit_back *b, struct sg_error *e)
{
    bool begins = b->end == 0;
    uint32_t number;
    int r = 0;

    if (begins && b->n == 0)
        return 0;
    if (begins)
        b->n--;
    number = b->files[b->n];
    AUTO(close_p) int fd = audit_file_open(b->dir, number, O_RDONLY);
    if (fd == -ENOENT) { /* it was the oldest, and was removed meanwhile */
        b->n = 0;
        b->end = 0;
        return 0;
    }
    r = fd < 0 ? fd : 0;
    if (r == 0 && begins && !(b->below > 0 && is_above(fd, b->below)))
        b->end = last_newline(fd, b->buf);
    if (b->end < 0)
        r = (int)b->end;
    if (r == 0 && b->end > 0)
        r = read_window(b, fd);
    if (r < 0)
        return err_code(e, r, "read file %u of the record", number);
    return 1;
}

int audit_back_next(struct audit_back *b, const char **ret, size_t *ret_len, struct sg_error *e)
{
    int r = 1;

    while (b->at == b->first && r > 0)
        r = next_window(b, e);
    if (r <= 0)
        return r;
    /* b->at is just after a newline. */
    const char *before = memrchr(b->first, '\n', (size_t)(b->at - 1 - b->first));
    char *start = b->first + (before ? before + 1 - b->first : 0);

    *ret = start;
    *ret_len = (size_t)(b->at - 1 - start);
    b->at = start;
    return 1;
}
