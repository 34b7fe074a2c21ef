/* Scrubbing in one piece and in many: the same, as long as what went in, without the secret, and
 * otherwise unchanged. First byte: how it is cut; second: the secret's length. */
#include <assert.h>

#include "guard/scrub.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(strbuf_done) struct strbuf whole = {0}, cut = {0};
    struct scrub_stream st;
    struct scrub *s;
    size_t step, n, at = 0;

    if (size < 2 || size < 2u + data[1] || size > 65536)
        return 0;
    step = data[0] + 1u;
    n = data[1];
    const char *secret = (const char *)data + 2, *text = secret + n;
    size_t len = size - 2 - n;
    s = scrub_new();
    scrub_add(s, secret, n / 2);
    scrub_add(s, secret + n / 2, n - n / 2);
    strbuf_init(&whole, len);
    strbuf_init(&cut, len);
    scrub_stream_init(&st, s);
    scrub_text(s, text, len, &whole);
    for (; len - at > step; at += step)
        scrub_feed(&st, text + at, step, false, &cut);
    scrub_feed(&st, text + at, len - at, true, &cut);
    assert(st.held.len == 0 && whole.len == len && cut.len == len);
    assert(memcmp(whole.buf, cut.buf, len) == 0);
    for (size_t i = 0; i < len; i++)
        assert(whole.buf[i] == text[i] || whole.buf[i] == '*');
    /* One that has asterisks in it can come about by scrubbing. */
    if (n / 2 >= SCRUB_VALUE_MIN && !memchr(secret, '*', n / 2))
        assert(!memmem(whole.buf, len, secret, n / 2));
    scrub_stream_done(&st);
    scrub_free(s);
    return 0;
}
