#include "pull/registry.h"

#include <stdio.h>
#include <string.h>

#include "pull/fault.h"
#include "pull/request.h"

#define REDIRECTS_MAX 5
#define PATH_MAX_     1024
#define FURTHER_BYTES (1u << 20) /* that count as progress before another cut */
#define WHAT_MAX      256

/* One thing to fetch. */
struct fetch {
    struct registry *registry;
    char path[PATH_MAX_], what[WHAT_MAX];
    struct http_ask ask;
    /* Where it goes: */
    struct strbuf text; /* a document; */
    uint64_t max;
    bool promised; /* max is what a descriptor says */
    struct http_answer *kept;
    struct part *part; /* or a layer */
    struct report *report;
};

/* ---- what comes ------------------------------------------------------------------------------ */

static int too_long(const struct fetch *f, struct sg_error *e)
{
    if (f->promised)
        return fault_corrupt(e, "%s has more than the %llu bytes that were promised", f->what,
                             (unsigned long long)f->max);
    return fault_limit(e, "%s has more than %llu bytes", f->what, (unsigned long long)f->max);
}

static int begin_document(void *arg, const struct http_answer *a, struct sg_error *e)
{
    struct fetch *f = arg;

    strbuf_reset(&f->text);
    memcpy(f->kept->type, a->type, sizeof(a->type));
    if (a->encoded)
        return fault_corrupt(e, "%s is compressed, which nobody asked for", f->what);
    if (a->status != 200)
        return fault_corrupt(e, "%s came in parts, which nobody asked for", f->what);
    return a->has_length && a->length > f->max ? too_long(f, e) : 0;
}

static int take_document(void *arg, const void *data, size_t len, struct sg_error *e)
{
    struct fetch *f = arg;

    strbuf_add(&f->text, data, len);
    return f->text.truncated ? too_long(f, e) : 0;
}

/* An answer to a request for the rest may be the rest, or all of it. */
static int begin_layer(void *arg, const struct http_answer *a, struct sg_error *e)
{
    struct fetch *f = arg;
    struct part *p = f->part;
    uint64_t rest = p->size - p->bytes;

    if (a->status == 206) {
        if (a->from != p->bytes || (a->whole && a->whole != p->size) ||
            (a->has_length && a->length > rest))
            return fault_corrupt(e, "the registry answered with another part of layer %s",
                                 p->digest.text);
        return 0;
    }
    if (a->has_length && a->length != p->size)
        return fault_corrupt(e, "layer %s has %llu bytes, not %llu as its manifest says",
                             p->digest.text, (unsigned long long)a->length,
                             (unsigned long long)p->size);
    return p->bytes ? part_restart(p, e) : 0;
}

static int take_layer(void *arg, const void *data, size_t len, struct sg_error *e)
{
    struct fetch *f = arg;
    int r = part_add(f->part, data, len, e);

    if (r == 0 && report_progress(f->report, f->part->bytes) < 0)
        return fault_cancelled(e, "cancelled");
    return r;
}

/* ---- one attempt ----------------------------------------------------------------------------- */

static bool is_redirect(const struct http_answer *a)
{
    return (a->status == 301 || a->status == 302 || a->status == 303 || a->status == 307 ||
            a->status == 308) &&
           a->location[0];
}

/* Asks, and follows redirects. The proof goes to the registry alone. */
static int ask_around(struct fetch *f, struct http_answer *ret, struct url *ret_at, bool *ret_again,
                      struct sg_error *e)
{
    struct registry *g = f->registry;
    AUTO(url_done) struct url at = {0};
    int r = url_follow(&g->url, f->path, &g->http->request->vouchers, &at, e);

    for (int hop = 0; r == 0; hop++) {
        AUTO(url_done) struct url next = {0};

        f->ask.url = &at;
        f->ask.authorization = url_same_origin(&at, &g->url) ? auth_header(&g->auth) : NULL;
        http_answer_done(ret);
        memset(ret, 0, sizeof(*ret));
        r = http_exchange(g->http, &f->ask, ret, ret_again, e);
        if (r < 0 || !is_redirect(ret))
            break;
        if (hop == REDIRECTS_MAX)
            return fault_forbidden(e, "%s was moved more than %d times", f->what, REDIRECTS_MAX);
        r = url_follow(&at, ret->location, &g->http->request->vouchers, &next, e);
        if (r == 0) {
            struct url was = at;

            at = next;
            next = was;
        }
    }
    *ret_at = at;
    at.curl = NULL;
    return r;
}

static int judge_status(struct fetch *f, const struct http_answer *a, const char *origin,
                        struct attempt *ret, struct sg_error *e)
{
    struct part *p = f->part;

    if (a->status == 200 || a->status == 206) {
        /* A connection that was closed at the wrong time may look like a short answer. */
        ret->again = p && p->bytes < p->size;
        return ret->again
                   ? fault_corrupt(e, "layer %s ends after %llu of %llu bytes", p->digest.text,
                                   (unsigned long long)p->bytes, (unsigned long long)p->size)
                   : 0;
    }
    if (a->status == 416 && p && p->bytes) {
        int r = part_restart(p, e);

        ret->again = r == 0;
        return r < 0 ? r
                     : fault_corrupt(e, "%s does not send the rest of layer %s", origin,
                                     p->digest.text);
    }
    return retry_status(a, f->what, origin, ret, e);
}

