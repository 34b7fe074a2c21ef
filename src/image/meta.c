#include "image/meta.h"

#include <assert.h>
#include <string.h>
#include <sys/stat.h>

#include "image/layout.h"

/* An entry of a directory, with "." and "..". */
struct name {
    const char *text;
    size_t len;
    struct inode *inode;
};

struct names {
    struct name *v;
    size_t n;
};

struct meta {
    struct inode **v; /* all, in their order */
    size_t n, room;
    uint64_t inodes_at;
    uint32_t data, blocks; /* first block of data; all blocks */
    struct sink *out;
};

static void meta_done(struct meta *m)
{
    free(m->v);
}

static void names_done(struct names *names)
{
    free(names->v);
}

/* ---- directories ----------------------------------------------------------------------------- */

static int by_bytes(const void *a, const void *b)
{
    const struct name *x = a, *y = b;

    return strcmp(x->text, y->text);
}

static struct names sorted_names(struct inode *dir)
{
    struct names names = {.v = xcalloc(dir->entries.n + 2, sizeof(*names.v))};

    names.v[names.n++] = (struct name){".", 1, dir};
    names.v[names.n++] = (struct name){"..", 2, dir->parent};
    MAP_EACH(struct entry, entry, &dir->entries, by_name)
        names.v[names.n++] = (struct name){entry->name, entry->len, entry->inode};
    qsort(names.v, names.n, sizeof(*names.v), by_bytes);
    return names;
}

/* How many entries from `first` on go into one block, and their bytes. */
static size_t fill_block(const struct names *names, size_t first, size_t *ret_bytes)
{
    size_t bytes = 0, i = first;

    for (; i < names->n; i++) {
        size_t more = layout_dirent_size(names->v[i].len);

        if (bytes + more > IMAGE_BLOCK)
            break;
        bytes += more;
    }
    *ret_bytes = bytes;
    return i - first;
}

static uint64_t dir_size(const struct names *names)
{
    uint64_t total = 0;
    size_t bytes;

    for (size_t at = 0, n; at < names->n; at += n) {
        n = fill_block(names, at, &bytes);
        total += at + n < names->n ? IMAGE_BLOCK : bytes;
    }
    return total;
}

static void put_block(struct meta *m, const struct name *v, size_t n)
{
    size_t at = n * sizeof(struct erofs_dirent);

    for (size_t i = 0; i < n; i++) {
        struct erofs_dirent d = {.slot = v[i].inode->slot,
                                 .name_at = (uint16_t)at,
                                 .type = layout_type(v[i].inode->mode)};

        sink_add(m->out, &d, sizeof(d));
        at += v[i].len;
    }
    for (size_t i = 0; i < n; i++)
        sink_add(m->out, v[i].text, v[i].len);
}

/* Puts a directory's whole blocks, or what is behind its inode. */
static void put_names(struct meta *m, struct inode *dir, const struct shape *s, bool tail)
{
    AUTO(names_done) struct names names = sorted_names(dir);
    size_t bytes;
    uint32_t block = 0;

    for (size_t at = 0, n; at < names.n; at += n, block++) {
        n = fill_block(&names, at, &bytes);
        if (tail != (block == s->blocks))
            continue;
        put_block(m, names.v + at, n);
        if (!tail)
            sink_align(m->out, IMAGE_BLOCK);
    }
}

/* ---- places ---------------------------------------------------------------------------------- */

static struct shape shape_of(const struct inode *i)
{
    return layout_shape(i->mode, i->size, i->attrs_len);
}

static void append(struct meta *m, struct inode *i)
{
    m->v = xgrow(m->v, m->n, &m->room, sizeof(*m->v));
    m->v[m->n++] = i;
    i->number = (uint32_t)m->n;
}

/* A directory's size, its directories, and those of its inodes that are not in the order yet. */
static void open_dir(struct meta *m, struct inode *dir)
{
    AUTO(names_done) struct names names = sorted_names(dir);

    dir->size = dir_size(&names);
    for (size_t k = 0; k < names.n; k++) {
        struct inode *i = names.v[k].inode;

        if (i->number > 0) /* by an earlier name, or of "." or ".." */
            continue;
        append(m, i);
        dir->subdirs += S_ISDIR(i->mode);
    }
}

static int place_all(struct meta *m, struct inode *root, struct sg_error *e)
{
    uint64_t end = m->inodes_at;

    append(m, root);
    for (size_t k = 0; k < m->n; k++) {
        struct inode *i = m->v[k];

        if (S_ISDIR(i->mode))
            open_dir(m, i);
        struct shape s = shape_of(i);
        i->slot = (uint32_t)((layout_place(&end, &s) - m->inodes_at) / EROFS_SLOT);
        if (end > META_MAX)
            return err_set(e, SG_ERR_LIMIT, -EFBIG,
                           "the image's files have too many names and attributes");
    }
    m->data = (uint32_t)image_blocks(end);
    uint64_t block = m->data;
    for (size_t k = 0; k < m->n; k++) {
        struct shape s = shape_of(m->v[k]);

        m->v[k]->data = s.blocks > 0 ? (uint32_t)block : 0;
        block += s.blocks;
    }
    if (block * IMAGE_BLOCK > META_MAX)
        return err_set(e, SG_ERR_LIMIT, -EFBIG, "the image's directories have too many names");
    m->blocks = (uint32_t)block;
    return 0;
}

