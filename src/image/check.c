/* The role `check`: walks META once and refuses whatever the writer would not have made.
 *
 * layout.h leaves no freedom: when the entries so far are known, the place of the next new inode is known, and so is the
 * next block of data. So the walk goes in the writer's order and compares, and cycles, overlaps, inodes that
 * nobody names, directories with two parents and hidden bytes cannot be: none of them is in its place. */
#include <string.h>
#include <sys/stat.h>

#include "image/attrs.h"
#include "image/layout.h"

struct node {
    uint32_t slot, links, parent; /* parent: its number */
    uint16_t depth;
};

struct check {
    const uint8_t *m;
    size_t len;
    const uint64_t *blobs;
    size_t n_blobs;
    struct node *v;
    size_t n, room;
    uint64_t inodes_at, end, used; /* end: of what is placed; used: of the last inode's bytes */
    uint64_t data_first, data;     /* blocks; 0: none so far */
    uint64_t now;                  /* number of the inode at hand, for messages */
    struct sg_error *e;
};

static int bad(const struct check *c, const char *why)
{
    return err_invalid(c->e, "this is no image of a world: %s (inode %llu)", why,
                       (unsigned long long)c->now);
}

static bool zeros(const void *data, size_t len)
{
    const uint8_t *p = data;

    return len == 0 || (p[0] == 0 && memcmp(p, p + 1, len - 1) == 0);
}

/* ---- super block ----------------------------------------------------------------------------- */

static int check_devices(const struct check *c)
{
    size_t end = EROFS_DEVICES_AT + c->n_blobs * sizeof(struct erofs_device);

    for (size_t i = 0; i < c->n_blobs; i++) {
        struct erofs_device d;

        memcpy(&d, c->m + EROFS_DEVICES_AT + i * sizeof(d), sizeof(d));
        for (size_t k = 0; k < sizeof(d.tag); k++)
            if (!strchr("0123456789abcdef", d.tag[k]) || d.tag[k] == '\0')
                return bad(c, "a blob has no digest");
        if (d.blocks != c->blobs[i])
            return err_invalid(c->e, "blob %zu of the image has %u blocks, and its file has %llu",
                               i + 1, d.blocks, (unsigned long long)c->blobs[i]);
        if (!zeros(d.rest, sizeof(d.rest)))
            return bad(c, "a blob has unknown settings");
    }
    return zeros(c->m + end, c->inodes_at - end) ? 0 : bad(c, "bytes after the table of blobs");
}

static int check_super(const struct check *c, uint64_t *ret_inodes)
{
    struct erofs_super s, known;

    if (c->len % IMAGE_BLOCK != 0 || c->len > META_MAX || c->len <= c->inodes_at)
        return bad(c, "its length cannot be");
    memcpy(&s, c->m + EROFS_SUPER_AT, sizeof(s));
    known = (struct erofs_super){.magic = EROFS_MAGIC,
                                 .block_bits = EROFS_BLOCK_BITS,
                                 .inodes = s.inodes,
                                 .blocks = (uint32_t)(c->len / IMAGE_BLOCK),
                                 .inodes_at = (uint32_t)(c->inodes_at / IMAGE_BLOCK),
                                 .feature_incompat = EROFS_INCOMPAT,
                                 .devices = (uint16_t)c->n_blobs,
                                 .devices_at = EROFS_DEVICES_AT / sizeof(struct erofs_device)};
    memcpy(known.uuid, s.uuid, sizeof(s.uuid));
    if (s.magic == EROFS_MAGIC && s.devices != c->n_blobs)
        return err_invalid(c->e, "the image has %u blobs, and %zu were given", s.devices,
                           c->n_blobs);
    if (memcmp(&s, &known, sizeof(s)) != 0)
        return bad(c, "its super block is another one");
    if (!zeros(c->m, EROFS_SUPER_AT) ||
        !zeros(c->m + EROFS_SUPER_AT + sizeof(s), IMAGE_BLOCK - EROFS_SUPER_AT - sizeof(s)))
        return bad(c, "bytes around the super block");
    *ret_inodes = s.inodes;
    return check_devices(c);
}

/* ---- inodes ---------------------------------------------------------------------------------- */

static struct erofs_inode read_inode(const struct check *c, uint32_t slot)
{
    struct erofs_inode disk;

