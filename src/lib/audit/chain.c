#include <fcntl.h>
#include <sys/stat.h>

#include "lib/audit/audit_impl.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"

/* Bytes of one write: either all of them are in the file or none. */
#define BATCH_MAX (256u * 1024)

/* ---- opening --------------------------------------------------------------------------------- */

/* The state of a chain, as its lines tell it from the last one back to the last head. */
struct found {
    struct audit_place *place;
    bool last_is_bad; /* we did not write the newest line */
    bool any, head;
    uint64_t after_head;
};

/* False: the line is a head. */
static bool on_old_line(const char *line, size_t len, struct found *f)
{
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
    if (f->head) {
        f->place->records = l.records;
        f->place->head.seq = l.seq;
        memcpy(f->place->head.hash, l.hash, AUDIT_HASH_LEN);
    } else {
        f->after_head++;
    }
    return !f->head;
}

static int find_place(struct audit_chain *c, bool *ret_bad, struct sg_error *e)
{
    struct found f = {.place = &c->place};
    struct audit_back back;
    const char *line;
    size_t len;
    int r = audit_back_open(&back, fcntl(c->dir, F_DUPFD_CLOEXEC, 0), 0, e);

    while (r >= 0 && (r = audit_back_next(&back, &line, &len, e)) > 0)
        if (!on_old_line(line, len, &f))
            break;
    audit_back_done(&back);
    c->place.records += f.after_head;
    c->place.since_head = f.after_head;
    *ret_bad = f.last_is_bad;
    return r < 0 ? r : 0;
}

/* Cuts off the text after the last newline. *ret: how many bytes that was; -1: too many for a line
 * of ours, so they are left. */
static int cut_last_line(struct audit_chain *c, ssize_t *ret, struct sg_error *e)
{
    AUTO(free_p) char *tail = malloc(AUDIT_LINE_MAX);
    size_t want = c->size < AUDIT_LINE_MAX ? (size_t)c->size : AUDIT_LINE_MAX;
    const char *newline;
    ssize_t n;

    *ret = 0;
    if (want == 0)
        return 0;
    if (!tail)
        return err_set(e, SG_ERR_LIMIT, -ENOMEM, "out of memory");
    n = pread(c->fd, tail, want, (off_t)(c->size - want));
    if (n != (ssize_t)want)
        return n < 0
                   ? err_errno(e, "read the record")
                   : err_set(e, SG_ERR_INTERNAL, -EIO, "read the record: its file became shorter");
    newline = memrchr(tail, '\n', want);
    if (!newline && want < c->size) {
        *ret = -1;
        return 0;
    }
    *ret = newline ? tail + want - (newline + 1) : (ssize_t)want;
    if (*ret > 0 && ftruncate(c->fd, (off_t)(c->size - (size_t)*ret)) < 0)
        return err_errno(e, "cut the unfinished line of the record");
    c->size -= (size_t)*ret;
    return 0;
}

static void close_file(struct audit_chain *c)
{
    close_p(&c->fd);
    c->fd = -1;
}

static void record_repair(struct audit_chain *c, ssize_t cut)
{
    char detail[64];
    struct audit_record r = {.kind = "start", .tenant = c->tenant};

    snprintf(detail, sizeof(detail), "%zd bytes", cut);
    r.rule = cut > 0 ? "unfinished record removed" : "damaged record left as it is";
    r.detail = cut > 0 ? detail : NULL;
    audit_pending_add(&c->pending, &r, clock_wall_ms());
}

/* Opens the newest file, to append. */
static int open_file(struct audit_chain *c)
{
    if (c->dir < 0)
        c->dir = audit_tenant_open(c->top, c->tenant);
    if (c->dir < 0)
        return c->dir;
    c->fd = audit_file_open(c->dir, c->newest, O_RDWR | O_APPEND);
    return c->fd < 0 ? c->fd : 0;
}

/* Opens the newest file and finds where it ends. */
static int go_on(struct audit_chain *c, struct sg_error *e)
{
    struct stat st;
    ssize_t cut;
    bool bad = false;
    int r = open_file(c);

    if (r < 0)
        return err_code(e, r, "open file %u of the record", c->newest);
    if (fstat(c->fd, &st) < 0)
        return err_errno(e, "open file %u of the record", c->newest);
    c->size = (uint64_t)st.st_size;
    r = cut_last_line(c, &cut, e);
    if (r == 0)
        r = find_place(c, &bad, e);
    if (r < 0)
        return r;
    /* A file that we do not understand is not changed: it is evidence for whoever verifies. */
    bad |= cut < 0;
    c->next_file = bad;
    if (bad || cut > 0)
        record_repair(c, bad ? 0 : cut);
    return 0;
}

static int open_directory(struct audit_chain *c, struct sg_error *e)
{
    AUTO(free_p) uint32_t *files = NULL;
    size_t n;
    int r;

    c->dir = audit_tenant_open(c->top, c->tenant);
    if (c->dir < 0)
        return err_code(e, c->dir, "open the folder '%s' of the record", c->tenant);
    r = audit_files(c->dir, &files, &n, e);
    if (r == 0 && n > 0) {
        c->oldest = files[0];
        c->newest = files[n - 1];
    }
    return r;
}

