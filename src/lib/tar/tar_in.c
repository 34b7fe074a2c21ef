#include "lib/tar/tar_in.h"

#include <stdio.h>
#include <string.h>

#define MORE_MAX (64u * 1024) /* of a pax header, or a long name */
#define SIZE_TOP (UINT64_C(1) << 53)

/* Where the fields of a header are. */
enum {
    NAME = 0,
    MODE = 100,
    OWNER = 108,
    GROUP = 116,
    SIZE = 124,
    MTIME = 136,
    CHECKSUM = 148,
    TYPE = 156,
    LINK = 157,
    MAGIC = 257,
    PREFIX = 345,
};
#define NAME_LEN     100
#define MODE_LEN     8
#define OWNER_LEN    8
#define SIZE_LEN     12
#define MTIME_LEN    12
#define CHECKSUM_LEN 8
#define PREFIX_LEN   155

void tar_init(struct tar_reader *t, const struct tar_handlers *handlers, void *arg)
{
    *t = (struct tar_reader){.handlers = handlers, .arg = arg};
    strbuf_init(&t->more, MORE_MAX);
}

void tar_done(struct tar_reader *t)
{
    strbuf_done(&t->more);
}

static int malformed(struct sg_error *e, const char *what)
{
    return err_invalid(e, "the archive is malformed: %s", what);
}

/* A number: octal digits, with spaces or zeros around; or binary, if the first bit is set. */
static int read_number(const unsigned char *p, size_t len, uint64_t *ret)
{
    uint64_t v = 0;

    if (p[0] & 0x80) {
        if (p[0] != 0x80)
            return -EINVAL; /* negative, or beyond any file */
        for (size_t i = 1; i < len; i++) {
            if (v >> 56)
                return -EINVAL;
            v = v << 8 | p[i];
        }
        *ret = v;
        return 0;
    }
    size_t i = 0;
    while (i < len && p[i] == ' ')
        i++;
    for (; i < len && p[i] >= '0' && p[i] <= '7'; i++) {
        if (v >> 61)
            return -EINVAL;
        v = v << 3 | (uint64_t)(p[i] - '0');
    }
    if (i < len && p[i] != '\0' && p[i] != ' ')
        return -EINVAL;
    *ret = v;
    return 0;
}

static bool checksum_is_right(const unsigned char block[TAR_BLOCK])
{
    uint64_t sum = 0, told;

    for (size_t i = 0; i < TAR_BLOCK; i++)
        sum += i >= CHECKSUM && i < CHECKSUM + CHECKSUM_LEN ? ' ' : block[i];
    return read_number(block + CHECKSUM, CHECKSUM_LEN, &told) == 0 && told == sum;
}

/* ---- headers about the next entry ------------------------------------------------------------ */

static int take_text(const char *p, size_t len, char ret[TAR_PATH_MAX], struct sg_error *e)
{
    if (len >= TAR_PATH_MAX || len == 0 || memchr(p, '\0', len))
        return malformed(e, "a name is empty, longer than 4095 bytes, or has a zero byte in it");
    memcpy(ret, p, len);
    ret[len] = '\0';
    return 0;
}

/* Digits, of which a fraction is left out. Anything else: not said. */
static bool take_number(const char *value, size_t len, uint64_t *ret)
{
    uint64_t v = 0;
    size_t i = 0;

    for (; i < len && value[i] >= '0' && value[i] <= '9' && v < SIZE_TOP; i++)
        v = v * 10 + (uint64_t)(value[i] - '0');
    if (i == 0 || (i < len && value[i] != '.'))
        return false;
    *ret = v;
    return true;
}

static bool is_key(const char *key, size_t len, const char *name)
{
    return strlen(name) == len && memcmp(key, name, len) == 0;
}