    memcpy(&disk, c->m + c->inodes_at + (uint64_t)slot * EROFS_SLOT, sizeof(disk));
    return disk;
}

static size_t attrs_length(const struct erofs_inode *disk)
{
    return disk->attrs ? (disk->attrs - 1) * 4u : 0;
}

static int check_fields(const struct check *c, const struct erofs_inode *disk)
{
    uint64_t most = S_ISREG(disk->mode)   ? (uint64_t)UINT32_MAX * IMAGE_BLOCK
                    : S_ISDIR(disk->mode) ? META_MAX
                    : S_ISLNK(disk->mode) ? IMAGE_PATH_MAX
                                          : 0;

    if (layout_type(disk->mode) == 0 || disk->zero || !zeros(disk->rest, sizeof(disk->rest)))
        return bad(c, "an inode of an unknown kind");
    if (disk->uid > IMAGE_ID_MAX || disk->gid > IMAGE_ID_MAX || disk->mtime_ns > 999999999)
        return bad(c, "an owner or a time that cannot be");
    if (disk->size > most || (S_ISLNK(disk->mode) && disk->size == 0))
        return bad(c, "a size that cannot be");
    if (attrs_length(disk) > IMAGE_XATTRS_MAX || disk->attrs == 1)
        return bad(c, "too many attributes");
    return 0;
}

static int check_attrs(const struct check *c, const struct erofs_inode *disk, const uint8_t *p)
{
    if (disk->attrs == 0)
        return 0;
    if (!zeros(p, sizeof(struct erofs_attrs_head)) ||
        !attrs_are_valid(p + sizeof(struct erofs_attrs_head), attrs_length(disk)))
        return bad(c, "attributes that a world does not have");
    return 0;
}

/* Where a file's contents are. */
static int check_chunk(const struct check *c, const struct erofs_inode *disk, const uint8_t *inode,
                       const struct shape *s)
{
    uint64_t blocks = image_blocks(disk->size);
    size_t attrs = disk->attrs ? sizeof(struct erofs_attrs_head) + attrs_length(disk) : 0;
    struct erofs_chunk chunk;

    memcpy(&chunk, inode + s->chunk, sizeof(chunk));
    if (disk->data != layout_chunk_form(blocks) || chunk.zero ||
        !zeros(inode + sizeof(*disk) + attrs, s->chunk - sizeof(*disk) - attrs))
        return bad(c, "contents in an unknown form");
    if (chunk.device == 0 || chunk.device > c->n_blobs ||
        chunk.block + blocks > c->blobs[chunk.device - 1])
        return bad(c, "contents outside of their blob");
    return 0;
}

/* An inode that has no name yet: the one that must come next. */
static int admit(struct check *c, uint32_t slot, const struct erofs_inode *disk, uint32_t parent)
{
    uint64_t at = c->inodes_at + (uint64_t)slot * EROFS_SLOT;
    const uint8_t *p = c->m + at;

    if (disk->number != c->n + 1 || c->n > IMAGE_ENTRIES_MAX)
        return bad(c, "an entry for an inode that does not come next");
    int r = check_fields(c, disk);
    if (r < 0)
        return r;
    struct shape s = layout_shape(disk->mode, disk->size, attrs_length(disk));
    if (disk->format != (s.layout << 1 | 1) || layout_place(&c->end, &s) != at ||
        at + s.fixed + s.tail > c->len)
        return bad(c, "an inode that is not in its place");
    if (!zeros(c->m + c->used, at - c->used))
        return bad(c, "bytes between inodes");
    c->used = at + s.fixed + s.tail;
    r = check_attrs(c, disk, p + sizeof(*disk));
    if (r == 0 && s.chunk > 0)
        r = check_chunk(c, disk, p, &s);
    else if (r == 0 && s.blocks == 0 && disk->data != 0)
        r = bad(c, "an inode with data that it has not");
    if (r < 0)
        return r;
    uint16_t depth = c->n > 0 ? c->v[parent - 1].depth + S_ISDIR(disk->mode) : 0;
    if (depth > IMAGE_DEPTH_MAX)
        return bad(c, "too many directories in each other");
    c->v = xgrow(c->v, c->n, &c->room, sizeof(*c->v));
    c->v[c->n++] = (struct node){.slot = slot, .parent = parent, .depth = depth};
    return 0;
}

/* ---- directories ----------------------------------------------------------------------------- */

