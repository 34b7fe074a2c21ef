/* Verifies each chain from the oldest line to the newest: each line must continue the one before,
 * and heads must be signed. If the first file begins with a later record, older files have been
 * removed, and the head at its beginning vouches for the place. The top chain comes first, because
 * the heads that it has noted must be in the other chains. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>

#include "lib/audit/audit_impl.h"
#include "lib/base/map.h"
#include "lib/text/parse.h"

#define CHUNK (256u * 1024)

/* The last head of another chain that the top chain has noted, or a head that the caller has. */
struct note {
    struct map_node by_tenant;
    char tenant[ID_LEN + 1];
    uint64_t at;  /* number of the record that notes it; 0: the caller does */
    uint64_t seq; /* number of the head; 0: none */
    char hash[AUDIT_HASH_LEN + 1];
    bool seen;  /* the chain is there */
    bool found; /* and the head in it */
};

struct verify {
    struct audit_signer *key;
    struct audit_report *report;
    const char *tenant; /* whose chain; "": the top chain */
    struct map notes;
    struct note *note;            /* the note about this chain, or NULL */
    uint64_t first_seq, last_seq; /* of this chain; 0: nothing was read yet */
    char hash[AUDIT_HASH_LEN + 1];
    uint64_t records; /* count that the next head must have */
    uint64_t unsigned_records;
    uint32_t file;
    bool file_begins;
    struct note noted; /* by the caller */
};

static int broken(struct verify *v, uint64_t seq, const char *fmt, ...) PRINTF(3, 4);
static int broken(struct verify *v, uint64_t seq, const char *fmt, ...)
{
    va_list ap;

    char *to = v->report->message;
    size_t cap = sizeof(v->report->message);
    int n = v->tenant[0] ? snprintf(to, cap, "tenant %s: ", v->tenant) : 0;

    va_start(ap, fmt);
    vsnprintf(to + n, cap - (size_t)n, fmt, ap);
    va_end(ap);
    v->report->bad_seq = seq;
    return -EBADMSG;
}

/* The least number that the next line can have. */
static uint64_t expected(const struct verify *v)
{
    return v->last_seq + 1;
}

/* ---- one line -------------------------------------------------------------------------------- */

static int check_first(struct verify *v, const struct audit_line *l)
{
    bool zeros = strspn(l->prev, "0") >= AUDIT_HASH_LEN;

    if (!l->signature)
        return broken(v, l->seq, "the record begins in the middle: %" PRIu64 " is no head", l->seq);
    if (zeros != (l->records == 0))
        return broken(v, l->seq, "the record begins with %" PRIu64 ", which does not begin a chain",
                      l->seq);
    v->first_seq = l->seq;
    v->last_seq = l->seq - 1;
    v->records = l->records;
    v->report->removed += l->records;
    memcpy(v->hash, l->prev, AUDIT_HASH_LEN);
    return 0;
}

static int check_chain(struct verify *v, const char *line, const struct audit_line *l)
{
    char hash[AUDIT_HASH_LEN + 1];
    uint64_t next = expected(v);

    audit_hash_text(line, l->hashed, hash);
    /* The hash comes first: if the line was changed, its number may be what was changed. */
    if (memcmp(hash, l->hash, AUDIT_HASH_LEN) != 0)
        return l->seq > next /* perhaps: other chains have the numbers between */
                   ? broken(v, next, "the record after %" PRIu64 " was changed", v->last_seq)
                   : broken(v, next, "record %" PRIu64 " was changed", next);
    if (l->seq < next)
        return broken(v, next, "record %" PRIu64 " is missing: %" PRIu64 " is in its place", next,
                      l->seq);
    if (memcmp(l->prev, v->hash, AUDIT_HASH_LEN) != 0)
        return broken(v, next,
                      l->seq > next ? "a record after %" PRIu64 " is missing: %" PRIu64
                                      " is in its place"
                                    : "after %" PRIu64 ", record %" PRIu64
                                      " does not continue the one before",
                      v->last_seq, l->seq);
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
    v->unsigned_records = 0;
    if (!v->tenant[0])
        snprintf(v->report->head, sizeof(v->report->head), "%" PRIu64 ":%.*s", l->seq,
                 AUDIT_HASH_LEN, l->hash);
    return 0;
}

