/* Reading from the newest line to the oldest. The one that writes may be at work: it only appends
 * whole lines, and what is after the last newline is left for the next time. */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "audit/audit_impl.h"

#define WINDOW (256u * 1024)
/* The wall clock may have been set back: records from before a query's beginning are looked at for
 * so much longer. */
#define CLOCK_SLACK_MS 3600000

/* ---- all lines ------------------------------------------------------------------------------- */

/* The lines of a window, from the last to the first; it ends with a newline. whole: it begins where
 * the file does, else the first is taken for the end of a line that is not all there. *ret_used:
 * how much of the window they are. False: fn has said so. */
static bool scan_window(const char *buf, size_t len, bool whole, size_t *ret_used, audit_line_fn fn,
                        void *arg)
{
    const char *first = whole ? buf : memchr(buf, '\n', len);
    const char *end = buf + len; /* behind a newline */

    if (!whole)
        first = first ? first + 1 : end;
    while (end > first) {
        const char *before = memrchr(first, '\n', (size_t)(end - 1 - first));
        const char *start = before ? before + 1 : first;

        if (!fn(start, (size_t)(end - 1 - start), arg))
            return false;
        end = start;
    }
    *ret_used = (size_t)(buf + len - first);
    return true;
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

/* 1: fn has said false. */
static int scan_file(int fd, char *buf, audit_line_fn fn, void *arg)
{
    int64_t end = last_newline(fd, buf);

    while (end > 0) {
        size_t n = end < WINDOW ? (size_t)end : WINDOW, used = 0;
        ssize_t got = pread(fd, buf, n, end - (int64_t)n);

        if (got != (ssize_t)n)
            return got < 0 ? -errno : 0;
        if (!scan_window(buf, n, (size_t)end == n, &used, fn, arg))
            return 1;
        /* No line is that long: it is skipped. */
        end -= (int64_t)(used > 0 ? used : n);
    }
    return end < 0 ? (int)end : 0;
}

/* Whether all of a file is at or above a number, by its first line. */
static bool is_above(int fd, uint64_t seq)
{
    char start[32] = "";
    unsigned long long first;

    return pread(fd, start, sizeof(start) - 1, 0) > 0 &&
           sscanf(start, "{\"seq\":%llu,", &first) == 1 && first >= seq;
}

int audit_scan_back(int dirfd, uint64_t first_seq_below, audit_line_fn fn, void *arg,
                    struct sg_error *e)
{
    AUTO(free_p) uint32_t *files = NULL;
    AUTO(free_p) char *buf = malloc(WINDOW);
    size_t n;
    int r = audit_files(dirfd, &files, &n, e);

    if (r < 0)
        return r;
    if (!buf)
        return err_set(e, SG_ERR_LIMIT, -ENOMEM, "out of memory");
    for (; r == 0 && n > 0; n--) {
        AUTO(close_p) int fd = audit_file_open(dirfd, files[n - 1], O_RDONLY);

        if (fd == -ENOENT) /* it was the oldest, and is gone now */
            break;
        r = fd;
        if (fd >= 0)
            r = first_seq_below > 0 && is_above(fd, first_seq_below) ? 0
                                                                     : scan_file(fd, buf, fn, arg);
        if (r < 0)
            return err_set(e, err_kind_of(-r), r, "read file %u of the record: %s", files[n - 1],
                           strerror(-r));
    }
    return 0;
}

/* ---- those that are wanted ------------------------------------------------------------------- */

struct query {
    const struct audit_filter *f;
    char from[AUDIT_TIME_LEN + 1], to[AUDIT_TIME_LEN + 1], give_up[AUDIT_TIME_LEN + 1];
    uint32_t found;
    bool (*fn)(const char *line, size_t len, uint64_t seq, void *arg);
    void *arg;
};

static bool text_is(const char *line, size_t len, const char *key, const char *want)
{
    size_t n = 0;
    const char *value;

    if (!want)
        return true;
    value = audit_line_text(line, len, key, &n);
    return value && strlen(want) == n && memcmp(value, want, n) == 0;
}

static bool name_is(const char *line, size_t len, const char *want)
{
    size_t n = 0, w;
    const char *value;

    if (!want)
        return true;
    value = audit_line_text(line, len, "name", &n);
    if (!value)
        return false;
    w = strlen(want);
    if (want[0] != '*' || want[1] != '.')
        return n == w && strncasecmp(value, want, n) == 0;
    /* "*.x": the dot is a part of what must be there, and something before it. */
    return n > w - 1 && strncasecmp(value + n - (w - 1), want + 1, w - 1) == 0;
}

static bool on_line(const char *line, size_t len, void *arg)
{
    struct query *q = arg;
    const struct audit_filter *f = q->f;
    struct audit_line l;

    if (audit_line_read(line, len, &l) < 0)
        return true;
    if (f->from_ms && memcmp(l.time, q->give_up, AUDIT_TIME_LEN) < 0)
        return false;
    if ((f->before && l.seq >= f->before) ||
        (f->from_ms && memcmp(l.time, q->from, AUDIT_TIME_LEN) < 0) ||
        (f->to_ms && memcmp(l.time, q->to, AUDIT_TIME_LEN) > 0) ||
        !text_is(line, l.hashed, "tenant", f->tenant) ||
        !text_is(line, l.hashed, "sandbox", f->sandbox) ||
        !text_is(line, l.hashed, "kind", f->kind) ||
        !text_is(line, l.hashed, "verdict", f->verdict) || !name_is(line, l.hashed, f->name))
        return true;
    q->found++;
    return q->fn(line, len, l.seq, q->arg) && (f->limit == 0 || q->found < f->limit);
}

int audit_query(int dirfd, const struct audit_filter *f,
                bool (*fn)(const char *line, size_t len, uint64_t seq, void *arg), void *arg,
                struct sg_error *e)
{
    struct query q = {.f = f, .fn = fn, .arg = arg};
    int64_t give_up = f->from_ms > CLOCK_SLACK_MS ? f->from_ms - CLOCK_SLACK_MS : 0;

    audit_time_text(f->from_ms, q.from);
    audit_time_text(f->to_ms, q.to);
    audit_time_text(give_up, q.give_up);
    return audit_scan_back(dirfd, f->before, on_line, &q, e);
}
