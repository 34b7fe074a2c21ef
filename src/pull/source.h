/* Where an image comes from. There are three: a registry, a layout (a directory or a tar) and what
 * `docker save` wrote. */
#pragma once

#include "pull/manifest.h"
#include "pull/report.h"
#include "pull/store.h"

struct document {
    json_t *json;
    struct digest digest;
    char type[128]; /* what a registry sent it as, or "" */
};

enum document_kind { DOCUMENT_MANIFEST, DOCUMENT_CONFIG };

struct source {
    /* The first document: an index or a manifest. */
    int (*root)(struct source *s, struct document *ret, struct sg_error *e);
    /* Another one, by its descriptor, which its content is checked against. */
    int (*document)(struct source *s, const struct descriptor *d, enum document_kind kind,
                    struct document *ret, struct sg_error *e);
    /* Adds all bytes of a layer to an empty part. */
    int (*layer)(struct source *s, const struct descriptor *d, struct part *part,
                 struct report *report, struct sg_error *e);
};

static inline void document_done(struct document *d)
{
    json_decref(d->json);
    d->json = NULL;
}