/* ---- what the chain above says --------------------------------------------------------------- */

/* "SEQ:HASH". */
static bool parse_head(const char *head, size_t len, uint64_t *ret_seq, const char **ret_hash)
{
    const char *colon = memchr(head, ':', len);
    char seq[24];

    if (!colon || (size_t)(colon - head) >= sizeof(seq) ||
        len - (size_t)(colon + 1 - head) != AUDIT_HASH_LEN ||
        strspn(colon + 1, "0123456789abcdef") < AUDIT_HASH_LEN)
        return false;
    snprintf(seq, sizeof(seq), "%.*s", (int)(colon - head), head);
    *ret_hash = colon + 1;
    return parse_u64("the head's number", seq, 1, UINT64_MAX, ret_seq, NULL) == 0;
}

static struct note *note_of(struct verify *v, const char *tenant)
{
    return MAP_FIND(struct note, n, &v->notes, hash_text(0, tenant), by_tenant,
                    strcmp(n->tenant, tenant) == 0);
}

/* Takes a note from a line of the top chain; the newest note of a chain counts. 1: the line is a
 * note. */
static int take_note(struct verify *v, const char *line, const struct audit_line *l)
{
    char tenant[ID_LEN + 1];
    const char *kind, *name, *head, *hash;
    size_t kind_len, name_len, head_len;
    uint64_t seq;
    struct note *n;

    kind = audit_line_text(line, l->hashed, "kind", &kind_len);
    if (v->tenant[0] || !kind || kind_len != 5 || memcmp(kind, "chain", 5) != 0)
        return 0;
    name = audit_line_text(line, l->hashed, "name", &name_len);
    head = audit_line_text(line, l->hashed, "detail", &head_len);
    if (!name || name_len != ID_LEN || !head || !parse_head(head, head_len, &seq, &hash))
        return 0;
    snprintf(tenant, sizeof(tenant), "%.*s", ID_LEN, name);
    n = note_of(v, tenant);
    if (!n) {
        n = xcalloc(1, sizeof(*n));
        memcpy(n->tenant, tenant, sizeof(n->tenant));
        map_add(&v->notes, &n->by_tenant, hash_text(0, tenant));
    }
    n->at = l->seq;
    n->seq = seq;
    memcpy(n->hash, hash, AUDIT_HASH_LEN);
    return 1;
}

/* Checks a head that must be in this chain: the one that the top chain has noted, or the caller. */
static int check_note(struct verify *v, struct note *n, const struct audit_line *l)
{
    if (!n || n->seq != l->seq)
        return 0;
    n->found = true;
    if (memcmp(n->hash, l->hash, AUDIT_HASH_LEN) == 0)
        return 0;
    return n->at ? broken(v, l->seq, "record %" PRIu64 " is not the one that %" PRIu64 " has noted",
                          l->seq, n->at)
                 : broken(v, l->seq, "record %" PRIu64 " is not the one that was noted", l->seq);
}

/* ---- a whole line ---------------------------------------------------------------------------- */

static int check_line(struct verify *v, const char *line, size_t len)
{
    struct audit_line l;
    int r = 0;

    if (audit_line_read(line, len, &l) < 0)
        return broken(v, expected(v), "record %" PRIu64 " cannot be read", expected(v));
    if (v->first_seq == 0)
        r = check_first(v, &l);
    if (r == 0)
        r = check_chain(v, line, &l);
    if (r == 0 && v->file_begins && !l.signature)
        r = broken(v, l.seq, "file %u does not begin with a head", v->file);
    if (r == 0 && l.signature)
        r = check_head(v, line, &l);
    if (r == 0)
        r = check_note(v, &v->noted, &l);
    if (r == 0)
        r = check_note(v, v->note, &l);
    if (r == 0)
        r = take_note(v, line, &l);
    if (r < 0)
        return r;
    if (!l.signature) {
        v->records++;
        v->unsigned_records++;
        v->report->records += r == 0; /* a note is not about a sandbox */
    }
    v->file_begins = false;
    v->last_seq = l.seq;
    return 0;
}

/* ---- all of them ----------------------------------------------------------------------------- */

/* Checks the whole lines of the buffer, and moves the rest to its beginning. */
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

