/* What `docker save` writes names files, not digests. They are found out here, and a manifest is
 * made of them, so that the rest is the same as for any other image: the digest of a layer that is
 * not compressed is the one that the config says, and is checked as it is copied. */
#include <string.h>

#include "lib/json/values.h"
#include "pull/fault.h"
#include "pull/layout.h"
#include "pull/request.h"

#define NAMES_MAX   1000
#define MAGIC_BYTES 4

struct saved_file {
    struct digest digest;
    struct piece piece;
};

static int find_file(const struct layout *l, const char *path, struct piece *ret,
                     struct sg_error *e)
{
    int r = path[0] ? bundle_find(&l->bundle, path, ret, e) : -ENOENT;

    return r == -ENOENT ? fault_not_found(e, "the archive does not have '%.200s'", path) : r;
}

static struct saved_file *add_file(struct layout *l, const struct digest *d, const struct piece *p)
{
    struct saved_file *f = &l->files[l->n_files++];

    *f = (struct saved_file){.digest = *d, .piece = *p};
    return f;
}

/* ---- manifest.json --------------------------------------------------------------------------- */

static bool has_tag(const json_t *image, const char *name)
{
    const json_t *tags = json_object_get(image, "RepoTags"), *tag;
    size_t i;

    json_array_foreach(tags, i, tag)
    {
        if (json_is_string(tag) && reference_same(json_string_value(tag), name))
            return true;
    }
    return false;
}

static int choose(const struct layout *l, const json_t *list, const json_t **ret,
                  struct sg_error *e)
{
    const char *name = l->request->image;
    const json_t *image;
    size_t i, n = json_array_size(list);

    if (n == 0 || n > NAMES_MAX)
        return fault_corrupt(e, "the archive's manifest.json has %zu images", n);
    if (!name && n > 1)
        return fault_invalid(e, "the archive has %zu images: say which one, by name", n);
    json_array_foreach(list, i, image)
    {
        if (!name || has_tag(image, name)) {
            *ret = image;
            return 0;
        }
    }
    return fault_not_found(e, "the archive has no image of the name '%.200s'", name);
}

/* ---- a manifest of our own ------------------------------------------------------------------- */

static json_t *make_descriptor(const char *type, const struct saved_file *f)
{
    return json_pack("{s:s, s:I, s:s}", "mediaType", type, "size", (json_int_t)f->piece.size,
                     "digest", f->digest.text);
}

static int add_config(struct layout *l, const char *path, json_t **ret_config, json_t *manifest,
                      struct sg_error *e)
{
    AUTO(free_p) char *text = NULL;
    struct piece p = {0};
    struct digest d;
    int r = find_file(l, path, &p, e);

    if (r == 0)
        r = piece_read(&p, "the image's config", DOCUMENT_MAX, &text, e);
    if (r == 0)
        r = document_parse("the image's config", text, p.size, ret_config, e);
    if (r < 0)
        return r;
    d = digest_of(text, p.size, NULL);
    json_object_set_new(
        manifest, "config",
        make_descriptor("application/vnd.docker.container.image.v1+json", add_file(l, &d, &p)));
    return 0;
}

/* diff_id: what the config says of the layer. */
static int add_layer(struct layout *l, const char *path, const char *diff_id, json_t *layers,
                     struct sg_error *e)
{
    const char *type = "application/vnd.docker.image.rootfs.diff.tar";
    unsigned char magic[MAGIC_BYTES] = {0};
    bool compressed = true;
    struct piece p = {0};
    struct digest d;
    int r = find_file(l, path, &p, e);

    if (r < 0)
        return r;
    if (p.size < MAGIC_BYTES || pread(p.fd, magic, MAGIC_BYTES, (off_t)p.offset) != MAGIC_BYTES)
        return fault_corrupt(e, "'%.200s' of the archive is no layer", path);
    if (magic[0] == 0x1f && magic[1] == 0x8b)
        type = "application/vnd.docker.image.rootfs.diff.tar.gzip";
    else if (memcmp(magic, "\x28\xb5\x2f\xfd", MAGIC_BYTES) == 0)
        type = "application/vnd.docker.image.rootfs.diff.tar.zstd";
    else if (!digest_parse(diff_id, strlen(diff_id), &d))
        return fault_corrupt(e, "the image's config has no digest for '%.200s'", path);
    else
        compressed = false;
    if (compressed)
        r = piece_digest(&l->bundle, &p, &d, e);
    if (r == 0)
        json_array_append_new(layers, make_descriptor(type, add_file(l, &d, &p)));
    return r;
}

