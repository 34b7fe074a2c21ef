#include "guard/http_body.h"

/* ---- reading --------------------------------------------------------------------------------- */

void body_reader_init(struct body_reader *r, enum http_framing framing, uint64_t length)
{
    *r = (struct body_reader){.framing = framing, .left = length};
}

ssize_t body_reader_next(struct body_reader *r, const char *p, size_t len)
{
    const char *data;
    ssize_t used;

    switch (r->framing) {
    case FRAMING_NONE:
        return 0;
    case FRAMING_CLOSE:
        r->piece = len;
        return 0;
    case FRAMING_LENGTH:
        r->piece = len < r->left ? len : (size_t)r->left;
        r->left -= r->piece;
        return 0;
    case FRAMING_CHUNKED:
        used = chunked_feed(&r->chunked, p, len, &data, &r->piece);
        return used < 0 ? used : used - (ssize_t)r->piece;
    }
    return -EINVAL;
}

void body_reader_take(struct body_reader *r, size_t n)
{
    r->piece -= n;
}

bool body_reader_done(const struct body_reader *r)
{
    switch (r->framing) {
    case FRAMING_NONE:
        return true;
    case FRAMING_CLOSE:
        return false;
    case FRAMING_LENGTH:
        return r->left == 0 && r->piece == 0;
    case FRAMING_CHUNKED:
        return chunked_done(&r->chunked) && r->piece == 0;
    }
    return true;
}

bool body_reader_ends_with_connection(const struct body_reader *r)
{
    return r->framing == FRAMING_CLOSE && r->piece == 0;
}

/* ---- writing --------------------------------------------------------------------------------- */

void body_write_chunk(struct strbuf *out, const char *p, size_t len)
{
    if (len == 0)
        return;
    strbuf_addf(out, "%zx\r\n", len);
    strbuf_add(out, p, len);
    strbuf_add(out, "\r\n", 2);
}

void body_write_end(struct strbuf *out)
{
    strbuf_addstr(out, "0\r\n\r\n");
}

/* ---- gzip and deflate ------------------------------------------------------------------------ */

enum body_coding body_coding(const struct http_message *m)
{
    enum body_coding coding = CODING_NONE;
    unsigned n = 0;

    for (size_t i = 0; i < m->n_fields; i++) {
        const struct http_field *f = &m->fields[i];

        if (!http_text_is(f->name, "content-encoding"))
            continue;
        n++;
        if (http_text_is(f->value, "gzip") || http_text_is(f->value, "x-gzip") ||
            http_text_is(f->value, "deflate"))
            coding = CODING_INFLATE;
        else if (f->value.len > 0 && !http_text_is(f->value, "identity"))
            coding = CODING_UNKNOWN;
    }
    return n > 1 ? CODING_UNKNOWN : coding;
}

struct inflater *inflater_new(void)
{
    struct inflater *f = xcalloc(1, sizeof(*f));

    if (inflateInit2(&f->z, 15 + 32) != Z_OK) /* gzip or zlib, whatever the header called it */
        abort();                              /* out of memory */
    return f;
}

void inflater_free(struct inflater *f)
{
    if (!f)
        return;
    inflateEnd(&f->z);
    free(f);
}

int inflater_feed(struct inflater *f, const char *p, size_t len, size_t *ret_used, char *out,
                  size_t cap, size_t *ret_len)
{
    int r;

    *ret_used = *ret_len = 0;
    if (f->ended && len > 0) { /* one more gzip member follows */
        inflateReset(&f->z);
        f->ended = false;
    }
    if (f->ended)
        return 0;
    f->z.next_in = (Bytef *)(uintptr_t)p; /* zlib only reads from it */
    f->z.avail_in = (uInt)len;
    f->z.next_out = (Bytef *)out;
    f->z.avail_out = (uInt)cap;
    r = inflate(&f->z, Z_NO_FLUSH);
    if (r != Z_OK && r != Z_STREAM_END && r != Z_BUF_ERROR)
        return -EINVAL;
    *ret_used = len - f->z.avail_in;
    *ret_len = cap - f->z.avail_out;
    f->ended = r == Z_STREAM_END;
    f->in += *ret_used;
    f->out += *ret_len;
    return f->out > INFLATE_SMALL && f->out > INFLATE_RATIO * f->in ? -EFBIG : 0;
}
