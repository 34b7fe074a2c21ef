#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "audit/audit_impl.h"
#include "base/clock.h"
#include "base/fd.h"

/* What is written in one go: either all of it is in the file or none. */
#define BATCH_MAX (256u * 1024)

struct audit_log {
    int dir; /* locked: one writes */
    struct audit_limits limits;
    struct audit_signer *signer;
    struct audit_pending pending;
    struct audit_place place;
    int fd;                  /* of the newest file; -1: the next one is to be made */
    uint32_t oldest, newest; /* numbers of files; newest is 0 if there is none */
    uint64_t size;
    uint64_t head_ns; /* when the last head was written */
    bool torn;        /* a write has failed half way, and taking it back has too */
};

/* ---- opening --------------------------------------------------------------------------------- */

/* What the lines that are there say, from the last one back to the last head. */
struct found {
    struct audit_place *place;
    bool last_is_bad; /* the newest line is none of ours */
    bool any, head;
    uint64_t after_head;
};

static bool on_old_line(const char *line, size_t len, void *arg)
{
    struct found *f = arg;
    struct audit_line l;

    if (audit_line_read(line, len, &l) < 0 ||
        strspn(l.hash, "0123456789abcdef") != AUDIT_HASH_LEN) {
        f->last_is_bad |= !f->any;
        return true;
    }
    if (!f->any) {
        f->place->seq = l.seq;
        memcpy(f->place->hash, l.hash, AUDIT_HASH_LEN);
    }
    f->any = true;
    f->head = l.signature != NULL;
    if (f->head)
        f->place->records = l.records;
    else
        f->after_head++;
    return !f->head;
}

static int find_place(struct audit_log *log, bool *ret_bad, struct sg_error *e)
{
    struct found f = {.place = &log->place};
    int r;

    audit_place_init(&log->place);
    r = audit_scan_back(log->dir, 0, on_old_line, &f, e);
    log->place.records += f.after_head;
    log->place.since_head = f.after_head;
    *ret_bad = f.last_is_bad;
    return r;
}

/* Cuts off what is after the last newline. *ret: how much that was; -1: so much that it is no line
 * of ours, and is left. */
static int cut_last_line(struct audit_log *log, ssize_t *ret, struct sg_error *e)
{
    AUTO(free_p) char *tail = malloc(AUDIT_LINE_MAX);
    size_t want = log->size < AUDIT_LINE_MAX ? (size_t)log->size : AUDIT_LINE_MAX;
    const char *newline;
    ssize_t n;

    *ret = 0;
    if (want == 0)
        return 0;
    if (!tail)
        return err_set(e, SG_ERR_LIMIT, -ENOMEM, "out of memory");
    n = pread(log->fd, tail, want, (off_t)(log->size - want));
    if (n != (ssize_t)want)
        return n < 0 ? err_errno(e, "read the record")
                     : err_set(e, SG_ERR_INTERNAL, -EIO, "read the record: it is shorter now");
    newline = memrchr(tail, '\n', want);
    if (!newline && want < log->size) {
        *ret = -1;
        return 0;
    }
    *ret = newline ? tail + want - (newline + 1) : (ssize_t)want;
    if (*ret > 0 && ftruncate(log->fd, (off_t)(log->size - (size_t)*ret)) < 0)
        return err_errno(e, "cut the unfinished line of the record");
    log->size -= (size_t)*ret;
    return 0;
}

static void close_file(struct audit_log *log)
{
    close_p(&log->fd);
    log->fd = -1;
    log->size = 0;
}

static void record_repair(struct audit_log *log, ssize_t cut)
{
    char detail[64];
    struct audit_record r = {
        .kind = "start", .rule = "unfinished record removed", .detail = detail};

    snprintf(detail, sizeof(detail), "%zd bytes", cut);
    if (cut <= 0)
        r = (struct audit_record){.kind = "start", .rule = "damaged record left as it is"};
    audit_write(log, &r);
}

/* Opens the newest file and finds where it ends. */
static int go_on(struct audit_log *log, struct sg_error *e)
{
    struct stat st;
    ssize_t cut;
    bool bad = false;
    int r;

    log->fd = audit_file_open(log->dir, log->newest, O_RDWR | O_APPEND);
    if (log->fd < 0 || fstat(log->fd, &st) < 0)
        return err_errno(e, "open file %u of the record", log->newest);
    log->size = (uint64_t)st.st_size;
    r = cut_last_line(log, &cut, e);
    if (r == 0)
        r = find_place(log, &bad, e);
    if (r < 0)
        return r;
    /* Nothing is changed in what is not ours to understand: it is for whoever verifies. */
    bad |= cut < 0;
    if (bad)
        close_file(log);
    if (bad || cut > 0)
        record_repair(log, bad ? 0 : cut);
    return 0;
}

static int open_directory(int dirfd, struct audit_log *log, struct sg_error *e)
{
    AUTO(free_p) uint32_t *files = NULL;
    size_t n;
    int r;

    log->dir = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (log->dir < 0)
        return err_errno(e, "open the directory of the record");
    if (flock(log->dir, LOCK_EX | LOCK_NB) < 0)
        return err_set(e, SG_ERR_GONE, -EBUSY, "another guard writes the record");
    r = audit_files(log->dir, &files, &n, e);
    if (r == 0 && n > 0) {
        log->oldest = files[0];
        log->newest = files[n - 1];
    }
    return r;
}

