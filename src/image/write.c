/* The role `write`: LISTs into META. */
#include "image/merge.h"
#include "image/meta.h"

struct writer {
    struct tree tree;
    struct sink out;
    struct digest *id;
};

static void writer_done(struct writer *w)
{
    tree_done(&w->tree);
    sink_done(&w->out);
    digest_free_p(&w->id);
}

static int add_layer(struct writer *w, int list, uint64_t blocks, uint16_t number,
                     struct meta_blob *ret, struct sg_error *e)
{
    AUTO(records_close_p) struct records *l = NULL;
    uint8_t sum[IMAGE_DIGEST];
    int r = records_open(list, blocks, &l, e);

    if (r == 0)
        r = merge_layer(&w->tree, l, number, e);
    if (r < 0)
        return err_wrap(e, r, "layer %u", number);
    ret->blocks = (uint32_t)blocks;
    records_digests(l, ret->digest, sum);
    digest_add(w->id, sum, sizeof(sum));
    return 0;
}

int image_write(int meta, const int *lists, const uint64_t *blocks, size_t n,
                const struct image_limits *limits, struct image_report *ret, struct sg_error *e)
{
    AUTO(writer_done) struct writer w = {0};
    struct meta_blob blobs[IMAGE_BLOBS];
    uint8_t id[IMAGE_DIGEST];
    int r = 0;

    if (n == 0 || n > IMAGE_BLOBS)
        return err_invalid(e, "an image has 1 to %u layers, not %zu", IMAGE_BLOBS, n);
    tree_init(&w.tree, limits->entries);
    sink_init(&w.out, meta);
    w.id = digest_new();
    for (size_t i = 0; i < n && r == 0; i++)
        r = add_layer(&w, lists[i], blocks[i], (uint16_t)(i + 1), &blobs[i], e);
    if (r < 0)
        return r;
    digest_end(w.id, id);
    r = meta_write(&w.tree, blobs, n, id, &w.out, &ret->entries, e);
    if (r == 0)
        r = sink_end(&w.out, "image", ret->first, e);
    ret->bytes = w.out.total;
    return r;
}
