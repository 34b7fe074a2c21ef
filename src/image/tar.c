#include "image/tar.h"

#include <string.h>

#include "image/path.h"
#include "image/pax.h"

#define BLOCK      512
#define HEADER_MAX (1u << 20) /* of an extended header */
#define SIZE_MAX_  (1ull << 60)

struct header {
    char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], sum[8], type, link[100];
    char magic[6], version[2], uname[32], gname[32], major[8], minor[8], prefix[155], pad[12];
};
_Static_assert(sizeof(struct header) == BLOCK, "as tar has it");

enum { LONG_NAME, LONG_LINK }; /* GNU's */

struct tar {
    struct input *in;
    const struct image_limits *limits;
    uint64_t left, padding; /* of the contents that have not been taken */
    struct pax pax, global;
    char *text;
    bool has_long[2], pending; /* pending: a header said something of the entry to come */
    char long_text[2][IMAGE_PATH_MAX + 1];
    char name[256 + 2], link[100 + 1];
};

struct tar *tar_new(struct input *in, const struct image_limits *limits)
{
    struct tar *t = xcalloc(1, sizeof(*t));

    t->in = in;
    t->limits = limits;
    t->text = xcalloc(1, HEADER_MAX + 1);
    return t;
}

void tar_free_p(struct tar **t)
{
    if (*t)
        free((*t)->text);
    free(*t);
    *t = NULL;
}

/* ---- fields ---------------------------------------------------------------------------------- */

/* Base 256, for what does not fit into digits: the first byte is 0x80, or 0xff below zero. */
static bool binary(const unsigned char *p, size_t len, int64_t *ret)
{
    uint64_t v = p[0] == 0xff ? UINT64_MAX : 0;

    if (p[0] != 0x80 && p[0] != 0xff)
        return false;
    for (size_t i = 1; i < len; i++) {
        if (len - i >= 8 && p[i] != (v & 0xff))
            return false; /* more than 56 bits */
        v = v << 8 | p[i];
    }
    *ret = (int64_t)v;
    return (*ret < 0) == (p[0] == 0xff);
}

/* A number: octal digits with spaces around them, or base 256. An empty field is 0. */
static bool number(const char *field, size_t len, int64_t *ret)
{
    uint64_t v = 0;
    size_t i = 0;

    if ((unsigned char)field[0] & 0x80)
        return binary((const unsigned char *)field, len, ret);
    while (i < len && field[i] == ' ')
        i++;
    for (; i < len && field[i] >= '0' && field[i] <= '7'; i++)
        v = v << 3 | (uint64_t)(field[i] - '0'); /* 12 digits at most */
    for (; i < len; i++)
        if (field[i] != ' ' && field[i] != '\0')
            return false;
    *ret = (int64_t)v;
    return true;
}

/* Some old programs added signed bytes. */
static bool sum_is_right(const struct header *h)
{
    const unsigned char *p = (const unsigned char *)h;
    int64_t stated, sum = 0, other = 0;

    for (size_t i = 0; i < BLOCK; i++) {
        bool own = i >= offsetof(struct header, sum) && i < offsetof(struct header, type);

        sum += own ? ' ' : p[i];
        other += own ? ' ' : (signed char)p[i];
    }
    return number(h->sum, sizeof(h->sum), &stated) && (stated == sum || stated == other);
}

static bool is_zero(const struct header *h)
{
    static const struct header zero;

    return memcmp(h, &zero, sizeof(zero)) == 0;
}

static int bad_field(const struct tar *t, const char *field, struct sg_error *e)
{
    return err_invalid(e, "the %s of '%s' in the layer is not a number that tar can have", field,
                       PATH_SHOW(t->name));
}

/* ---- headers about the entry to come --------------------------------------------------------- */

