#include <ctype.h>

#include "lib/sanitise/impl.h"

int sanitiser_new(const char *custom, struct sanitiser **ret, struct sg_error *e)
{
    struct sanitiser *s;
    int r;

    if (hs_valid_platform() != HS_SUCCESS)
        return err_set(e, SG_ERR_UNSUPPORTED, -EOPNOTSUPP,
                       "sanitiser: this processor lacks SSE4.2, which vectorscan needs");
    s = NEW(struct sanitiser, .refs = 1);
    r = patterns_compile(&s->db, e);
    if (r >= 0 && hs_alloc_scratch(s->db, &s->scratch) != HS_SUCCESS)
        r = err_set(e, SG_ERR_INTERNAL, -ENOMEM, "sanitiser: no memory");
    if (r >= 0 && custom)
        r = custom_new(custom, &s->custom, e);
    if (r < 0) {
        sanitiser_free(s);
        return r;
    }
    s->own = sanitise_stream_new(s, SANITISE_ENFORCE);
    *ret = s;
    return 0;
}

void sanitiser_free(struct sanitiser *s)
{
    if (!s || --s->refs > 0)
        return;
    sanitise_stream_free(s->own);
    custom_free(s->custom);
    view_space_done(&s->space);
    free(s->finds.of);
    hs_free_scratch(s->scratch);
    hs_free_database(s->db);
    free(s);
}

const char *sanitiser_kind_name(const struct sanitiser *s, unsigned kind)
{
    return kind < KIND_CUSTOM ? builtin_name(kind) : custom_name(s->custom, kind - KIND_CUSTOM);
}

void mark_add(struct strbuf *out, const char *name)
{
    strbuf_addch(out, '[');
    for (; *name; name++)
        strbuf_addch(out, (char)toupper((unsigned char)*name));
    strbuf_addch(out, ']');
}

void sanitise_text(struct sanitiser *s, enum sanitise_mode mode, const char *text, size_t len,
                   struct strbuf *out, struct sanitise_counts *counts)
{
    stream_restart(s->own, mode);
    sanitise_feed(s->own, text, len, out);
    sanitise_flush(s->own, out);
    for (size_t i = 0; counts && i < SANITISE_KINDS; i++)
        counts->of[i] += sanitise_stream_counts(s->own)->of[i];
}
