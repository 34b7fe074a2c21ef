/* A chunked body, whole and cut at every byte: the same data, the same end, the same error. The
 * first byte says how the second reading is cut. */
#include <assert.h>

#include "lib/text/strbuf.h"
#include "lib/http/chunked.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Returns how many bytes were taken, or -EINVAL. */
static ssize_t decode(const char *p, size_t len, size_t step, struct strbuf *out, bool *done)
{
    struct chunked k = {0};
    size_t at = 0;

    while (at < len && !chunked_done(&k)) {
        size_t n = len - at < step ? len - at : step, piece_len;
        const char *piece;
        ssize_t used = chunked_feed(&k, p + at, n, &piece, &piece_len);

        if (used < 0)
            return used;
        assert(used > 0 && (size_t)used <= n);
        assert(piece >= p + at && piece + piece_len <= p + at + used);
        strbuf_add(out, piece, piece_len);
        at += (size_t)used;
    }
    *done = chunked_done(&k);
    return (ssize_t)at;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    AUTO(strbuf_done) struct strbuf whole = {0}, cut = {0};
    bool whole_done = false, cut_done = false;

    strbuf_init(&whole, size);
    strbuf_init(&cut, size);
    const char *p = (const char *)data + 1;
    ssize_t a = decode(p, size - 1, size, &whole, &whole_done);
    ssize_t b = decode(p, size - 1, data[0] + 1u, &cut, &cut_done);
    assert(a == b && whole_done == cut_done);
    assert(whole.len == cut.len && memcmp(whole.buf, cut.buf, whole.len) == 0);
    /* What was taken ends as a chunked body does. */
    assert(!whole_done || memcmp(p + a - 4, "\r\n\r\n", 4) == 0 || a < 5);
    return 0;
}