void audit_chain_rest(struct audit_chain *c)
{
    close_file(c);
    close_p(&c->dir);
    c->dir = -1;
}

void audit_chain_free(struct audit_chain *c)
{
    audit_pending_done(&c->pending);
    audit_chain_rest(c);
    free(c);
}

int audit_chain_open(int top, const char *tenant, struct map *table, uint64_t *seq,
                     struct audit_chain **ret, struct sg_error *e)
{
    struct audit_chain *c = NEW(struct audit_chain, .top = top, .fd = -1, .dir = -1,
                                .head_ns = clock_ns(), .pending.table = table);
    int r;

    snprintf(c->tenant, sizeof(c->tenant), "%s", tenant);
    audit_place_init(&c->place);
    r = open_directory(c, e);
    if (r == 0 && c->newest > 0)
        r = go_on(c, e);
    if (r < 0) {
        audit_chain_free(c);
        return r;
    }
    c->next_file |= c->newest == 0;
    if (c->place.seq > *seq)
        *seq = c->place.seq;
    audit_chain_rest(c);
    *ret = c;
    return 0;
}

/* ---- writing --------------------------------------------------------------------------------- */

static int open_next_file(struct audit_chain *c, const struct audit_writer *w)
{
    int fd;

    if (c->dir < 0)
        c->dir = audit_tenant_open(c->top, c->tenant);
    if (c->dir < 0)
        return c->dir;
    fd = audit_file_open(c->dir, c->newest + 1, O_WRONLY | O_APPEND | O_CREAT | O_EXCL);
    if (fd < 0)
        return fd;
    close_file(c);
    c->fd = fd;
    c->size = 0;
    c->next_file = false;
    c->made = true;
    c->newest++;
    if (c->oldest == 0)
        c->oldest = c->newest;
    audit_files_trim(c->dir, &c->oldest, c->newest, w->limits->files);
    return 0;
}

/* Takes back the part of a batch that was written before the disk was full. */
static int mend(struct audit_chain *c)
{
    if (c->torn && ftruncate(c->fd, (off_t)c->size) < 0)
        return -errno;
    c->torn = false;
    return 0;
}

static int write_batch(struct audit_chain *c, const struct strbuf *text)
{
    int r = fd_write_all(c->fd, text->buf, text->len);

    c->unsynced = true;
    if (r < 0) {
        c->torn = true;
        mend(c);
        return r;
    }
    c->size += text->len;
    return 0;
}

/* Prints as many lines as fit a batch and the file, one at least. A file begins with a head, so
 * that nothing can be cut off its beginning, and further heads come in between. *ret_n: the records
 * among the lines. */
static void print_batch(struct audit_chain *c, const struct audit_writer *w, bool head_at_end,
                        struct strbuf *out, struct audit_place *p, size_t *ret_n)
{
    int64_t now = clock_wall_ms();
    size_t n = 0;

    if (c->size == 0)
        audit_print_head(out, p, now, c->newest, w->signer);
    LIST_EACH(struct audit_entry, en, &c->pending.wait.all, link) {
        if (out->len + 2 * AUDIT_LINE_MAX >= out->max ||
            (n > 0 && c->size + out->len >= w->limits->file_bytes))
            break;
        n++;
        audit_print_record(out, p, en->time_ms, en->count, &en->r);
        if (p->since_head >= AUDIT_HEAD_RECORDS)
            audit_print_head(out, p, now, c->newest, w->signer);
    }
    if (n == c->pending.wait.n && head_at_end && p->since_head > 0)
        audit_print_head(out, p, now, c->newest, w->signer);
    *ret_n = n;
}

/* Writes one batch. */
static int flush_some(struct audit_chain *c, const struct audit_writer *w, bool head_at_end,
                      struct strbuf *out)
{
    struct audit_place place = c->place;
    size_t n;
    int r = c->next_file ? open_next_file(c, w) : c->fd < 0 ? open_file(c) : 0;

    if (r == 0)
        r = mend(c);
    if (r < 0)
        return r;
    strbuf_reset(out);
    place.seq = *w->seq;
    print_batch(c, w, head_at_end, out, &place, &n);
    r = write_batch(c, out);
    if (r < 0)
        return r;
    if (place.head.seq != c->place.head.seq)
        c->head_ns = clock_ns();
    c->place = place;
    *w->seq = place.seq;
    audit_pending_written(&c->pending, n, clock_ns());
    c->next_file = c->size >= w->limits->file_bytes;
    return 0;
}

int audit_chain_flush(struct audit_chain *c, const struct audit_writer *w, bool head)
{
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(BATCH_MAX);
    int r = 0;

    while (r == 0 && (c->pending.wait.n > 0 || (head && c->place.since_head > 0)))
        r = flush_some(c, w, head, &out);
    return r;
}