static int take_record(struct tar_reader *t, const char *key, size_t key_len, const char *value,
                       size_t len, struct sg_error *e)
{
    int r = 0;

    if (key_len == 4 && memcmp(key, "path", 4) == 0) {
        r = take_text(value, len, t->path, e);
        t->has_path = true;
    } else if (key_len == 8 && memcmp(key, "linkpath", 8) == 0) {
        r = take_text(value, len, t->link, e);
        t->has_link = true;
    } else if (key_len == 4 && memcmp(key, "size", 4) == 0) {
        t->size = 0;
        for (size_t i = 0; i < len; i++) {
            if (value[i] < '0' || value[i] > '9' || t->size >= SIZE_TOP)
                return malformed(e, "a size is no number");
            t->size = t->size * 10 + (uint64_t)(value[i] - '0');
        }
        t->has_size = true;
    } else if (is_key(key, key_len, "uid")) {
        t->has_uid = take_number(value, len, &t->uid);
    } else if (is_key(key, key_len, "gid")) {
        t->has_gid = take_number(value, len, &t->gid);
    } else if (is_key(key, key_len, "mtime")) {
        uint64_t mtime = 0;

        t->has_mtime = take_number(value, len, &mtime);
        t->mtime = (int64_t)mtime;
    } else if (key_len > 11 && memcmp(key, "GNU.sparse.", 11) == 0) {
        r = err_invalid(e, "the archive has a sparse file: make it without --sparse");
    }
    return r;
}

/* Records of a pax header: "LENGTH KEY=VALUE\n", where LENGTH counts all of the record. */
static int take_pax(struct tar_reader *t, struct sg_error *e)
{
    const char *p = t->more.buf, *end = p + t->more.len;

    while (p < end) {
        size_t len = 0;
        const char *q = p;

        while (q < end && *q >= '0' && *q <= '9' && len <= MORE_MAX)
            len = len * 10 + (size_t)(*q++ - '0');
        if (q == p || q == end || *q != ' ' || len > (size_t)(end - p) ||
            len < (size_t)(q - p) + 3 || p[len - 1] != '\n')
            return malformed(e, "a pax record has a wrong length");
        q++;
        const char *stop = p + len - 1, *equals = memchr(q, '=', (size_t)(stop - q));
        if (!equals)
            return malformed(e, "a pax record has no '='");
        int r = take_record(t, q, (size_t)(equals - q), equals + 1, (size_t)(stop - equals - 1), e);
        if (r < 0)
            return r;
        p += len;
    }
    return 0;
}

static int take_more(struct tar_reader *t, struct sg_error *e)
{
    bool is_link = t->more_type == 'K';
    int r;

    if (t->more_type == 'x')
        return take_pax(t, e);
    r = take_text(t->more.buf, strnlen(t->more.buf, t->more.len), is_link ? t->link : t->path, e);
    t->has_link |= is_link;
    t->has_path |= !is_link;
    return r;
}

/* ---- entries --------------------------------------------------------------------------------- */

static void forget_more(struct tar_reader *t)
{
    t->has_path = t->has_link = t->has_size = false;
    t->has_uid = t->has_gid = t->has_mtime = false;
}

static void read_name(const unsigned char *b, char ret[TAR_PATH_MAX])
{
    size_t prefix = 0;

    /* GNU's own form has other things at the place of the prefix. */
    if (memcmp(b + MAGIC, "ustar\0", 6) == 0)
        prefix = strnlen((const char *)b + PREFIX, PREFIX_LEN);
    snprintf(ret, TAR_PATH_MAX, "%.*s%s%.*s", (int)prefix, (const char *)b + PREFIX,
             prefix > 0 ? "/" : "", (int)strnlen((const char *)b + NAME, NAME_LEN),
             (const char *)b + NAME);
}

static int type_of(char type, const char *path, enum tar_type *ret, struct sg_error *e)
{
    size_t len = strlen(path);

    switch (type) {
    case '0':
    case '\0':
    case '7':
        *ret = len > 0 && path[len - 1] == '/' ? TAR_DIR : TAR_FILE;
        return 0;
    case '1':
        *ret = TAR_HARDLINK;
        return 0;
    case '2':
        *ret = TAR_SYMLINK;
        return 0;
    case '5':
        *ret = TAR_DIR;
        return 0;
    default:
        return err_invalid(e, "'%.200s' in the archive is no file, directory or link", path);
    }
}

static uint64_t number_or_0(const unsigned char *p, size_t len)
{
    uint64_t v = 0;

    return read_number(p, len, &v) == 0 ? v : 0;
}

static void take_owner(const struct tar_reader *t, struct tar_entry *ret)
{
    const unsigned char *b = t->block;

    ret->uid = t->has_uid ? t->uid : number_or_0(b + OWNER, OWNER_LEN);
    ret->gid = t->has_gid ? t->gid : number_or_0(b + GROUP, OWNER_LEN);
    ret->mtime = t->has_mtime ? t->mtime : (int64_t)number_or_0(b + MTIME, MTIME_LEN);
}

