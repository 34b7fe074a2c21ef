/* The role `unpack`: a layer's tar into BLOB and LIST.
 *
 * Nothing is remembered but the entry at hand, so memory does not grow with the layer. What a name means for the
 * entries before it and for the layers below is the writer's business; here it is only checked that it
 * is a name. */
#include <string.h>
#include <sys/stat.h>

#include "image/records.h"
#include "image/path.h"
#include "image/tar.h"

#define MARK   ".wh."         /* before a name: the layers below have it, this world has not */
#define OPAQUE ".wh..wh..opq" /* in a directory: nothing of the layers below is in it */
#define OTHERS ".wh..wh."     /* what AUFS kept for itself */

struct unpack {
    const struct image_limits *limits;
    struct tar *tar;
    struct sink blob, list;
    uint64_t entries;
    uint32_t left_out;
    char path[IMAGE_PATH_MAX + 1], target[IMAGE_PATH_MAX + 1];
};

static void unpack_done(struct unpack *u)
{
    tar_free_p(&u->tar);
    sink_done(&u->blob);
    sink_done(&u->list);
}

/* Adds a record about u->path. */
static int add(struct unpack *u, struct record r, const char *target, const struct attrs *a,
               struct sg_error *e)
{
    r.path_len = (uint16_t)strlen(u->path);
    r.target_len = (uint16_t)strlen(target);
    r.attrs_len = a ? (uint16_t)a->len : 0;
    if (++u->entries > u->limits->entries)
        return err_set(e, SG_ERR_LIMIT, -EFBIG, "the layer has more than %llu entries",
                       (unsigned long long)u->limits->entries);
    records_add(&u->list, &(struct record_entry){
                              .r = r, .path = u->path, .target = target, .attrs = a ? a->v : NULL});
    return u->list.error < 0 ? err_code(e, u->list.error, "write the list of the layer") : 0;
}

/* Takes a mark. 1: it was none. */
static int take_mark(struct unpack *u, struct sg_error *e)
{
    char *slash = strrchr(u->path, '/'), *name = slash ? slash + 1 : u->path;

    if (strncmp(name, MARK, strlen(MARK)) != 0)
        return 1;
    if (strcmp(name, OPAQUE) == 0) {
        (slash ? slash : name)[0] = '\0';
        return add(u, (struct record){.kind = RECORD_OPAQUE}, "", NULL, e);
    }
    if (strncmp(name, OTHERS, strlen(OTHERS)) == 0) {
        u->left_out++;
        return 0;
    }
    const char *hidden = name + strlen(MARK);
    if (hidden[0] == '\0' || strcmp(hidden, ".") == 0 || strcmp(hidden, "..") == 0)
        return err_invalid(e, "the whiteout '%s' names nothing", PATH_SHOW(u->path));
    memmove(name, hidden, strlen(hidden) + 1);
    return add(u, (struct record){.kind = RECORD_WHITEOUT}, "", NULL, e);
}

static int take_contents(struct unpack *u, struct sg_error *e)
{
    const uint8_t *part;
    size_t n;

    do {
        int r = tar_content(u->tar, &part, &n, e);

        if (r < 0)
            return r;
        sink_add(&u->blob, part, n);
        if (u->blob.error < 0)
            return err_code(e, u->blob.error, "write the blob of the layer");
    } while (n > 0);
    sink_align(&u->blob, IMAGE_BLOCK);
    return 0;
}

static int take_file(struct unpack *u, const struct tar_entry *t, struct record r,
                     struct sg_error *e)
{
    uint64_t first = u->blob.total / IMAGE_BLOCK;

    if (first + image_blocks(t->size) >= UINT32_MAX)
        return err_set(e, SG_ERR_LIMIT, -EFBIG,
                       "the layer's files have more bytes than a blob can");
    r.kind = RECORD_FILE;
    r.size = t->size;
    r.block = t->size > 0 ? (uint32_t)first : 0;
    int code = add(u, r, "", t->attrs, e);
    return code < 0 ? code : take_contents(u, e);
}

static int take_link(struct unpack *u, const struct tar_entry *t, struct record r,
                     struct sg_error *e)
{
    if (t->kind == TAR_SYMLINK) {
        r.kind = RECORD_SYMLINK;
        r.mode = 0777; /* which is what Linux says of all of them */
        if (t->link[0] == '\0')
            return err_invalid(e, "the link '%s' leads nowhere", PATH_SHOW(u->path));
        return add(u, r, t->link, t->attrs, e);
    }
    int code = path_clean(t->link, u->limits, u->target, e);
    if (code == 0 && u->target[0] == '\0')
        code = err_invalid(e, "the hard link '%s' is to a directory", PATH_SHOW(u->path));
    return code < 0 ? code : add(u, (struct record){.kind = RECORD_HARDLINK}, u->target, NULL, e);
}

static int take_entry(struct unpack *u, const struct tar_entry *t, struct sg_error *e)
{
    struct record r = {
        .mode = t->mode, .uid = t->uid, .gid = t->gid, .mtime = t->mtime, .mtime_ns = t->mtime_ns};
    int code = path_clean(t->name, u->limits, u->path, e);

    if (code < 0)
        return code;
    if (u->path[0] == '\0' && t->kind != TAR_DIR)
        return err_invalid(e, "the layer has an entry '%s' for the root that is no directory",
                           PATH_SHOW(t->name));
    code = take_mark(u, e);
    if (code <= 0)
        return code;
    switch (t->kind) {
    case TAR_FILE:
        return take_file(u, t, r, e);
    case TAR_SYMLINK:
    case TAR_HARDLINK:
        return take_link(u, t, r, e);
    case TAR_DEVICE:
        u->left_out++;
        return 0;
    case TAR_DIR:
        r.kind = RECORD_DIR;
        return add(u, r, "", t->attrs, e);
    case TAR_FIFO:
        r.kind = RECORD_FIFO;
        return add(u, r, "", t->attrs, e);
    }
    return 0;
}

int image_unpack(int layer, int blob, int list, const struct image_limits *limits,
                 struct image_report *ret, struct sg_error *e)
{
    AUTO(unpack_done) struct unpack u = {.limits = limits};
    AUTO(input_free_p) struct input *in = NULL;
    struct tar_entry t;
    int r;

    sink_init(&u.blob, blob);
    sink_init(&u.list, list);
    records_begin(&u.list);
    r = input_new(layer, limits, &in, e);
    if (r < 0)
        return r;
    u.tar = tar_new(in, limits);
    while ((r = tar_next(u.tar, &t, e)) > 0) {
        r = take_entry(&u, &t, e);
        if (r < 0)
            return r;
    }
    uint32_t blocks = (uint32_t)(u.blob.total / IMAGE_BLOCK);
    if (r == 0)
        r = sink_end(&u.blob, "blob of the layer", ret->first, e);
    if (r == 0) {
        records_finish(&u.list, u.entries, blocks, ret->first);
        r = sink_end(&u.list, "list of the layer", ret->list, e);
    }
    if (r < 0)
        return r;
    input_digest(in, ret->diff_id);
    ret->entries = u.entries;
    ret->left_out = u.left_out;
    ret->blocks = blocks;
    ret->bytes = input_taken(in);
    return 0;
}
