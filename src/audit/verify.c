/* Reading from the oldest line to the newest: each must continue the one before, and heads must be
 * signed. Where the first file begins with a later record, older files have been removed, and the
 * head that it begins with vouches for the place. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "audit/audit_impl.h"
#include "base/parse.h"

#define CHUNK (256u * 1024)

struct verify {
    struct audit_signer *key;
    struct audit_report *report;
    uint64_t next_seq; /* 0: nothing was read yet */
    char hash[AUDIT_HASH_LEN + 1];
    uint64_t records; /* as the next head must count them */
    uint32_t file;
    bool file_begins;
    uint64_t noted_seq; /* 0: none */
    const char *noted_hash;
    bool noted_found;
};

static int broken(struct verify *v, uint64_t seq, const char *fmt, ...) PRINTF(3, 4);
static int broken(struct verify *v, uint64_t seq, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(v->report->message, sizeof(v->report->message), fmt, ap);
    va_end(ap);
    v->report->bad_seq = seq;
    return -EBADMSG;
}

/* The number that a line should have. */
static uint64_t expected(const struct verify *v)
{
    return v->next_seq > 0 ? v->next_seq : 1;
}

/* ---- one line -------------------------------------------------------------------------------- */

static int check_first(struct verify *v, const struct audit_line *l)
{
    bool zeros = strspn(l->prev, "0") >= AUDIT_HASH_LEN;

    if (!l->signature)
        return broken(v, l->seq, "the record begins in the middle: %" PRIu64 " is no head", l->seq);
    if (zeros != (l->seq == 1) || (l->seq == 1 && l->records != 0))
        return broken(v, l->seq, "the record begins with %" PRIu64 ", which is no beginning",
                      l->seq);
    v->report->first_seq = l->seq;
    v->next_seq = l->seq;
    v->records = l->records;
    memcpy(v->hash, l->prev, AUDIT_HASH_LEN);
    return 0;
}

static int check_chain(struct verify *v, const char *line, const struct audit_line *l)
{
    char hash[AUDIT_HASH_LEN + 1];

    audit_hash_text(line, l->hashed, hash);
    /* Whether this line is as it was written comes first: its number may be what was changed. */
    if (memcmp(hash, l->hash, AUDIT_HASH_LEN) != 0)
        return broken(v, v->next_seq, "record %" PRIu64 " was changed", v->next_seq);
    if (l->seq != v->next_seq)
        return broken(v, v->next_seq, "record %" PRIu64 " is missing: %" PRIu64 " is in its place",
                      v->next_seq, l->seq);
    if (memcmp(l->prev, v->hash, AUDIT_HASH_LEN) != 0)
        return broken(v, l->seq, "record %" PRIu64 " does not continue the one before", l->seq);
    memcpy(v->hash, hash, sizeof(hash));
    return 0;
}

static int check_head(struct verify *v, const char *line, const struct audit_line *l)
{
    if (!audit_check(v->key, line, l->signed_len, l->signature, l->signature_len))
        return broken(v, l->seq, "head %" PRIu64 " is not signed by this key", l->seq);
    if (l->records != v->records || l->file != v->file)
        return broken(v, l->seq, "head %" PRIu64 " is out of place", l->seq);
    v->report->heads++;
    v->report->unsigned_records = 0;
    snprintf(v->report->head, sizeof(v->report->head), "%" PRIu64 ":%.*s", l->seq, AUDIT_HASH_LEN,
             l->hash);
    return 0;
}

static int check_noted(struct verify *v, const struct audit_line *l)
{
    if (v->noted_seq != l->seq)
        return 0;
    v->noted_found = true;
    if (memcmp(v->noted_hash, l->hash, AUDIT_HASH_LEN) != 0)
        return broken(v, l->seq, "record %" PRIu64 " is not the one that was noted", l->seq);
    return 0;
}

static int check_line(struct verify *v, const char *line, size_t len)
{
    struct audit_line l;
    int r = 0;

    if (audit_line_read(line, len, &l) < 0)
        return broken(v, expected(v), "what stands for record %" PRIu64 " is no record",
                      expected(v));
    if (v->next_seq == 0)
        r = check_first(v, &l);
    if (r == 0)
        r = check_chain(v, line, &l);
    if (r == 0 && v->file_begins && !l.signature)
        r = broken(v, l.seq, "file %u does not begin with a head", v->file);
    if (r == 0 && l.signature)
        r = check_head(v, line, &l);
    if (r == 0)
        r = check_noted(v, &l);
    if (r < 0)
        return r;
    if (!l.signature) {
        v->records++;
        v->report->records++;
        v->report->unsigned_records++;
    }
    v->file_begins = false;
    v->report->last_seq = l.seq;
    v->next_seq = l.seq + 1;
    return 0;
}