static int fetch_once(void *arg, struct attempt *ret, struct sg_error *e)
{
    AUTO(http_answer_done) struct http_answer a = {0};
    AUTO(url_done) struct url at = {0};
    struct fetch *f = arg;
    struct registry *g = f->registry;
    uint64_t had = f->part ? f->part->bytes : 0;
    int r;

    f->ask.from = had;
    r = ask_around(f, &a, &at, &ret->again, e);
    if (r == 0 && a.status == 401 && a.challenge[0] && url_same_origin(&at, &g->url)) {
        r = auth_answer(&g->auth, &g->url, a.challenge, g->http->request->reference.path, e);
        if (r < 0)
            return r;
        url_done(&at);
        r = ask_around(f, &a, &at, &ret->again, e);
    }
    ret->further = f->part && f->part->bytes >= had + FURTHER_BYTES;
    return r < 0 ? r : judge_status(f, &a, at.origin, ret, e);
}

/* ---- documents and layers -------------------------------------------------------------------- */

static int no_registry(const struct fetch *f, const struct http_answer *kept, struct sg_error *e)
{
    return fault_corrupt(e, "%s came as %s from %s: is it a registry?", f->what, kept->type,
                         f->registry->url.origin);
}

static int fetch_document(struct registry *g, struct fetch *f, const struct digest *digest,
                          struct document *ret, struct sg_error *e)
{
    struct http_answer kept = {0};
    int r;

    f->registry = g;
    f->kept = &kept;
    f->text = strbuf_upto(f->max);
    f->ask.begin = begin_document;
    f->ask.take = take_document;
    f->ask.arg = f;
    r = retry(g->http, fetch_once, f, e);
    if (r == 0) {
        ret->digest = digest_of(f->text.buf, f->text.len, digest);
        snprintf(ret->type, sizeof(ret->type), "%s", kept.type);
        if (strncmp(kept.type, "text/html", strlen("text/html")) == 0)
            r = no_registry(f, &kept, e);
        else if (digest_given(digest) && !digest_equal(&ret->digest, digest))
            r = fault_corrupt(e, "%s has another content: its digest is %s", f->what,
                              ret->digest.text);
        else
            r = document_parse(f->what, f->text.buf, f->text.len, &ret->json, e);
    }
    strbuf_done(&f->text);
    return r;
}

static int registry_root(struct source *s, struct document *ret, struct sg_error *e)
{
    struct registry *g = CONTAINER_OF(s, struct registry, source);
    const struct reference *image = &g->http->request->reference;
    struct fetch f = {.max = DOCUMENT_MAX, .ask = {.accept = MANIFEST_TYPES}};

    snprintf(f.path, sizeof(f.path), "/v2/%s/manifests/%s", image->path, reference_version(image));
    snprintf(f.what, sizeof(f.what), "the manifest of %.200s", g->http->request->image);
    return fetch_document(g, &f, &image->digest, ret, e);
}

static int registry_document(struct source *s, const struct descriptor *d, enum document_kind kind,
                             struct document *ret, struct sg_error *e)
{
    struct registry *g = CONTAINER_OF(s, struct registry, source);
    bool manifest = kind == DOCUMENT_MANIFEST;
    struct fetch f = {.max = d->size < DOCUMENT_MAX ? d->size : DOCUMENT_MAX,
                      .promised = d->size < DOCUMENT_MAX,
                      .ask = {.accept = manifest ? MANIFEST_TYPES : NULL}};

    snprintf(f.path, sizeof(f.path), "/v2/%s/%s/%s", g->http->request->reference.path,
             manifest ? "manifests" : "blobs", d->digest.text);
    snprintf(f.what, sizeof(f.what), "the %s %s", manifest ? "manifest" : "config", d->digest.text);
    return fetch_document(g, &f, &d->digest, ret, e);
}

static int registry_layer(struct source *s, const struct descriptor *d, struct part *part,
                          struct report *report, struct sg_error *e)
{
    struct registry *g = CONTAINER_OF(s, struct registry, source);
    struct fetch f = {.registry = g, .part = part, .report = report};

    snprintf(f.path, sizeof(f.path), "/v2/%s/blobs/%s", g->http->request->reference.path,
             d->digest.text);
    snprintf(f.what, sizeof(f.what), "layer %s", d->digest.text);
    f.ask.begin = begin_layer;
    f.ask.take = take_layer;
    f.ask.arg = &f;
    return retry(g->http, fetch_once, &f, e);
}

int registry_init(struct registry *g, struct http *h, struct sg_error *e)
{
    const struct request *q = h->request;
    char text[REFERENCE_NAME_MAX + 16];
    bool plain = vouchers_plain(&q->vouchers, q->reference.host);
    int r = request_check_registry(q, e);

    if (r < 0)
        return r;
    *g = (struct registry){
        .source = {.root = registry_root, .document = registry_document, .layer = registry_layer},
        .http = h};
    snprintf(text, sizeof(text), "http%s://%s/v2/", plain ? "" : "s", q->reference.host);
    r = url_parse(text, &g->url, e);
    if (r == 0)
        r = url_allowed(&g->url, &q->vouchers, e);
    if (r < 0)
        return r;
    auth_init(&g->auth, h);
    return 0;
}

void registry_done(struct registry *g)
{
    url_done(&g->url);
    auth_done(&g->auth);
}
