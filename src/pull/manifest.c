#include "pull/manifest.h"

#include <string.h>

#include "lib/json/fields.h"
#include "lib/json/values.h"
#include "lib/text/json_check.h"
#include "lib/text/strbuf.h"
#include "pull/fault.h"

#define VALUES_MAX    200000 /* of a document: bounds the memory of its tree */
#define DEPTH_MAX     32
#define MANIFESTS_MAX 1000
#define SIZE_MAX_     (1ll << 50)
#define TEXT_MAX      4096
#define WORDS_MAX     4096
#define SHOWN_MAX     120

/* ---- any document ---------------------------------------------------------------------------- */

static const char *const index_types[] = {
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
};
static const char *const manifest_types[] = {
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
};
static const char *const config_types[] = {
    "application/vnd.oci.image.config.v1+json",
    "application/vnd.docker.container.image.v1+json",
};
static const char *const layer_types[] = {
    "application/vnd.oci.image.layer.v1.tar",
    "application/vnd.oci.image.layer.v1.tar+gzip",
    "application/vnd.oci.image.layer.v1.tar+zstd",
    "application/vnd.docker.image.rootfs.diff.tar",
    "application/vnd.docker.image.rootfs.diff.tar.gzip",
    "application/vnd.docker.image.rootfs.diff.tar.zstd",
};

/* The text of the table, or NULL. */
static const char *find_type(const char *type, const char *const *types, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(types[i], type) == 0)
            return types[i];
    return NULL;
}

#define is_type(type, types) (find_type(type, types, ARRAY_SIZE(types)) != NULL)

int document_load(const char *what, const char *text, size_t len, json_t **ret, struct sg_error *e)
{
    struct json_weight w = json_weigh(text, len);

    if (len > 2 && (unsigned char)text[0] == 0x1f && (unsigned char)text[1] == 0x8b)
        return fault_corrupt(e, "%s is compressed, which nobody asked for", what);
    if (w.values > VALUES_MAX || w.depth > DEPTH_MAX)
        return fault_limit(e, "%s is too complex", what);
    *ret = json_loadb(text, len, JSON_REJECT_DUPLICATES, NULL);
    return *ret ? 0 : fault_corrupt(e, "%s is not JSON", what);
}

int document_parse(const char *what, const char *text, size_t len, json_t **ret, struct sg_error *e)
{
    json_t *doc = NULL;
    int r = document_load(what, text, len, &doc, e);

    if (r == 0 && !json_is_object(doc)) {
        json_decref(doc);
        return fault_corrupt(e, "%s is not a JSON object", what);
    }
    if (r == 0)
        *ret = doc;
    return r;
}

/* Fields of a document: a wrong one is the writer's fault. */
static struct fields fields_of(const json_t *doc, const char *what, struct sg_error *e)
{
    return (struct fields){.object = doc, .prefix = what, .e = e};
}

static int fields_end(const struct fields *in)
{
    if (in->r == 0)
        return 0;
    if (in->e && in->r == -EINVAL)
        in->e->code = -EBADMSG;
    return in->r == -EINVAL ? -EBADMSG : in->r;
}

static int old_schema(struct sg_error *e)
{
    return fault_unsupported(e,
                             "the image has a manifest of schema 1, which Docker gave up: push it "
                             "again with a current Docker");
}

int document_is_index(const json_t *doc, const char *sent_as, bool *ret, struct sg_error *e)
{
    const char *type = jr_text_or(doc, "mediaType", sent_as);
    bool list = json_object_get(doc, "manifests") != NULL;
    bool layers = json_object_get(doc, "layers") || json_object_get(doc, "config");

    if (strstr(type, "docker.distribution.manifest.v1+") || jr_int(doc, "schemaVersion") == 1)
        return old_schema(e);
    if (jr_int(doc, "schemaVersion") != 2)
        return fault_corrupt(e, "the manifest has no schemaVersion 2");
    /* One text must not be an index to one reader and a manifest to another. */
    if (list && layers)
        return fault_corrupt(e, "the manifest is both an index and a manifest");
    if (!list && !layers)
        return fault_corrupt(e, "the manifest has neither layers nor manifests");
    if (list ? is_type(type, manifest_types) : is_type(type, index_types))
        return fault_corrupt(e, "the manifest is not what its type says: %.*s", SHOWN_MAX, type);
    *ret = list;
    return 0;
}