static int fill(struct layout *l, const json_t *image, json_t *manifest, struct sg_error *e)
{
    const json_t *paths = json_object_get(image, "Layers"), *ids;
    json_t *config = NULL, *layers = json_array();
    size_t n = json_array_size(paths);
    int r = 0;

    json_object_set_new(manifest, "layers", layers);
    if (n > l->request->limits.layers)
        return fault_limit(e, "the image has %zu layers, more than %u", n,
                           l->request->limits.layers);
    l->files = xcalloc(n + 1, sizeof(*l->files));
    r = add_config(l, jr_text(image, "Config"), &config, manifest, e);
    ids = json_object_get(json_object_get(config, "rootfs"), "diff_ids");
    for (size_t i = 0; r == 0 && i < n; i++) {
        const char *path = json_string_value(json_array_get(paths, i));
        const char *id = json_string_value(json_array_get(ids, i));

        r = add_layer(l, path ? path : "", id ? id : "", layers, e);
    }
    json_decref(config);
    return r;
}

int saved_root(struct source *s, struct document *ret, struct sg_error *e)
{
    struct layout *l = CONTAINER_OF(s, struct layout, source);
    AUTO(free_p) char *text = NULL;
    const json_t *image = NULL;
    json_t *list = NULL, *manifest = NULL;
    struct piece p = {0};
    int r = find_file(l, "manifest.json", &p, e);

    if (r == 0)
        r = piece_read(&p, "manifest.json", DOCUMENT_MAX, &text, e);
    if (r == 0)
        r = document_load("manifest.json", text, p.size, &list, e);
    if (r == 0)
        r = choose(l, list, &image, e);
    if (r == 0) {
        manifest = json_pack("{s:i, s:s}", "schemaVersion", 2, "mediaType",
                             "application/vnd.docker.distribution.manifest.v2+json");
        r = fill(l, image, manifest, e);
    }
    if (r == 0) {
        AUTO(free_p) char *made = json_dumps(manifest, JSON_COMPACT | JSON_SORT_KEYS);

        ret->digest = digest_of(made, strlen(made), NULL);
        ret->json = json_incref(manifest);
    }
    json_decref(manifest);
    json_decref(list);
    return r;
}

/* ---- what the manifest names ----------------------------------------------------------------- */

static const struct piece *find_digest(const struct layout *l, const struct digest *d)
{
    for (size_t i = 0; i < l->n_files; i++)
        if (digest_equal(&l->files[i].digest, d))
            return &l->files[i].piece;
    return NULL;
}

int saved_document(struct source *s, const struct descriptor *d, enum document_kind kind UNUSED,
                   struct document *ret, struct sg_error *e)
{
    struct layout *l = CONTAINER_OF(s, struct layout, source);
    const struct piece *p = find_digest(l, &d->digest);
    AUTO(free_p) char *text = NULL;
    int r;

    if (!p)
        return fault_not_found(e, "the archive does not have %s", d->digest.text);
    r = piece_read(p, "the image's config", DOCUMENT_MAX, &text, e);
    if (r < 0)
        return r;
    ret->digest = d->digest;
    return document_parse("the image's config", text, p->size, &ret->json, e);
}

int saved_layer(struct source *s, const struct descriptor *d, struct part *part,
                struct report *report, struct sg_error *e)
{
    struct layout *l = CONTAINER_OF(s, struct layout, source);
    const struct piece *p = find_digest(l, &d->digest);

    if (!p)
        return fault_not_found(e, "the archive does not have layer %s", d->digest.text);
    return piece_copy(&l->bundle, p, part, report, e);
}

void saved_done(struct layout *l)
{
    free(l->files);
    l->files = NULL;
    l->n_files = 0;
}
