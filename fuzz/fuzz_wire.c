/* Payloads: the input starts with a list of fields to read, a 0 ends it, the rest is the payload.
 * What was read without an error must give the same bytes when written again. */
#include <assert.h>

#include "lib/channel/wire.h"

static void copy_field(struct wire_reader *r, struct strbuf *s, uint8_t kind)
{
    switch (kind % 4) {
    case 0:
        wire_put_u8(s, wire_get_u8(r));
        break;
    case 1:
        wire_put_u32(s, wire_get_u32(r));
        break;
    case 2:
        wire_put_u64(s, wire_get_u64(r));
        break;
    default: {
        const char *str = wire_get_str(r, kind);
        assert(strlen(str) <= kind);
        wire_put_str(s, str);
        break;
    }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    const uint8_t *fields_end = len > 0 ? memchr(data, 0, len) : NULL;
    AUTO(strbuf_done) struct strbuf s = {0};
    struct wire_reader r;

    if (!fields_end)
        return 0;
    const uint8_t *payload = fields_end + 1;
    size_t payload_len = len - (size_t)(payload - data);

    strbuf_init(&s, 1u << 20);
    wire_reader_init(&r, payload, payload_len);
    for (const uint8_t *p = data; p < fields_end; p++)
        copy_field(&r, &s, *p);
    if (wire_done(&r))
        assert(s.len == payload_len && memcmp(s.buf, payload, s.len) == 0);
    return 0;
}