/* ---- writing --------------------------------------------------------------------------------- */

static void put_super(struct meta *m, const struct meta_blob *blobs, size_t n,
                      const uint8_t id[IMAGE_DIGEST])
{
    struct erofs_super s = {.magic = EROFS_MAGIC,
                            .block_bits = EROFS_BLOCK_BITS,
                            .inodes = m->n,
                            .blocks = m->blocks,
                            .inodes_at = (uint32_t)(m->inodes_at / IMAGE_BLOCK),
                            .feature_incompat = EROFS_INCOMPAT,
                            .devices = (uint16_t)n,
                            .devices_at = EROFS_DEVICES_AT / sizeof(struct erofs_device)};

    memcpy(s.uuid, id, sizeof(s.uuid));
    s.uuid[6] = (s.uuid[6] & 0x0f) | 0x80; /* version 8, of one's own making, in RFC 9562 */
    s.uuid[8] = (s.uuid[8] & 0x3f) | 0x80;
    sink_zero(m->out, EROFS_SUPER_AT);
    sink_add(m->out, &s, sizeof(s));
    sink_align(m->out, IMAGE_BLOCK);
    for (size_t i = 0; i < n; i++) {
        struct erofs_device d = {.blocks = blobs[i].blocks};

        for (size_t k = 0; k < sizeof(d.tag); k++)
            d.tag[k] = "0123456789abcdef"[blobs[i].digest[k / 2] >> (k % 2 ? 0 : 4) & 15];
        sink_add(m->out, &d, sizeof(d));
    }
    sink_align(m->out, IMAGE_BLOCK);
}

static void put_inode(struct meta *m, struct inode *i)
{
    struct shape s = shape_of(i);
    struct erofs_inode disk = {.format = (uint16_t)(s.layout << 1 | 1),
                               .attrs = i->attrs_len ? (uint16_t)(1 + i->attrs_len / 4) : 0,
                               .mode = i->mode,
                               .size = i->size,
                               .data = i->data,
                               .number = i->number,
                               .uid = i->uid,
                               .gid = i->gid,
                               .mtime = i->mtime,
                               .mtime_ns = i->mtime_ns,
                               .links = S_ISDIR(i->mode) ? 2 + i->subdirs : i->links};
    uint64_t at = m->inodes_at + (uint64_t)i->slot * EROFS_SLOT;

    if (s.chunk > 0)
        disk.data = layout_chunk_form(image_blocks(i->size));
    sink_zero(m->out, at);
    sink_add(m->out, &disk, sizeof(disk));
    if (i->attrs_len > 0) {
        sink_add(m->out, &(struct erofs_attrs_head){0}, sizeof(struct erofs_attrs_head));
        sink_add(m->out, i->attrs, i->attrs_len);
    }
    if (s.chunk > 0) {
        sink_zero(m->out, at + s.chunk);
        sink_add(m->out, &(struct erofs_chunk){.device = i->layer, .block = i->block},
                 sizeof(struct erofs_chunk));
    }
    if (s.tail > 0 && S_ISDIR(i->mode))
        put_names(m, i, &s, true);
    else if (s.tail > 0)
        sink_add(m->out, i->target, i->size);
}

static void put_data(struct meta *m, struct inode *i)
{
    struct shape s = shape_of(i);

    if (s.blocks == 0)
        return;
    assert(m->out->total == (uint64_t)i->data * IMAGE_BLOCK);
    if (S_ISDIR(i->mode)) {
        put_names(m, i, &s, false);
    } else {
        sink_add(m->out, i->target, i->size);
        sink_align(m->out, IMAGE_BLOCK);
    }
}

int meta_write(struct tree *t, const struct meta_blob *blobs, size_t n,
               const uint8_t id[IMAGE_DIGEST], struct sink *out, uint64_t *ret_inodes,
               struct sg_error *e)
{
    AUTO(meta_done) struct meta m = {.inodes_at = layout_inodes_at(n), .out = out};
    int r = place_all(&m, t->root, e);

    if (r < 0)
        return r;
    put_super(&m, blobs, n, id);
    for (size_t k = 0; k < m.n; k++)
        put_inode(&m, m.v[k]);
    sink_align(out, IMAGE_BLOCK);
    for (size_t k = 0; k < m.n; k++)
        put_data(&m, m.v[k]);
    assert(out->total == (uint64_t)m.blocks * IMAGE_BLOCK);
    *ret_inodes = m.n;
    return 0;
}