/* ---- descriptors ----------------------------------------------------------------------------- */

/* types: what it may be; NULL: any, and media_type stays NULL. */
static void read_descriptor(struct fields *in, const char *what, const char *const *types, size_t n,
                            struct descriptor *ret)
{
    const char *digest = field_text(in, "digest", DIGEST_TEXT_MAX, "");
    const char *type = field_text(in, "mediaType", TEXT_MAX, "");

    ret->size = field_count(in, "size", 1, SIZE_MAX_, 0);
    if (!digest_parse(digest, strlen(digest), &ret->digest))
        field_must(in, "digest", "a SHA-256 or SHA-512");
    if (ret->size == 0)
        field_must(in, "size", "a number of bytes");
    if (!types || !fields_ok(in))
        return;
    ret->media_type = find_type(type, types, n);
    if (strstr(type, "foreign") || strstr(type, "nondistributable") ||
        json_array_size(json_object_get(in->object, "urls")) > 0)
        fields_fail(
            in, SG_ERR_UNSUPPORTED, -EOPNOTSUPP,
            "%s %s is to be fetched from elsewhere, which is not done: use an image that has "
            "all its layers",
            what, digest);
    else if (!ret->media_type)
        fields_fail(in, SG_ERR_UNSUPPORTED, -EOPNOTSUPP, "%s %s is of an unknown type: %.*s", what,
                    digest, SHOWN_MAX, type);
}

int descriptor_parse(const json_t *object, struct descriptor *ret, struct sg_error *e)
{
    struct fields in = fields_of(object, "index: ", e);

    *ret = (struct descriptor){0};
    if (!json_is_object(object))
        return fault_corrupt(e, "index: an entry is not an object");
    read_descriptor(&in, "manifest", NULL, 0, ret);
    return fields_end(&in);
}

/* ---- indexes --------------------------------------------------------------------------------- */

/* Adds "linux/arm64" to the platforms that there are, for the error. */
static void add_platform(const json_t *platform, struct strbuf *out)
{
    const char *os = jr_text(platform, "os"), *architecture = jr_text(platform, "architecture");

    if (os[0] && strcmp(os, "unknown") != 0)
        strbuf_addf(out, "%s%.20s/%.20s", out->len ? ", " : "", os, architecture);
}

int index_choose(const json_t *doc, const char *architecture, struct descriptor *ret,
                 struct sg_error *e)
{
    AUTO(strbuf_done) struct strbuf others = strbuf_upto(200);
    struct fields in = fields_of(doc, "index: ", e);
    const json_t *list = field_array(&in, "manifests", MANIFESTS_MAX), *entry;
    size_t i;

    if (in.r < 0)
        return fields_end(&in);
    json_array_foreach(list, i, entry)
    {
        const json_t *platform = json_object_get(entry, "platform");

        if (strcmp(jr_text(platform, "os"), "linux") == 0 &&
            strcmp(jr_text(platform, "architecture"), architecture) == 0)
            return descriptor_parse(entry, ret, e);
        add_platform(platform, &others);
    }
    /* An index of one that does not say what it is for: the config will. */
    if (json_array_size(list) == 1 && !json_object_get(json_array_get(list, 0), "platform"))
        return descriptor_parse(json_array_get(list, 0), ret, e);
    return fault_platform(e, "the image is not there for linux/%s, only for: %s", architecture,
                          others.len ? others.buf : "nothing");
}

/* ---- manifests ------------------------------------------------------------------------------- */