struct dir {
    uint32_t number, slot, parent_slot;
    uint32_t names, subdirs;
    bool own, up;      /* "." and ".." were there */
    size_t block_used; /* of the block before */
    char last[IMAGE_NAME_MAX + 1];
};

/* An entry of its own, neither "." nor "..". */
static int check_child(struct check *c, struct dir *dir, const struct erofs_dirent *d)
{
    if (d->slot > (c->len - c->inodes_at - sizeof(struct erofs_inode)) / EROFS_SLOT)
        return bad(c, "an entry for an inode outside of the image");
    uint32_t slot = (uint32_t)d->slot;
    struct erofs_inode disk = read_inode(c, slot);

    if (disk.number == 0 || disk.number > c->n || c->v[disk.number - 1].slot != slot) {
        int r = admit(c, slot, &disk, dir->number);

        if (r < 0)
            return r;
        dir->subdirs += S_ISDIR(disk.mode);
    } else if (S_ISDIR(disk.mode)) {
        return bad(c, "a directory with two names");
    }
    c->v[disk.number - 1].links++;
    return d->type == layout_type(disk.mode) ? 0
                                             : bad(c, "an entry of another type than its inode");
}

static int check_entry(struct check *c, struct dir *dir, const struct erofs_dirent *d,
                       const char *name, size_t len)
{
    char text[IMAGE_NAME_MAX + 1];

    if (len == 0 || len > IMAGE_NAME_MAX || memchr(name, '/', len) || memchr(name, '\0', len) ||
        d->zero)
        return bad(c, "an entry with a name that cannot be");
    memcpy(text, name, len);
    text[len] = '\0';
    if (dir->names++ > 0 && strcmp(dir->last, text) >= 0)
        return bad(c, "entries that are not in order");
    memcpy(dir->last, text, len + 1);
    if (strcmp(text, ".") != 0 && strcmp(text, "..") != 0)
        return check_child(c, dir, d);
    bool up = len == 2;
    *(up ? &dir->up : &dir->own) = true;
    return d->slot == (up ? dir->parent_slot : dir->slot) && d->type == layout_type(S_IFDIR)
               ? 0
               : bad(c, "'.' or '..' that is another directory");
}

/* One block of entries. len: IMAGE_BLOCK, or fewer bytes if it is the last one. */
static int check_block(struct check *c, struct dir *dir, const uint8_t *p, size_t len, bool last)
{
    struct erofs_dirent d = {0}, next = {0};

    if (len < sizeof(d))
        return bad(c, "a directory that is cut");
    memcpy(&d, p, sizeof(d));
    size_t n = d.name_at / sizeof(d), at = d.name_at;
    if (n == 0 || at % sizeof(d) != 0 || at >= len)
        return bad(c, "a directory in an unknown form");
    for (size_t i = 0; i < n; i++, d = next) {
        size_t end = last ? len : at + strnlen((const char *)p + at, len - at);

        if (i + 1 < n) {
            memcpy(&next, p + (i + 1) * sizeof(d), sizeof(next));
            end = next.name_at;
        }
        if (d.name_at != at || end <= at || end > len)
            return bad(c, "a directory in an unknown form");
        if (i == 0 && dir->names > 0 &&
            dir->block_used + layout_dirent_size(end - at) <= IMAGE_BLOCK)
            return bad(c, "a block of a directory that is not full");
        int r = check_entry(c, dir, &d, (const char *)p + at, end - at);
        if (r < 0)
            return r;
        at = end;
    }
    dir->block_used = at;
    return zeros(p + at, len - at) ? 0 : bad(c, "bytes after the names of a directory");
}

/* Data in blocks of its own, which must be the next ones. */
static int take_blocks(struct check *c, uint32_t first, uint32_t blocks, const uint8_t **ret)
{
    if (blocks == 0)
        return 0;
    if (c->data_first == 0)
        c->data_first = c->data = first;
    if (first == 0 || first != c->data || ((uint64_t)first + blocks) * IMAGE_BLOCK > c->len)
        return bad(c, "data that is not in its place");
    *ret = c->m + (uint64_t)first * IMAGE_BLOCK;
    c->data += blocks;
    return 0;
}