static int read_text(struct tar *t, uint64_t size, struct sg_error *e)
{
    if (size > HEADER_MAX)
        return err_set(e, SG_ERR_LIMIT, -EFBIG,
                       "an extended header of the layer has more than %u bytes", HEADER_MAX);
    int r = size > 0 ? input_read(t->in, t->text, size, e) : 1;
    if (r == 0)
        r = err_invalid(e, "the layer ends in the middle of a file or of a header");
    if (r < 0)
        return r;
    t->text[size] = '\0';
    return input_skip(t->in, -size % BLOCK, e);
}

static int take_long(struct tar *t, unsigned which, uint64_t size, struct sg_error *e)
{
    size_t len = strnlen(t->text, size);

    if (len > IMAGE_PATH_MAX)
        return err_invalid(e, "the name '%s' has more than %u bytes", PATH_SHOW(t->text),
                           IMAGE_PATH_MAX);
    memcpy(t->long_text[which], t->text, len + 1);
    t->has_long[which] = true;
    return 0;
}

/* 1: it was such a header. */
static int take_extended(struct tar *t, const struct header *h, uint64_t size, struct sg_error *e)
{
    if (h->type != 'x' && h->type != 'g' && h->type != 'L' && h->type != 'K')
        return 0;
    t->pending = h->type != 'g' || t->pending;
    int r = read_text(t, size, e);
    if (r == 0 && (h->type == 'L' || h->type == 'K'))
        r = take_long(t, h->type == 'L' ? LONG_NAME : LONG_LINK, size, e);
    else if (r == 0 && h->type == 'g')
        r = pax_read(&t->global, t->text, size, true, t->limits, e);
    else if (r == 0)
        r = pax_read(&t->pax, t->text, size, false, t->limits, e);
    if (r == 0 && h->type == 'g' && !t->pending)
        pax_begin(&t->pax, &t->global);
    return r < 0 ? r : 1;
}

/* ---- entries --------------------------------------------------------------------------------- */

static int kind_of(const struct tar *t, const struct header *h, enum tar_kind *ret,
                   struct sg_error *e)
{
    size_t len = strlen(t->name);

    switch (h->type) {
    case '\0':
    case '0':
    case '7':
        /* Before ustar, a slash at the end was all that a directory had. */
        *ret = h->type == '\0' && len > 0 && t->name[len - 1] == '/' ? TAR_DIR : TAR_FILE;
        return 0;
    case '1':
        *ret = TAR_HARDLINK;
        return 0;
    case '2':
        *ret = TAR_SYMLINK;
        return 0;
    case '3':
    case '4':
        *ret = TAR_DEVICE;
        return 0;
    case '5':
        *ret = TAR_DIR;
        return 0;
    case '6':
        *ret = TAR_FIFO;
        return 0;
    case 'S':
        return err_set(
            e, SG_ERR_UNSUPPORTED, -EOPNOTSUPP,
            "'%s' is a sparse file, which cannot be taken: pack the layer without --sparse",
            PATH_SHOW(t->name));
    default:
        return err_set(e, SG_ERR_UNSUPPORTED, -EOPNOTSUPP,
                       "'%s' is of a type that cannot be taken from a layer: byte %u of tar",
                       PATH_SHOW(t->name), (unsigned char)h->type);
    }
}

/* The names of the header alone. */
static void take_names(struct tar *t, const struct header *h)
{
    bool ustar = memcmp(h->magic, "ustar\0", 6) == 0 && h->prefix[0];

    snprintf(t->name, sizeof(t->name), "%.155s%s%.100s", ustar ? h->prefix : "", ustar ? "/" : "",
             h->name);
    snprintf(t->link, sizeof(t->link), "%.100s", h->link);
}

static uint32_t owner(bool stated, uint64_t pax, int64_t field)
{
    uint64_t id = stated ? pax : (uint64_t)field; /* below zero is above all */

    return id > IMAGE_ID_MAX ? IMAGE_ID_MAX : (uint32_t)id;
}

