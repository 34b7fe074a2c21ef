#include "image/records.h"

#include <string.h>
#include <sys/stat.h>

#include "image/path.h"

#define UNIT   8
#define BUFFER (64u * 1024)
#define NS_MAX 999999999u
/* The longest record. */
#define LONGEST (sizeof(struct record) + 2 * IMAGE_PATH_MAX + IMAGE_XATTRS_MAX + UNIT)
_Static_assert(LONGEST < BUFFER, "a record fits into the buffer");

static size_t length(const struct record *r)
{
    size_t len = sizeof(*r) + r->path_len + r->target_len + r->attrs_len;

    return (len + UNIT - 1) / UNIT * UNIT;
}

/* ---- writing --------------------------------------------------------------------------------- */

void records_begin(struct sink *s)
{
    sink_add(s, RECORDS_MAGIC, strlen(RECORDS_MAGIC));
}

void records_add(struct sink *s, const struct record_entry *entry)
{
    const struct record *r = &entry->r;

    sink_add(s, r, sizeof(*r));
    sink_add(s, entry->path, r->path_len);
    sink_add(s, entry->target, r->target_len);
    sink_add(s, entry->attrs, r->attrs_len);
    sink_align(s, UNIT);
}

void records_finish(struct sink *s, uint64_t n, uint32_t blocks, const uint8_t blob[IMAGE_DIGEST])
{
    struct record_entry end = {
        .r = {.kind = RECORD_END, .size = n, .block = blocks, .target_len = IMAGE_DIGEST},
        .target = (const char *)blob};

    records_add(s, &end);
}

/* ---- reading --------------------------------------------------------------------------------- */

struct records {
    int fd;
    uint64_t blocks, n;
    off_t at; /* of the buffer's end in the file */
    size_t start, len;
    bool hashed, ended;
    struct digest *digest;
    uint8_t blob[IMAGE_DIGEST];
    char path[IMAGE_PATH_MAX + 1], target[IMAGE_PATH_MAX + 1];
    uint8_t buf[BUFFER];
};

static int bad(const char *why, struct sg_error *e)
{
    return err_invalid(e, "this is no list of a layer, or it is broken: %s", why);
}

int records_open(int fd, uint64_t blocks, struct records **ret, struct sg_error *e)
{
    AUTO(records_close_p) struct records *l = xcalloc(1, sizeof(*l));
    struct stat st;

    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return bad("it is no regular file", e);
    if (blocks > UINT32_MAX)
        return err_invalid(e, "a blob of %llu blocks is too large", (unsigned long long)blocks);
    l->fd = fd;
    l->blocks = blocks;
    l->digest = digest_new();
    *ret = steal_ptr(&l);
    return 0;
}

void records_close_p(struct records **l)
{
    if (*l)
        digest_free_p(&(*l)->digest);
    free(*l);
    *l = NULL;
}

void records_rewind(struct records *l)
{
    l->at = 0;
    l->n = 0;
    l->start = l->len = 0;
    l->ended = false;
    l->hashed = true; /* it was read to its end before */
}