static void read_layers(struct fields *in, size_t max, struct manifest *m)
{
    const json_t *list = field_array(in, "layers", SIZE_MAX), *entry;
    size_t i;

    if (!list)
        field_must(in, "layers", "an array");
    if (json_array_size(list) > max)
        fields_fail(in, SG_ERR_LIMIT, -EFBIG, "the image has %zu layers, more than %zu",
                    json_array_size(list), max);
    if (!fields_ok(in))
        return;
    m->layers = xcalloc(json_array_size(list) + 1, sizeof(*m->layers));
    json_array_foreach(list, i, entry)
    {
        struct fields of = fields_within(in, entry);

        if (!json_is_object(entry))
            field_must(in, "layers", "an array of objects");
        read_descriptor(&of, "layer", layer_types, ARRAY_SIZE(layer_types),
                        &m->layers[m->n_layers]);
        m->n_layers++;
    }
}

int manifest_parse(const json_t *doc, size_t layers_max, struct manifest *ret, struct sg_error *e)
{
    struct fields in = fields_of(doc, "manifest: ", e);
    struct fields config = field_object(&in, "config");
    struct manifest m = {0};

    read_descriptor(&config, "config", config_types, ARRAY_SIZE(config_types), &m.config);
    if (m.config.size > DOCUMENT_MAX)
        fields_fail(&in, SG_ERR_LIMIT, -EFBIG, "the image's config has more than %u MiB",
                    DOCUMENT_MAX >> 20);
    read_layers(&in, layers_max, &m);
    if (in.r < 0)
        manifest_done(&m);
    else
        *ret = m;
    return fields_end(&in);
}

void manifest_done(struct manifest *m)
{
    free(m->layers);
    *m = (struct manifest){0};
}

/* ---- configs --------------------------------------------------------------------------------- */

/* An array of texts, or NULL. */
static const json_t *read_words(struct fields *in, const char *name)
{
    const json_t *list = field_array(in, name, WORDS_MAX), *word;
    size_t i;

    json_array_foreach(list, i, word)
    {
        if (!json_is_string(word))
            field_must(in, name, "an array of strings");
    }
    return list;
}

static void read_diff_ids(struct fields *in, size_t n_layers, struct config *c)
{
    struct fields rootfs = field_object(in, "rootfs");
    const json_t *list = field_array(&rootfs, "diff_ids", SIZE_MAX), *id;
    size_t i;

    if (json_array_size(list) != n_layers)
        field_wrong(in, "it has %zu layers, and the manifest %zu", json_array_size(list), n_layers);
    if (!fields_ok(in))
        return;
    c->diff_ids = xcalloc(n_layers + 1, sizeof(*c->diff_ids));
    json_array_foreach(list, i, id)
    {
        const char *text = json_string_value(id);

        if (!text || !digest_parse(text, strlen(text), &c->diff_ids[i]))
            field_must(&rootfs, "diff_ids", "an array of digests");
        c->n_diff_ids++;
    }
}

static void read_config(struct fields *in, struct config *c)
{
    struct fields of = field_object(in, "config");

    c->architecture = field_text(in, "architecture", TEXT_MAX, "");
    c->user = field_text(&of, "User", TEXT_MAX, "");
    c->working_dir = field_text(&of, "WorkingDir", TEXT_MAX, "");
    c->env = read_words(&of, "Env");
    c->entrypoint = read_words(&of, "Entrypoint");
    c->cmd = read_words(&of, "Cmd");
}

int config_parse(json_t *doc, const char *architecture, size_t n_layers, struct config *ret,
                 struct sg_error *e)
{
    struct fields in = fields_of(doc, "the image's config: ", e);
    struct config c = {.json = doc};
    const char *os = field_text(&in, "os", TEXT_MAX, "");

    read_config(&in, &c);
    if (in.r == 0 && (strcmp(os, "linux") != 0 || strcmp(c.architecture, architecture) != 0))
        fields_fail(&in, SG_ERR_UNSUPPORTED, -ENOEXEC,
                    "the image is for %.40s/%.40s, not for linux/%s", os, c.architecture,
                    architecture);
    read_diff_ids(&in, n_layers, &c);
    if (in.r < 0)
        config_done(&c);
    else
        *ret = c;
    return fields_end(&in);
}

void config_done(struct config *c)
{
    json_decref(c->json);
    free(c->diff_ids);
    *c = (struct config){0};
}
