#include "pull/image.h"

#include "pull/fault.h"
#include "pull/request.h"

#define INDEXES_MAX 3 /* one within another */

/* Follows indexes to the manifest for the architecture. */
static int find_manifest(struct source *s, const struct request *q, struct document *doc,
                         struct sg_error *e)
{
    struct descriptor d;
    bool index = false;
    int r = s->root(s, doc, e);

    for (int n = 0; r == 0; n++) {
        struct document next = {0};

        r = document_is_index(doc->json, doc->type, &index, e);
        if (r < 0 || !index)
            return r;
        if (n == INDEXES_MAX)
            return fault_corrupt(e, "the image has more than %d indexes within each other",
                                 INDEXES_MAX);
        r = index_choose(doc->json, q->architecture, &d, e);
        if (r == 0)
            r = s->document(s, &d, DOCUMENT_MANIFEST, &next, e);
        if (r == 0) {
            document_done(doc);
            *doc = next;
        }
    }
    return r;
}

static int check_sizes(const struct manifest *m, const struct limits *l, struct sg_error *e)
{
    uint64_t total = 0;

    for (size_t i = 0; i < m->n_layers; i++) {
        const struct descriptor *d = &m->layers[i];

        if (d->size > l->layer_bytes)
            return fault_limit(e, "layer %s has %llu bytes, more than %llu", d->digest.text,
                               (unsigned long long)d->size, (unsigned long long)l->layer_bytes);
        total += d->size;
    }
    if (total > l->total_bytes)
        return fault_limit(e, "the image's layers have %llu bytes, more than %llu",
                           (unsigned long long)total, (unsigned long long)l->total_bytes);
    return 0;
}

static int fetch_layer(struct source *s, struct store *store, const struct descriptor *d,
                       struct report *report, struct sg_error *e)
{
    AUTO(part_done) struct part part = {0};
    int r = part_begin(store, &d->digest, d->size, &part, e);

    if (r == 0)
        r = s->layer(s, d, &part, report, e);
    return r < 0 ? r : part_finish(&part, e);
}

static int fetch_layers(struct source *s, const struct request *q, const struct manifest *m,
                        const struct config *c, struct store *store, struct sg_error *e)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < m->n_layers; i++) {
        const struct descriptor *d = &m->layers[i];
        struct report report;

        if (request_has(q, &d->digest))
            continue;
        if (!store_made(store, &d->digest)) {
            if (report_layer(&report, i + 1, m->n_layers, d->size) < 0)
                return fault_cancelled(e, "cancelled");
            r = fetch_layer(s, store, d, &report, e);
        }
        if (r == 0 && report_ready(i, m, c) < 0)
            return fault_cancelled(e, "cancelled");
    }
    return r;
}

int image_pull(struct source *source, const struct request *q, struct store *store,
               struct sg_error *e)
{
    AUTO(document_done) struct document doc = {0}, conf = {0};
    AUTO(manifest_done) struct manifest m = {0};
    AUTO(config_done) struct config c = {0};
    int r = find_manifest(source, q, &doc, e);

    if (r == 0)
        r = manifest_parse(doc.json, q->limits.layers, &m, e);
    if (r < 0)
        return r;
    m.digest = doc.digest;
    bool unchanged = digest_given(&q->known) && digest_equal(&q->known, &doc.digest);
    r = source->document(source, &m.config, DOCUMENT_CONFIG, &conf, e);
    if (r == 0)
        r = config_parse(steal_ptr(&conf.json), q->architecture, m.n_layers, &c, e);
    if (r == 0)
        r = check_sizes(&m, &q->limits, e);
    if (r == 0 && !unchanged)
        r = fetch_layers(source, q, &m, &c, store, e);
    return r < 0 ? r : report_result(&m, &c, e);
}