/* ---- all of them ----------------------------------------------------------------------------- */

/* Whole lines of the buffer; what is left is moved to its beginning. */
static int check_buffer(struct verify *v, char *buf, size_t *len)
{
    char *start = buf, *newline;
    int r = 0;

    while (r == 0 && (newline = memchr(start, '\n', (size_t)(buf + *len - start)))) {
        r = check_line(v, start, (size_t)(newline - start));
        start = newline + 1;
    }
    *len = (size_t)(buf + *len - start);
    memmove(buf, start, *len);
    return r;
}

/* last: its last line may be in the making, or cut by a crash. */
static int check_file(struct verify *v, int fd, bool last, struct sg_error *e)
{
    AUTO(free_p) char *buf = malloc(CHUNK + AUDIT_LINE_MAX);
    size_t len = 0;
    ssize_t n = 1;
    int r = 0;

    if (!buf)
        return err_set(e, SG_ERR_LIMIT, -ENOMEM, "out of memory");
    v->file_begins = true;
    while (r == 0 && n > 0) {
        n = read(fd, buf + len, CHUNK);
        if (n < 0)
            return err_errno(e, "read file %u of the record", v->file);
        len += (size_t)n;
        r = check_buffer(v, buf, &len);
        if (r == 0 && len > AUDIT_LINE_MAX)
            r = broken(v, expected(v), "what stands for record %" PRIu64 " is no record",
                       expected(v));
    }
    if (r == 0 && len > 0 && !last)
        r = broken(v, expected(v), "record %" PRIu64 " is cut short", expected(v));
    return r;
}

static int check_files(struct verify *v, int dirfd, struct sg_error *e)
{
    AUTO(free_p) uint32_t *files = NULL;
    size_t n;
    int r = audit_files(dirfd, &files, &n, e);

    for (size_t i = 0; r == 0 && i < n; i++) {
        AUTO(close_p) int fd = audit_file_open(dirfd, files[i], O_RDONLY);

        /* The oldest may have been removed in the meantime. */
        if (fd == -ENOENT && v->next_seq == 0)
            continue;
        if (fd < 0)
            return err_set(e, err_kind_of(-fd), fd, "open file %u of the record: %s", files[i],
                           strerror(-fd));
        v->file = files[i];
        r = check_file(v, fd, i + 1 == n, e);
    }
    return r;
}

/* "SEQ:HASH". */
static int parse_noted(struct verify *v, const char *head, struct sg_error *e)
{
    char seq[24];
    const char *colon = strchr(head, ':');

    if (colon && (size_t)(colon - head) < sizeof(seq) && strlen(colon + 1) == AUDIT_HASH_LEN &&
        strspn(colon + 1, "0123456789abcdef") == AUDIT_HASH_LEN) {
        snprintf(seq, sizeof(seq), "%.*s", (int)(colon - head), head);
        v->noted_hash = colon + 1;
        return parse_u64("the head's number", seq, 1, UINT64_MAX, &v->noted_seq, e);
    }
    return err_set(e, SG_ERR_INVALID, -EINVAL,
                   "'%.100s' is no head: write SEQ:HASH, as 'sandglass audit verify' shows it",
                   head);
}

static int check_noted_is_there(struct verify *v, struct sg_error *e)
{
    uint64_t first = v->report->first_seq;

    if (v->noted_seq == 0 || v->noted_found)
        return 0;
    if (v->noted_seq < first)
        return err_set(e, SG_ERR_NOT_FOUND, -ENOENT,
                       "head %" PRIu64 " is older than what is kept, which begins with %" PRIu64,
                       v->noted_seq, first);
    return broken(v, v->report->last_seq + 1,
                  "the record ends with %" PRIu64 ", but %" PRIu64 " was there: it was cut off",
                  v->report->last_seq, v->noted_seq);
}

int audit_verify(int dirfd, const char *public_key, const char *head, struct audit_report *ret,
                 struct sg_error *e)
{
    struct verify v = {.report = ret};
    int r;

    *ret = (struct audit_report){0};
    r = head ? parse_noted(&v, head, e) : 0;
    if (r == 0)
        r = audit_checker_open(dirfd, public_key, &v.key, e);
    if (r == 0)
        r = check_files(&v, dirfd, e);
    if (r == 0)
        r = check_noted_is_there(&v, e);
    audit_signer_free(v.key);
    if (r == -EBADMSG)
        err_set(e, SG_ERR_INVALID, r, "%s", ret->message);
    return r;
}
