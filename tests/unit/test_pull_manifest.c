/* What images are made of: indexes, manifests, configs, and what is wrong with them. */
#include "lib/text/strbuf.h"
#include "pull/manifest.h"
#include "tap.h"

#define HEX       "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define D         "\"digest\":\"sha256:" HEX "\""
#define LAYER(t)  "{\"mediaType\":\"application/vnd." t "\",\"size\":7," D "}"
#define GZIP      "oci.image.layer.v1.tar+gzip"
#define CONFIG    "\"config\":" LAYER("oci.image.config.v1+json")
#define FOR(arch) "{\"size\":9," D ",\"platform\":{\"os\":\"linux\",\"architecture\":\"" arch "\"}}"
#define V2        "{\"schemaVersion\":2,"

static json_t *doc_of(const char *text)
{
    json_t *doc = NULL;
    struct sg_error e = {0};

    if (document_parse("it", text, strlen(text), &doc, &e) < 0) {
        printf("# %s: %s\n", text, e.message);
        tap_failures++;
    }
    return doc;
}

/* The message of the error that a document makes on its way, or "fine". */
static const char *judged(const char *text, int *ret_code)
{
    static struct sg_error e;
    struct manifest m = {0};
    struct descriptor d;
    json_t *doc = NULL;
    bool index = false;
    int r;

    e = (struct sg_error){0};
    r = document_parse("it", text, strlen(text), &doc, &e);
    if (r == 0)
        r = document_is_index(doc, "", &index, &e);
    if (r == 0)
        r = index ? index_choose(doc, "amd64", &d, &e) : manifest_parse(doc, 3, &m, &e);
    manifest_done(&m);
    json_decref(doc);
    EXPECT(r == e.code);
    *ret_code = r;
    return r < 0 ? e.message : "fine";
}

TEST(a_manifest)
{
    json_t *doc = doc_of(
        V2 CONFIG ",\"layers\":[" LAYER(GZIP) "," LAYER("docker.image.rootfs.diff.tar.zstd") "]}");
    struct manifest m = {0};
    bool index = true;

    EXPECT(document_is_index(doc, "", &index, NULL) == 0 && !index);
    EXPECT(manifest_parse(doc, 2, &m, NULL) == 0);
    EXPECT(m.n_layers == 2 && m.layers[0].size == 7 && m.config.size == 7);
    EXPECT_STR(m.layers[0].media_type, "application/vnd." GZIP);
    EXPECT_STR(m.layers[1].digest.text, "sha256:" HEX);
    manifest_done(&m);
    json_decref(doc);
}

TEST(an_index)
{
    json_t *doc = doc_of(V2 "\"manifests\":[" FOR("arm64") "," FOR("amd64") "]}");
    struct descriptor d;
    struct sg_error e = {0};
    bool index = false;

    EXPECT(document_is_index(doc, "application/vnd.oci.image.index.v1+json", &index, &e) == 0 &&
           index);
    EXPECT(index_choose(doc, "amd64", &d, &e) == 0 && d.size == 9);
    EXPECT(index_choose(doc, "riscv64", &d, &e) == -ENOEXEC);
    EXPECT(strstr(e.message, "linux/arm64, linux/amd64"));
    EXPECT(document_is_index(doc, "application/vnd.oci.image.manifest.v1+json", &index, &e) < 0);
    json_decref(doc);
    doc = doc_of(V2 "\"manifests\":[{\"size\":9," D "}]}");
    EXPECT(index_choose(doc, "amd64", &d, &e) == 0);
    json_decref(doc);
}