static void log_free(struct audit_log *log)
{
    audit_pending_drop(&log->pending, log->pending.n);
    audit_signer_free(log->signer);
    close_p(&log->fd);
    close_p(&log->dir);
    free(log);
}

int audit_open(int dirfd, const struct audit_limits *limits, struct audit_log **ret,
               struct sg_error *e)
{
    struct audit_log *log = xcalloc(1, sizeof(*log));
    int r;

    log->limits = *limits;
    log->fd = log->dir = -1;
    log->head_ns = clock_ns();
    audit_place_init(&log->place);
    audit_pending_init(&log->pending);
    r = open_directory(dirfd, log, e);
    if (r == 0)
        r = audit_signer_open(log->dir, &log->signer, e);
    if (r == 0 && log->newest > 0)
        r = go_on(log, e);
    if (r < 0)
        log_free(log);
    else
        *ret = log;
    return r;
}

void audit_set_limits(struct audit_log *log, const struct audit_limits *limits)
{
    log->limits = *limits;
}

/* ---- writing --------------------------------------------------------------------------------- */

void audit_write(struct audit_log *log, const struct audit_record *r)
{
    audit_pending_add(&log->pending, r, clock_wall_ms());
}

static int open_next_file(struct audit_log *log)
{
    int fd = audit_file_open(log->dir, log->newest + 1, O_WRONLY | O_APPEND | O_CREAT | O_EXCL);

    if (fd < 0)
        return fd;
    log->fd = fd;
    log->size = 0;
    log->newest++;
    if (log->oldest == 0)
        log->oldest = log->newest;
    audit_files_trim(log->dir, &log->oldest, log->newest, log->limits.files);
    return 0;
}

/* Takes the half of a batch back that was written before the disk was full. */
static int mend(struct audit_log *log)
{
    if (log->torn && ftruncate(log->fd, (off_t)log->size) < 0)
        return -errno;
    log->torn = false;
    return 0;
}

static int write_batch(struct audit_log *log, const struct strbuf *text)
{
    int r = fd_write_all(log->fd, text->buf, text->len);

    if (r < 0) {
        log->torn = true;
        mend(log);
        return r;
    }
    log->size += text->len;
    return 0;
}

/* As many lines as fit a batch and the file, one at least. A file begins with a head, so that
 * nothing can be cut off its beginning, and heads come in between. *ret_n: the records among them.
 */
static void print_batch(struct audit_log *log, bool head_at_end, struct strbuf *out,
                        struct audit_place *p, size_t *ret_n)
{
    int64_t now = clock_wall_ms();
    struct audit_entry *en = log->pending.first;
    size_t n = 0;

    if (log->size == 0)
        audit_print_head(out, p, now, log->newest, log->signer);
    for (; en && out->len + 2 * AUDIT_LINE_MAX < out->max &&
           (n == 0 || log->size + out->len < log->limits.file_bytes);
         en = en->next, n++) {
        audit_print_record(out, p, en->time_ms, en->count, &en->r);
        if (p->since_head >= AUDIT_HEAD_RECORDS)
            audit_print_head(out, p, now, log->newest, log->signer);
    }
    if (!en && head_at_end && p->since_head > 0)
        audit_print_head(out, p, now, log->newest, log->signer);
    *ret_n = n;
}

/* One batch. *ret_more: there may be another. */
static int flush_some(struct audit_log *log, bool head_at_end, struct strbuf *out, bool *ret_more)
{
    struct audit_place place = log->place;
    size_t n;
    int r = log->fd < 0 ? open_next_file(log) : mend(log);

    if (r < 0)
        return r;
    strbuf_reset(out);
    print_batch(log, head_at_end, out, &place, &n);
    r = write_batch(log, out);
    if (r < 0)
        return r;
    if (place.head_seq != log->place.head_seq)
        log->head_ns = clock_ns();
    log->place = place;
    audit_pending_drop(&log->pending, n);
    if (log->size >= log->limits.file_bytes)
        close_file(log);
    *ret_more = log->pending.first || (head_at_end && place.since_head > 0);
    return 0;
}

static int flush(struct audit_log *log, bool head_at_end)
{
    AUTO(strbuf_done) struct strbuf out = {0};
    bool more = log->pending.first || (head_at_end && log->place.since_head > 0);
    int r = 0;

    strbuf_init(&out, BATCH_MAX);
    while (r == 0 && more)
        r = flush_some(log, head_at_end, &out, &more);
    return r;
}

int audit_flush(struct audit_log *log)
{
    bool due = log->place.since_head > 0 && clock_ns() - log->head_ns >= AUDIT_HEAD_NS;

    return flush(log, due);
}

void audit_close(struct audit_log *log)
{
    if (!log)
        return;
    flush(log, true);
    if (log->fd >= 0)
        fdatasync(log->fd);
    log_free(log);
}
