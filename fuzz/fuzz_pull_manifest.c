/* Indexes, manifests and configs, each read as all three. */
#include <assert.h>
#include <string.h>

#include "pull/manifest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void check(int r, const struct sg_error *e)
{
    assert(r == 0 || (r < 0 && e->code == r && e->message[0] && !strchr(e->message, '\n')));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct sg_error e = {0};
    struct manifest m = {0};
    struct config c = {0};
    struct descriptor d;
    json_t *doc = NULL;
    bool index;
    int r = document_parse("it", (const char *)data, len, &doc, &e);

    check(r, &e);
    if (r < 0)
        return 0;
    check(document_is_index(doc, "", &index, &e), &e);
    check(index_choose(doc, "amd64", &d, &e), &e);
    e = (struct sg_error){0};
    r = manifest_parse(doc, 16, &m, &e);
    check(r, &e);
    assert(m.n_layers <= 16);
    for (size_t i = 0; i < m.n_layers; i++)
        assert(digest_given(&m.layers[i].digest) && m.layers[i].size > 0 && m.layers[i].media_type);
    r = config_parse(doc, "amd64", 1, &c, &e);
    check(r, &e);
    assert(r < 0 || c.n_diff_ids == 1);
    config_done(&c);
    manifest_done(&m);
    return 0;
}