static const struct {
    const char *text;
    int code;
    const char *why;
} wrong[] = {
    {"<html>", -EBADMSG, "not JSON"},
    {"[]", -EBADMSG, "not a JSON object"},
    {"\x1f\x8b\x08", -EBADMSG, "compressed"},
    {"{}", -EBADMSG, "schemaVersion"},
    {"{\"schemaVersion\":1,\"fsLayers\":[]}", -EOPNOTSUPP, "schema 1"},
    {V2
     "\"mediaType\":\"application/vnd.docker.distribution.manifest.v1+prettyjws\",\"layers\":[]}",
     -EOPNOTSUPP, "schema 1"},
    {V2 "\"layers\":[],\"manifests\":[]}", -EBADMSG, "both an index and a manifest"},
    {V2 "\"subject\":{}}", -EBADMSG, "neither"},
    {V2 "\"manifests\":[]}", -ENOEXEC, "only for: nothing"},
    {V2 "\"manifests\":{}}", -EBADMSG, "'manifests' must be an array"},
    {V2 "\"manifests\":[7]}", -EBADMSG, "not an object"},
    {V2 "\"manifests\":[" FOR("arm64") "]}", -ENOEXEC, "only for: linux/arm64"},
    {V2 CONFIG "}", -EBADMSG, "'layers' must be an array"},
    {V2 "\"layers\":[]}", -EBADMSG, "'digest' must be"},
    {V2 CONFIG ",\"layers\":[7]}", -EBADMSG, "array of objects"},
    {V2 CONFIG ",\"layers\":[{\"size\":1}]}", -EBADMSG, "'digest' must be"},
    {V2 CONFIG ",\"layers\":[{" D "}]}", -EBADMSG, "'size' must be"},
    {V2 CONFIG ",\"layers\":[{" D ",\"size\":-1}]}", -EBADMSG, "'size'"},
    {V2 CONFIG ",\"layers\":[{" D ",\"size\":99999999999999999}]}", -EBADMSG, "'size'"},
    {V2 CONFIG ",\"layers\":[" LAYER(GZIP) "," LAYER(GZIP) "," LAYER(GZIP) "," LAYER(GZIP) "]}",
     -EFBIG, "4 layers"},
    {V2 CONFIG ",\"layers\":[" LAYER("docker.image.rootfs.foreign.diff.tar.gzip") "]}", -EOPNOTSUPP,
     "fetched from elsewhere"},
    {V2 CONFIG ",\"layers\":[" LAYER("oci.image.layer.nondistributable.v1.tar") "]}", -EOPNOTSUPP,
     "fetched from elsewhere"},
    {V2 CONFIG ",\"layers\":[{\"mediaType\":\"application/vnd." GZIP "\",\"size\":7," D
               ",\"urls\":[\"https://a.test/\"]}]}",
     -EOPNOTSUPP, "fetched from elsewhere"},
    {V2 CONFIG ",\"layers\":[" LAYER(GZIP "+encrypted") "]}", -EOPNOTSUPP, "unknown type"},
    {V2 "\"config\":" LAYER("cncf.helm.config.v1+json") ",\"layers\":[]}", -EOPNOTSUPP,
     "unknown type"},
    {V2 "\"config\":{\"mediaType\":\"application/vnd.oci.image.config.v1+json\",\"size\":5000000," D
        "},\"layers\":[]}",
     -EFBIG, "4 MiB"},
    {V2 CONFIG ",\"layers\":[],\"layers\":[]}", -EBADMSG, "not JSON"},
    {V2 CONFIG ",\"layers\":[]}", 0, "fine"},
};

TEST(wrong_documents_say_what_is_wrong)
{
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
        int code;
        const char *said = judged(wrong[i].text, &code);

        if (code == wrong[i].code && strstr(said, wrong[i].why))
            continue;
        printf("# %.120s: %d, %s\n", wrong[i].text, code, said);
        tap_failures++;
    }
}

TEST(a_deep_document_costs_nothing)
{
    char text[4096];

    memset(text, '[', sizeof(text));
    json_t *doc = NULL;
    EXPECT(document_parse("it", text, sizeof(text), &doc, NULL) == -EFBIG);
}

static int config_of(const char *text, size_t layers, struct config *c, struct sg_error *e)
{
    *e = (struct sg_error){0};
    return config_parse(doc_of(text), "amd64", layers, c, e);
}

#define LINUX "\"os\":\"linux\",\"architecture\":\"amd64\""
#define IDS   "\"rootfs\":{\"type\":\"layers\",\"diff_ids\":[\"sha256:" HEX "\"]}"

TEST(configs)
{
    struct config c = {0};
    struct sg_error e;

    EXPECT(config_of("{" LINUX "," IDS ",\"config\":{\"Env\":[\"A=b\"],\"Cmd\":[\"sh\",\"-c\"],"
                     "\"User\":\"u\",\"WorkingDir\":\"/w\",\"Entrypoint\":null}}",
                     1, &c, &e) == 0);
    EXPECT_STR(c.user, "u");
    EXPECT_STR(c.working_dir, "/w");
    EXPECT(json_array_size(c.env) == 1 && json_array_size(c.cmd) == 2 && !c.entrypoint);
    EXPECT_STR(c.diff_ids[0].text, "sha256:" HEX);
    config_done(&c);
    EXPECT(config_of("{" LINUX "," IDS "}", 1, &c, &e) == 0);
    config_done(&c);
    EXPECT(config_of("{" LINUX "," IDS "}", 2, &c, &e) == -EBADMSG &&
           strstr(e.message, "1 layers"));
    EXPECT(config_of("{" LINUX "," IDS ",\"config\":{\"Env\":[1]}}", 1, &c, &e) == -EBADMSG);
    EXPECT(config_of("{" LINUX "," IDS ",\"config\":{\"Cmd\":\"sh\"}}", 1, &c, &e) == -EBADMSG);
    EXPECT(config_of("{" LINUX ",\"rootfs\":{\"diff_ids\":[\"x\"]}}", 1, &c, &e) == -EBADMSG);
    EXPECT(config_of("{\"os\":\"windows\",\"architecture\":\"amd64\"," IDS "}", 1, &c, &e) ==
           -ENOEXEC);
    EXPECT(strstr(e.message, "windows/amd64"));
    EXPECT(config_of("{}", 0, &c, &e) == -ENOEXEC);
}

TAP_MAIN