/* last: the file is the newest, so its last line may be unfinished, or cut by a crash. */
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
            r = broken(v, expected(v), "record %" PRIu64 " cannot be read", expected(v));
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

        /* The oldest file may have been removed meanwhile. */
        if (fd == -ENOENT && v->first_seq == 0)
            continue;
        if (fd < 0)
            return err_code(e, fd, "open file %u of the record", files[i]);
        v->file = files[i];
        r = check_file(v, fd, i + 1 == n, e);
    }
    return r;
}

static int parse_noted(struct verify *v, const char *head, struct sg_error *e)
{
    const char *hash;

    if (!parse_head(head, strlen(head), &v->noted.seq, &hash))
        return err_invalid(
            e, "'%.100s' is not a head: write SEQ:HASH, as 'sandglass audit verify' shows it",
            head);
    memcpy(v->noted.hash, hash, AUDIT_HASH_LEN);
    return 0;
}

static int check_noted_is_there(struct verify *v, struct sg_error *e)
{
    uint64_t first = v->report->first_seq;

    if (v->noted.seq == 0 || v->noted.found)
        return 0;
    if (v->noted.seq < first)
        return err_set(e, SG_ERR_NOT_FOUND, -ENOENT,
                       "head %" PRIu64 " is older than the oldest record kept, %" PRIu64,
                       v->noted.seq, first);
    v->tenant = "";
    return broken(v, v->report->last_seq + 1,
                  "the record ends with %" PRIu64 ", but %" PRIu64 " existed: the end was cut off",
                  v->report->last_seq, v->noted.seq);
}

/* Adds the result of one chain to the report. */
static void add_up(struct verify *v)
{
    struct audit_report *r = v->report;

    if (v->first_seq > 0 && (r->first_seq == 0 || v->first_seq < r->first_seq))
        r->first_seq = v->first_seq;
    if (v->last_seq > r->last_seq)
        r->last_seq = v->last_seq;
    r->unsigned_records += v->unsigned_records;
}

static int check_one(struct verify *v, int dirfd, const char *tenant, struct sg_error *e)
{
    AUTO(close_p) int dir = audit_tenant_open(dirfd, tenant);
    int r;

    v->tenant = tenant;
    v->note = tenant[0] ? note_of(v, tenant) : NULL;
    v->first_seq = v->last_seq = v->records = v->unsigned_records = 0;
    if (v->note)
        v->note->seen = true;
    if (dir < 0)
        return err_code(e, dir, "open the folder '%s' of the record", tenant);
    r = check_files(v, dir, e);
    add_up(v);
    if (r == 0 && v->note && !v->note->found && v->note->seq >= v->first_seq)
        r = broken(v, v->last_seq + 1,
                   "the record ends with %" PRIu64 ", but %" PRIu64 " existed: the end was cut off",
                   v->last_seq, v->note->seq);
    return r;
}

static int check_chains(struct verify *v, int dirfd, struct sg_error *e)
{
    AUTO(free_p) char(*tenants)[ID_LEN + 1] = NULL;
    size_t n = 0;
    int r = check_one(v, dirfd, "", e);

    if (r == 0)
        r = audit_tenants(dirfd, &tenants, &n, e);
    for (size_t i = 0; r == 0 && i < n; i++) {
        r = check_one(v, dirfd, tenants[i], e);
        v->report->chains++;
    }
    v->tenant = "";
    MAP_EACH(struct note, k, &v->notes, by_tenant)
        if (r == 0 && !k->seen)
            r = broken(v, k->at, "the record of tenant %s is missing", k->tenant);
    return r;
}

int audit_verify(int dirfd, const char *public_key, const char *head, struct audit_report *ret,
                 struct sg_error *e)
{
    struct verify v = {.report = ret, .tenant = ""};
    int r;

    *ret = (struct audit_report){0};
    r = head ? parse_noted(&v, head, e) : 0;
    if (r == 0)
        r = audit_checker_open(dirfd, public_key, &v.key, e);
    if (r == 0)
        r = check_chains(&v, dirfd, e);
    if (r == 0)
        r = check_noted_is_there(&v, e);
    audit_signer_free(v.key);
    MAP_EACH(struct note, n, &v.notes, by_tenant) {
        map_remove(&v.notes, &n->by_tenant);
        free(n);
    }
    if (r == -EBADMSG)
        err_set(e, SG_ERR_INVALID, r, "%s", ret->message);
    return r;
}
