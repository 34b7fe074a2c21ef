#include "lib/channel/wire.h"

#include <assert.h>

struct wire_reader wire_reader_of(const void *data, size_t len)
{
    const uint8_t *p = data;

    return (struct wire_reader){.p = p, .end = len > 0 ? p + len : p}; /* may be NULL when empty */
}

void wire_reader_init(struct wire_reader *r, const void *data, size_t len)
{
    *r = wire_reader_of(data, len);
}

/* Takes n bytes. NULL if fewer are left; the reader is bad from then on. */
static const uint8_t *take(struct wire_reader *r, size_t n)
{
    if (r->bad || (size_t)(r->end - r->p) < n) {
        r->bad = true;
        return NULL;
    }
    const uint8_t *p = r->p;
    r->p += n;
    return p;
}

static uint64_t get_le(struct wire_reader *r, unsigned bytes)
{
    const uint8_t *p = take(r, bytes);
    uint64_t v = 0;

    for (unsigned i = 0; p && i < bytes; i++)
        v |= (uint64_t)p[i] << (8 * i);
    return v;
}

uint8_t wire_get_u8(struct wire_reader *r)
{
    return (uint8_t)get_le(r, 1);
}

uint32_t wire_get_u32(struct wire_reader *r)
{
    return (uint32_t)get_le(r, 4);
}

uint64_t wire_get_u64(struct wire_reader *r)
{
    return get_le(r, 8);
}

const char *wire_get_str(struct wire_reader *r, size_t max)
{
    size_t len = wire_get_u32(r);

    if (len > max)
        r->bad = true;
    const uint8_t *p = take(r, len + 1);
    if (p && memchr(p, '\0', len + 1) != p + len)
        r->bad = true;
    return r->bad ? "" : (const char *)p;
}

bool wire_done(const struct wire_reader *r)
{
    return !r->bad && r->p == r->end;
}

static void put_le(struct strbuf *s, uint64_t v, unsigned bytes)
{
    uint8_t out[8];

    for (unsigned i = 0; i < bytes; i++)
        out[i] = (uint8_t)(v >> (8 * i));
    strbuf_add(s, out, bytes);
}

void wire_put_u8(struct strbuf *s, uint8_t v)
{
    put_le(s, v, 1);
}

void wire_put_u32(struct strbuf *s, uint32_t v)
{
    put_le(s, v, 4);
}

void wire_put_u64(struct strbuf *s, uint64_t v)
{
    put_le(s, v, 8);
}

void wire_put_str(struct strbuf *s, const char *str)
{
    size_t len = strlen(str);

    assert(len < UINT32_MAX);
    wire_put_u32(s, (uint32_t)len);
    strbuf_add(s, str, len + 1);
}
