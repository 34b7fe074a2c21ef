/* Request and result payloads: integers and strings in a fixed order.
 *
 * A reader never reads past its end: the first short or oversized field sets `bad`, after which
 * every read gives 0 or "" and wire_done() is false. Strings are u32 length + bytes + a NUL that
 * the length does not count, and hold no other NUL, so they can be used in place. */
#pragma once

#include "lib/text/strbuf.h"

struct wire_reader {
    const uint8_t *p, *end;
    bool bad;
};

struct wire_reader wire_reader_of(const void *data, size_t len);
void wire_reader_init(struct wire_reader *r, const void *data, size_t len);
uint8_t wire_get_u8(struct wire_reader *r);
uint32_t wire_get_u32(struct wire_reader *r);
uint64_t wire_get_u64(struct wire_reader *r);
/* Reads a string of at most `max` bytes without a NUL inside; any other sets bad. Never NULL. */
const char *wire_get_str(struct wire_reader *r, size_t max);
/* True if everything was read, nothing was bad and nothing is left over. */
bool wire_done(const struct wire_reader *r);

void wire_put_u8(struct strbuf *s, uint8_t v);
void wire_put_u32(struct strbuf *s, uint32_t v);
void wire_put_u64(struct strbuf *s, uint64_t v);
void wire_put_str(struct strbuf *s, const char *str);