static int check_dir(struct check *c, uint32_t number, const struct erofs_inode *disk,
                     const struct shape *s, const uint8_t *blocks)
{
    struct dir dir = {.number = number,
                      .slot = c->v[number - 1].slot,
                      .parent_slot = c->v[c->v[number - 1].parent - 1].slot};
    const uint8_t *behind = c->m + c->inodes_at + (uint64_t)dir.slot * EROFS_SLOT + s->fixed;
    size_t short_block = (size_t)(disk->size % IMAGE_BLOCK);
    int r = 0;

    for (uint32_t i = 0; i < s->blocks && r == 0; i++) {
        bool last = i + 1 == s->blocks && s->tail == 0;
        size_t len = last && short_block > 0 ? short_block : IMAGE_BLOCK;

        r = check_block(c, &dir, blocks + (size_t)i * IMAGE_BLOCK, len, last);
        if (r == 0 && !zeros(blocks + (size_t)i * IMAGE_BLOCK + len, IMAGE_BLOCK - len))
            r = bad(c, "bytes after the names of a directory");
    }
    if (r == 0 && s->tail > 0)
        r = check_block(c, &dir, behind, s->tail, true);
    if (r == 0 && (!dir.own || !dir.up || disk->links != 2 + dir.subdirs))
        r = bad(c, "a directory without '.' or '..', or with a wrong number of links");
    return r;
}

static int check_link(struct check *c, uint32_t number, const struct erofs_inode *disk,
                      const struct shape *s, const uint8_t *blocks)
{
    const uint8_t *behind =
        c->m + c->inodes_at + (uint64_t)c->v[number - 1].slot * EROFS_SLOT + s->fixed;

    if (memchr(s->tail > 0 ? behind : blocks, '\0', disk->size) ||
        (s->blocks > 0 && !zeros(blocks + disk->size, IMAGE_BLOCK - disk->size)))
        return bad(c, "a link with a target that cannot be");
    return 0;
}

/* ---- the walk -------------------------------------------------------------------------------- */

static int check_inode(struct check *c, uint32_t number)
{
    struct erofs_inode disk = read_inode(c, c->v[number - 1].slot);
    struct shape s = layout_shape(disk.mode, disk.size, attrs_length(&disk));
    const uint8_t *blocks = NULL;
    int r = take_blocks(c, disk.data, s.blocks, &blocks);

    if (r == 0 && S_ISDIR(disk.mode))
        r = check_dir(c, number, &disk, &s, blocks);
    else if (r == 0 && S_ISLNK(disk.mode))
        r = check_link(c, number, &disk, &s, blocks);
    return r;
}

static int check_all(struct check *c, uint64_t inodes)
{
    struct erofs_inode root = read_inode(c, 0);
    int r = S_ISDIR(root.mode) ? admit(c, 0, &root, 1) : bad(c, "its root is no directory");

    for (size_t i = 0; r == 0 && i < c->n; i++) {
        c->now = i + 1;
        r = check_inode(c, (uint32_t)(i + 1));
    }
    for (size_t i = 0; r == 0 && i < c->n; i++) {
        struct erofs_inode disk = read_inode(c, c->v[i].slot);

        c->now = i + 1;
        if (!S_ISDIR(disk.mode) && disk.links != c->v[i].links)
            r = bad(c, "a wrong number of links");
    }
    if (r < 0)
        return r;
    uint64_t inodes_end = image_blocks(c->end), end = c->data_first ? c->data : inodes_end;
    if (inodes != c->n || (c->data_first && c->data_first != inodes_end) ||
        end * IMAGE_BLOCK != c->len)
        return bad(c, "its parts have other lengths");
    return zeros(c->m + c->used, inodes_end * IMAGE_BLOCK - c->used)
               ? 0
               : bad(c, "bytes after the inodes");
}

int image_check(const uint8_t *meta, size_t len, const uint64_t *blocks, size_t n,
                struct image_report *ret, struct sg_error *e)
{
    struct check c = {.m = meta, .len = len, .blobs = blocks, .n_blobs = n, .e = e};
    uint64_t inodes = 0;

    if (n == 0 || n > IMAGE_BLOBS)
        return err_invalid(e, "an image has 1 to %u layers, not %zu", IMAGE_BLOBS, n);
    c.inodes_at = c.end = c.used = layout_inodes_at(n);
    int r = check_super(&c, &inodes);
    if (r == 0)
        r = check_all(&c, inodes);
    free(c.v);
    ret->entries = c.n;
    ret->bytes = len;
    return r;
}