static int begin_entry(struct tar_reader *t, uint64_t size, struct sg_error *e)
{
    const unsigned char *b = t->block;
    struct tar_entry entry = {.path = t->path, .link = t->link};
    uint64_t mode;
    int r;

    if (!t->has_path)
        read_name(b, t->path);
    if (!t->has_link)
        snprintf(t->link, sizeof(t->link), "%.*s", (int)strnlen((const char *)b + LINK, NAME_LEN),
                 (const char *)b + LINK);
    if (t->path[0] == '\0' || read_number(b + MODE, MODE_LEN, &mode) < 0)
        return malformed(e, "an entry has no name, or no mode");
    r = type_of((char)b[TYPE], t->path, &entry.type, e);
    if (r < 0)
        return r;
    entry.mode = (uint32_t)mode & 07777;
    entry.size = entry.type == TAR_FILE ? size : 0;
    if (entry.type != TAR_FILE && size > 0)
        return malformed(e, "a directory or a link has a content");
    take_owner(t, &entry);
    forget_more(t);
    return t->handlers->on_entry(t->arg, &entry, e);
}

static int begin_body(struct tar_reader *t, struct sg_error *e)
{
    char type = (char)t->block[TYPE];
    uint64_t size;
    int r = 0;

    if (!checksum_is_right(t->block))
        return malformed(e, "the checksum of a header is wrong");
    if (read_number(t->block + SIZE, SIZE_LEN, &size) < 0)
        return malformed(e, "a size is no number");
    bool about_next = type == 'x' || type == 'g' || type == 'L' || type == 'K';
    if (!about_next && t->has_size)
        size = t->size;
    if (size > SIZE_TOP || (about_next && size >= MORE_MAX))
        return malformed(e, "a header is too long");
    t->left = size;
    t->padding = (unsigned)((TAR_BLOCK - size % TAR_BLOCK) % TAR_BLOCK);
    t->more_type = type;
    strbuf_reset(&t->more);
    if (!about_next)
        r = begin_entry(t, size, e);
    t->at = about_next ? TAR_AT_MORE : TAR_AT_BODY;
    return r;
}

/* A block of zeros ends the archive: what follows is padding. */
static int take_header(struct tar_reader *t, struct sg_error *e)
{
    static const unsigned char zeros[TAR_BLOCK];

    t->have = 0;
    if (memcmp(t->block, zeros, TAR_BLOCK) == 0) {
        t->at = TAR_AT_END;
        return 0;
    }
    return begin_body(t, e);
}

static int end_body(struct tar_reader *t, struct sg_error *e)
{
    bool more = t->at == TAR_AT_MORE;

    t->at = TAR_AT_HEADER;
    if (!more)
        return t->handlers->on_entry_end(t->arg, e);
    return t->more_type == 'g' ? 0 : take_more(t, e);
}

static int take_body(struct tar_reader *t, const char *p, size_t n, struct sg_error *e)
{
    t->left -= n;
    if (t->at == TAR_AT_BODY)
        return t->handlers->on_data(t->arg, p, n, e);
    strbuf_add(&t->more, p, n);
    return 0;
}

static size_t at_most(uint64_t n, size_t len)
{
    return n < len ? (size_t)n : len;
}

int tar_feed(struct tar_reader *t, const void *data, size_t len, struct sg_error *e)
{
    const char *p = data;
    int r = 0;

    while (r == 0 && t->at != TAR_AT_END) {
        bool in_body = t->at != TAR_AT_HEADER;
        size_t n;

        if (in_body && t->left == 0 && t->padding == 0) { /* takes no bytes */
            r = end_body(t, e);
            continue;
        }
        if (len == 0)
            break;
        if (in_body && t->left == 0) {
            n = at_most(t->padding, len);
            t->padding -= (unsigned)n;
        } else if (in_body) {
            n = at_most(t->left, len);
            r = take_body(t, p, n, e);
        } else {
            n = at_most(TAR_BLOCK - t->have, len);
            memcpy(t->block + t->have, p, n);
            t->have += n;
            if (t->have == TAR_BLOCK)
                r = take_header(t, e);
        }
        p += n;
        len -= n;
    }
    return r;
}

int tar_end(const struct tar_reader *t, struct sg_error *e)
{
    if (t->at == TAR_AT_END || (t->at == TAR_AT_HEADER && t->have == 0))
        return 0;
    return malformed(e, "it ends in the middle of an entry");
}
