/* Frames of a client, whole and cut: the same messages, the same end, the same code; a message is
 * never longer than its limit, a text is UTF-8, and memory follows what has come. The first byte
 * says how the second reading is cut, the second how long a message may be. */
#include <assert.h>
#include <string.h>

#include "lib/text/strbuf.h"
#include "lib/http/ws_codec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_frames(const char *p, size_t len, size_t step, size_t max, struct strbuf *out)
{
    struct ws_codec c;
    struct ws_seen seen = {0};

    ws_codec_init(&c, max);
    for (size_t at = 0; at < len && seen.what != WS_BROKEN;) {
        size_t n = len - at < step ? len - at : step;
        size_t used = ws_codec_feed(&c, p + at, n, &seen);

        assert(used > 0 && used <= n);
        assert(c.cap <= 4096 || c.cap <= 2 * c.len + 4096);
        at += used;
        assert(seen.what != WS_MORE || used == n);
        if (seen.what == WS_MORE)
            continue;
        assert(seen.what != WS_MESSAGE || seen.len <= max);
        assert(seen.what != WS_MESSAGE || !seen.text || utf8_valid(seen.data, seen.len));
        assert(seen.what == WS_MESSAGE || seen.len <= WS_CONTROL_MAX);
        assert(seen.what != WS_CLOSE || seen.code == 1005 || ws_code_valid(seen.code));
        strbuf_addf(out, "%d %d %u %zu ", seen.what, seen.text, seen.code, seen.len);
        strbuf_add(out, seen.data, seen.len);
    }
    ws_codec_done(&c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    AUTO(strbuf_done) struct strbuf whole = {0}, cut = {0};
    const char *p = (const char *)data + 2;
    size_t max = (size_t)data[1] * 64;

    strbuf_init(&whole, 64 * size + 1024);
    strbuf_init(&cut, 64 * size + 1024);
    read_frames(p, size - 2, size, max, &whole);
    read_frames(p, size - 2, data[0] + 1u, max, &cut);
    assert(whole.len == cut.len && memcmp(whole.buf, cut.buf, whole.len) == 0);
    return 0;
}