static int take_fields(struct tar *t, const struct header *h, int64_t size, struct tar_entry *ret,
                       struct sg_error *e)
{
    const struct pax *p = &t->pax;
    int64_t mode, uid, gid, mtime;

    if (!number(h->mode, sizeof(h->mode), &mode))
        return bad_field(t, "mode", e);
    if (!number(h->uid, sizeof(h->uid), &uid) || !number(h->gid, sizeof(h->gid), &gid))
        return bad_field(t, "owner", e);
    if (!number(h->mtime, sizeof(h->mtime), &mtime))
        return bad_field(t, "time", e);
    ret->mode = (uint16_t)(mode & 07777);
    ret->uid = owner(p->has & PAX_UID, p->uid, uid);
    ret->gid = owner(p->has & PAX_GID, p->gid, gid);
    ret->mtime = p->has & PAX_MTIME ? p->mtime : mtime;
    ret->mtime_ns = p->has & PAX_MTIME ? p->mtime_ns : 0;
    ret->size = p->has & PAX_SIZE ? p->size : (uint64_t)size;
    ret->name = p->has & PAX_PATH        ? p->path
                : t->has_long[LONG_NAME] ? t->long_text[LONG_NAME]
                                         : t->name;
    ret->link = p->has & PAX_LINK        ? p->link
                : t->has_long[LONG_LINK] ? t->long_text[LONG_LINK]
                                         : t->link;
    ret->attrs = &p->attrs;
    if (ret->size > SIZE_MAX_)
        return bad_field(t, "size", e);
    return 0;
}

static int take_entry(struct tar *t, const struct header *h, int64_t size, struct tar_entry *ret,
                      struct sg_error *e)
{
    *ret = (struct tar_entry){0};
    int r = kind_of(t, h, &ret->kind, e);
    if (r == 0)
        r = take_fields(t, h, size, ret, e);
    if (r < 0)
        return r;
    if (ret->kind != TAR_FILE)
        ret->size = 0;
    t->left = ret->size;
    t->padding = -ret->size % BLOCK;
    return 1;
}

/* The next header. 1; 0: the layer's end. */
static int read_header(struct tar *t, struct header *h, struct sg_error *e)
{
    int r = input_read(t->in, h, sizeof(*h), e);

    if (r > 0 && is_zero(h))
        r = input_skip(t->in, UINT64_MAX, e);
    else if (r > 0 && !sum_is_right(h))
        return err_invalid(e,
                           "the layer is no tar archive, or is broken: a header's checksum is "
                           "wrong after %llu bytes",
                           (unsigned long long)input_taken(t->in));
    else if (r > 0)
        return 1;
    if (r == 0 && t->pending)
        return err_invalid(e, "the layer ends after an extended header, before its entry");
    return r;
}

int tar_next(struct tar *t, struct tar_entry *ret, struct sg_error *e)
{
    struct header h;
    int64_t size;
    int r = input_skip(t->in, t->left + t->padding, e);

    if (r < 0)
        return r;
    t->left = t->padding = 0;
    t->pending = t->has_long[LONG_NAME] = t->has_long[LONG_LINK] = false;
    pax_begin(&t->pax, &t->global);
    do {
        r = read_header(t, &h, e);
        if (r <= 0)
            return r;
        take_names(t, &h);
        if (!number(h.size, sizeof(h.size), &size) || size < 0)
            return bad_field(t, "size", e);
        r = take_extended(t, &h, (uint64_t)size, e);
    } while (r > 0);
    return r < 0 ? r : take_entry(t, &h, size, ret, e);
}

int tar_content(struct tar *t, const uint8_t **ret, size_t *ret_len, struct sg_error *e)
{
    *ret_len = 0;
    if (t->left == 0)
        return 0;
    int r = input_next(t->in, t->left, ret, ret_len, e);
    if (r == 0 && *ret_len == 0)
        return err_invalid(e, "the layer ends in the middle of a file or of a header");
    if (r == 0)
        t->left -= *ret_len;
    return r;
}