/* Gets `need` bytes into the buffer. */
static int want(struct records *l, size_t need, struct sg_error *e)
{
    while (l->len < need) {
        if (l->start > 0)
            memmove(l->buf, l->buf + l->start, l->len);
        l->start = 0;
        ssize_t n = pread(l->fd, l->buf + l->len, BUFFER - l->len, l->at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_errno(e, "read the list of a layer");
        if (n == 0)
            return bad("it ends too early", e);
        if (!l->hashed)
            digest_add(l->digest, l->buf + l->len, (size_t)n);
        l->at += n;
        l->len += (size_t)n;
    }
    return 0;
}

static const uint8_t *use(struct records *l, size_t len)
{
    const uint8_t *p = l->buf + l->start;

    l->start += len;
    l->len -= len;
    return p;
}

static bool has_contents(const struct record *r)
{
    return r->kind == RECORD_FILE && r->size > 0;
}

/* Fields that a kind does not use are 0. */
static bool fields_are_right(const struct record *r, uint64_t blocks)
{
    bool owned = r->kind >= RECORD_FILE && r->kind <= RECORD_FIFO && r->kind != RECORD_HARDLINK;
    bool target = r->kind == RECORD_SYMLINK || r->kind == RECORD_HARDLINK;

    if (r->kind == 0 || r->kind >= RECORD_END || r->zero || r->zero2 || r->zero3)
        return false;
    if (r->mode > 07777 || r->uid > IMAGE_ID_MAX || r->gid > IMAGE_ID_MAX || r->mtime_ns > NS_MAX)
        return false;
    if (!owned && (r->mode || r->uid || r->gid || r->mtime || r->mtime_ns || r->attrs_len))
        return false;
    if (r->size > (uint64_t)UINT32_MAX * IMAGE_BLOCK || (r->kind != RECORD_FILE && r->size))
        return false;
    if (has_contents(r) ? r->block + image_blocks(r->size) > blocks : r->block != 0)
        return false;
    return (r->target_len > 0) == target;
}

/* Whether the texts are what the record says. */
static bool texts_are_right(const struct record_entry *entry)
{
    const struct record *r = &entry->r;

    if (!path_is_clean(entry->path, r->path_len) || !attrs_are_valid(entry->attrs, r->attrs_len))
        return false;
    if (r->path_len == 0 && r->kind != RECORD_DIR && r->kind != RECORD_OPAQUE)
        return false;
    if (r->kind == RECORD_HARDLINK && !path_is_clean(entry->target, r->target_len))
        return false;
    return !memchr(entry->target, '\0', r->target_len);
}

/* Takes the end record, after which nothing comes. */
static int take_end(struct records *l, const struct record *r, struct sg_error *e)
{
    const struct record known = {
        .kind = RECORD_END, .size = r->size, .block = r->block, .target_len = IMAGE_DIGEST};
    uint8_t more;
    int code = want(l, length(&known), e);

    if (code < 0)
        return code;
    if (memcmp(r, &known, sizeof(known)) != 0 || r->size != l->n)
        return bad("its last record does not fit the others", e);
    if (r->block != l->blocks)
        return err_invalid(e, "the list belongs to a blob of %u blocks, not of %llu", r->block,
                           (unsigned long long)l->blocks);
    memcpy(l->blob, use(l, length(&known)) + sizeof(known), IMAGE_DIGEST);
    if (l->len > 0 || pread(l->fd, &more, 1, l->at) != 0)
        return bad("something comes after its end", e);
    l->ended = true;
    return 0;
}

static int take_record(struct records *l, const struct record *r, struct record_entry *ret,
                       struct sg_error *e)
{
    if (!fields_are_right(r, l->blocks) || r->path_len > IMAGE_PATH_MAX ||
        r->target_len > IMAGE_PATH_MAX || r->attrs_len > IMAGE_XATTRS_MAX)
        return bad("a record has a field that cannot be", e);
    int code = want(l, length(r), e);
    if (code < 0)
        return code;
    const uint8_t *p = use(l, length(r)) + sizeof(*r);
    memcpy(l->path, p, r->path_len);
    memcpy(l->target, p + r->path_len, r->target_len);
    l->path[r->path_len] = l->target[r->target_len] = '\0';
    *ret = (struct record_entry){
        .r = *r, .path = l->path, .target = l->target, .attrs = p + r->path_len + r->target_len};
    if (!texts_are_right(ret))
        return bad("a record has a name or an attribute that cannot be", e);
    l->n++;
    return 1;
}

int records_next(struct records *l, struct record_entry *ret, struct sg_error *e)
{
    struct record r;
    int code = 0;

    if (l->ended)
        return 0;
    if (l->at == 0) {
        code = want(l, strlen(RECORDS_MAGIC), e);
        if (code == 0 &&
            memcmp(use(l, strlen(RECORDS_MAGIC)), RECORDS_MAGIC, strlen(RECORDS_MAGIC)) != 0)
            code = bad("it begins differently", e);
    }
    if (code == 0)
        code = want(l, sizeof(r), e);
    if (code < 0)
        return code;
    memcpy(&r, l->buf + l->start, sizeof(r));
    return r.kind == RECORD_END ? take_end(l, &r, e) : take_record(l, &r, ret, e);
}

void records_digests(struct records *l, uint8_t blob[IMAGE_DIGEST], uint8_t list[IMAGE_DIGEST])
{
    memcpy(blob, l->blob, IMAGE_DIGEST);
    digest_end(l->digest, list);
}
