#include "guard/inspect_sanitise.h"

#include "guard/counts.h"

#define PIECE (16u * 1024)

static char plain[PIECE]; /* used by the loop's thread only */

int cleaner_begin(struct cleaner *c, struct guard *g, const struct policy *p,
                  const struct http_message *m, const char **ret_why)
{
    enum body_coding coding = body_coding(m);
    struct sg_error e;

    *c = (struct cleaner){.mode = p->sanitise};
    if (c->mode == SANITISE_OFF || m->framing == FRAMING_NONE)
        return 0;
    if (!g->sanitiser && sanitiser_new(g->patterns, &g->sanitiser, &e) < 0) {
        *ret_why = "the sanitiser cannot be used";
        return 502;
    }
    c->sanitiser = g->sanitiser;
    if (coding == CODING_UNKNOWN && c->mode == SANITISE_ENFORCE) {
        *ret_why = "a body with this Content-Encoding cannot be sanitised";
        return 415;
    }
    if (coding == CODING_UNKNOWN) {
        c->gap = "a Content-Encoding that is not known";
        return 0;
    }
    if (coding == CODING_INFLATE)
        c->inflater = inflater_new();
    c->stream = sanitise_stream_new(g->sanitiser, c->mode);
    return 0;
}

void cleaner_done(struct cleaner *c)
{
    sanitise_stream_free(c->stream);
    inflater_free(c->inflater);
    *c = (struct cleaner){.mode = SANITISE_OFF};
}

bool cleaner_changes(const struct cleaner *c)
{
    return c->stream && c->mode == SANITISE_ENFORCE;
}

/* Looks at a piece of a body that goes on as it came. */
static void look(struct cleaner *c, const char *p, size_t len)
{
    AUTO(strbuf_done) struct strbuf unused = strbuf_upto(4 * PIECE + SANITISE_HOLD * 4);

    sanitise_feed(c->stream, p, len, &unused);
}

/* Report-only: unpacks one piece of a packed body to look at it; the body goes on as it is. Returns
 * how many bytes were looked at. */
static size_t look_inside(struct cleaner *c, const char *p, size_t len)
{
    size_t used = 0, n = 0;

    if (!c->inflater) {
        look(c, p, len);
        return len;
    }
    if (inflater_feed(c->inflater, p, len, &used, plain, sizeof(plain), &n) < 0 ||
        (len > 0 && used == 0 && n == 0)) {
        c->gap = "a packed body that cannot be unpacked";
        return len;
    }
    look(c, plain, n);
    return used;
}

/* Looks at what the inflater still holds after the last bytes, one piece per call. Returns whether
 * there may be more. */
static bool look_at_rest(struct cleaner *c)
{
    size_t used, n = 0;

    if (!c->inflater || c->inflater->ended || c->gap)
        return false;
    if (inflater_feed(c->inflater, NULL, 0, &used, plain, sizeof(plain), &n) == 0 && n > 0) {
        look(c, plain, n);
        return true;
    }
    if (!c->inflater->ended)
        c->gap = "a packed body that cannot be unpacked";
    return false;
}

int cleaner_feed(struct cleaner *c, const char *p, size_t len, size_t *ret_used, struct strbuf *out)
{
    size_t n = len < PIECE ? len : PIECE;
    int r;

    *ret_used = n;
    if (!cleaner_changes(c)) {
        if (c->stream && !c->gap)
            *ret_used = look_inside(c, p, n);
        strbuf_add(out, p, *ret_used);
        return 0;
    }
    if (!c->inflater) {
        sanitise_feed(c->stream, p, n, out);
        return 0;
    }
    size_t plain_len;
    r = inflater_feed(c->inflater, p, n, ret_used, plain, sizeof(plain), &plain_len);
    if (r == 0)
        sanitise_feed(c->stream, plain, plain_len, out);
    return r;
}

int cleaner_end(struct cleaner *c, struct strbuf *out)
{
    size_t used, n = 0;
    int r;

    if (!cleaner_changes(c)) {
        if (look_at_rest(c))
            return 1;
        if (c->stream) {
            AUTO(strbuf_done) struct strbuf unused = strbuf_upto(4 * PIECE);
            sanitise_flush(c->stream, &unused);
        }
        return 0;
    }
    if (c->inflater && !c->inflater->ended) {
        r = inflater_feed(c->inflater, NULL, 0, &used, plain, sizeof(plain), &n);
        if (r < 0 || (n == 0 && !c->inflater->ended))
            return -EINVAL;
        sanitise_feed(c->stream, plain, n, out);
        return 1;
    }
    sanitise_flush(c->stream, out);
    return 0;
}

void cleaner_record(const struct cleaner *c, struct sandbox *s, const char *name, const char *rule)
{
    AUTO(strbuf_done) struct strbuf text = strbuf_upto(512);
    const struct sanitise_counts *counts = c->stream ? sanitise_stream_counts(c->stream) : NULL;

    for (unsigned k = 0; counts && k < SANITISE_KINDS; k++)
        if (counts->of[k] > 0) {
            const char *kind = sanitiser_kind_name(c->sanitiser, k);

            strbuf_addf(&text, "%s%s=%llu", text.len > 0 ? " " : "", kind,
                        (unsigned long long)counts->of[k]);
            counts_sanitised(s->guard, kind, counts->of[k]);
        }
    if (c->gap)
        strbuf_addf(&text, "%s%s", text.len > 0 ? "; " : "", c->gap);
    if (text.len > 0)
        RECORD(s, .kind = "sanitise", .allowed = true, .rule = rule, .name = name,
               .detail = text.buf);
}
