#include "pull/layout.h"

#include <stdio.h>
#include <string.h>

#include "lib/json/values.h"
#include "pull/fault.h"
#include "pull/request.h"

#define IMAGES_MAX 1000

/* What was not found is an error of its own here: the layout says that it is there. */
static int find_blob(struct layout *l, const struct digest *d, struct piece *ret,
                     struct sg_error *e)
{
    char path[sizeof("blobs/") + DIGEST_TEXT_MAX];
    int r;

    snprintf(path, sizeof(path), "blobs/%.*s/%s", (int)digest_algorithm_len(d), d->text,
             digest_hex(d));
    r = bundle_find(&l->bundle, path, ret, e);
    return r == -ENOENT ? fault_not_found(e, "the layout does not have '%s'", path) : r;
}

/* ---- index.json ------------------------------------------------------------------------------ */

static bool is_named(const json_t *entry, const char *name)
{
    const json_t *notes = json_object_get(entry, "annotations");

    return reference_same(jr_text(notes, "org.opencontainers.image.ref.name"), name) ||
           reference_same(jr_text(notes, "io.containerd.image.name"), name);
}

/* The entry that the request names, or the only one. */
static int choose(const struct layout *l, const json_t *index, struct descriptor *ret,
                  struct sg_error *e)
{
    const json_t *list = json_object_get(index, "manifests"), *entry;
    const char *name = l->request->image;
    size_t i, n = json_array_size(list);

    if (n == 0 || n > IMAGES_MAX)
        return fault_corrupt(e, "the layout's index.json has %zu images", n);
    if (!name && n > 1)
        return fault_invalid(e, "the layout has %zu images: say which one, by name", n);
    json_array_foreach(list, i, entry)
    {
        if (!name || is_named(entry, name))
            return descriptor_parse(entry, ret, e);
    }
    return fault_not_found(e, "the layout has no image of the name '%.200s'", name);
}

static int layout_document(struct source *s, const struct descriptor *d,
                           enum document_kind kind UNUSED, struct document *ret, struct sg_error *e)
{
    struct layout *l = CONTAINER_OF(s, struct layout, source);
    AUTO(piece_done) struct piece p = {0};
    AUTO(free_p) char *text = NULL;
    char what[DIGEST_TEXT_MAX + 16];
    int r = find_blob(l, &d->digest, &p, e);

    snprintf(what, sizeof(what), "the blob %s", d->digest.text);
    if (r == 0)
        r = piece_read(&p, what, DOCUMENT_MAX, &text, e);
    if (r < 0)
        return r;
    ret->digest = digest_of(text, p.size, &d->digest);
    if (!digest_equal(&ret->digest, &d->digest))
        return fault_corrupt(e, "%s has another content: its digest is %s", what, ret->digest.text);
    return document_parse(what, text, p.size, &ret->json, e);
}

static int layout_root(struct source *s, struct document *ret, struct sg_error *e)
{
    struct layout *l = CONTAINER_OF(s, struct layout, source);
    AUTO(piece_done) struct piece p = {0};
    AUTO(free_p) char *text = NULL;
    struct descriptor d;
    json_t *index = NULL;
    int r = bundle_find(&l->bundle, "index.json", &p, e);

    if (r == -ENOENT)
        return fault_not_found(e, "there is no image: neither index.json nor manifest.json");
    if (r == 0)
        r = piece_read(&p, "index.json", DOCUMENT_MAX, &text, e);
    if (r == 0)
        r = document_parse("index.json", text, p.size, &index, e);
    if (r == 0)
        r = choose(l, index, &d, e);
    json_decref(index);
    return r < 0 ? r : layout_document(s, &d, DOCUMENT_MANIFEST, ret, e);
}

static int layout_layer(struct source *s, const struct descriptor *d, struct part *part,
                        struct report *report, struct sg_error *e)
{
    struct layout *l = CONTAINER_OF(s, struct layout, source);
    AUTO(piece_done) struct piece p = {0};
    int r = find_blob(l, &d->digest, &p, e);

    return r < 0 ? r : piece_copy(&l->bundle, &p, part, report, e);
}

/* ---- the whole ------------------------------------------------------------------------------- */

int layout_init(struct layout *l, int fd, const struct request *q, const struct deadline *d,
                struct sg_error *e)
{
    static const struct source oci = {
        .root = layout_root, .document = layout_document, .layer = layout_layer};
    static const struct source saved = {
        .root = saved_root, .document = saved_document, .layer = saved_layer};
    AUTO(piece_done) struct piece index = {0}, manifest = {0};
    int r;

    *l = (struct layout){.source = oci, .request = q};
    r = bundle_open(&l->bundle, fd, q->from == REQUEST_LAYOUT, d, e);
    if (r == 0 && q->from == REQUEST_ARCHIVE &&
        bundle_find(&l->bundle, "index.json", &index, NULL) < 0 &&
        bundle_find(&l->bundle, "manifest.json", &manifest, NULL) == 0)
        l->source = saved;
    return r;
}

void layout_done(struct layout *l)
{
    saved_done(l);
    bundle_done(&l->bundle);
}
