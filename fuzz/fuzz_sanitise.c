/* A text fed in pieces comes out as it does whole, however it is cut; bytes are only replaced by
 * marks; what goes in as JSON comes out as JSON. The first bytes say where to cut. */
#include <assert.h>
#include <jansson.h>

#include "lib/sanitise/sanitise.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct sanitiser *plain, *custom;

static void check_pieces(struct sanitiser *s, const uint8_t *cuts, size_t n_cuts, const char *text,
                         size_t len)
{
    AUTO(strbuf_done) struct strbuf whole = {0}, pieces = {0};
    struct sanitise_counts counts = {0};
    struct sanitise_stream *st = sanitise_stream_new(s, SANITISE_ENFORCE);

    strbuf_init(&whole, 64u << 20);
    strbuf_init(&pieces, 64u << 20);
    sanitise_text(s, SANITISE_ENFORCE, text, len, &whole, &counts);
    for (size_t at = 0, i = 0; at < len; i++) {
        size_t n = n_cuts ? (size_t)cuts[i % n_cuts] + 1 : 1;
        n = n < len - at ? n : len - at;
        sanitise_feed(st, text + at, n, &pieces);
        at += n;
    }
    sanitise_flush(st, &pieces);
    assert(!sanitise_holds(st));
    assert(whole.len == pieces.len && memcmp(whole.buf, pieces.buf, whole.len) == 0);
    assert(memcmp(&counts, sanitise_stream_counts(st), sizeof(counts)) == 0);
    sanitise_stream_free(st);
}

static void check_json(const char *text, size_t len)
{
    AUTO(strbuf_done) struct strbuf out = {0};
    json_t *before = json_loadb(text, len, 0, NULL);

    if (!before)
        return;
    strbuf_init(&out, 64u << 20);
    sanitise_text(plain, SANITISE_ENFORCE, text, len, &out, NULL);
    json_t *after = json_loadb(out.buf, out.len, 0, NULL);
    assert(after);
    json_decref(before);
    json_decref(after);
}

/* Whatever is let go early, nothing crashes and nothing stays. */
static void check_flushes(const uint8_t *cuts, size_t n_cuts, const char *text, size_t len)
{
    struct sanitise_stream *st = sanitise_stream_new(custom, SANITISE_ENFORCE);
    AUTO(strbuf_done) struct strbuf out = {0};

    strbuf_init(&out, 64u << 20);
    for (size_t at = 0, i = 0; at < len; i++) {
        size_t n = n_cuts ? (size_t)cuts[i % n_cuts] + 1 : 1;
        n = n < len - at ? n : len - at;
        sanitise_feed(st, text + at, n, &out);
        if (n % 2) {
            sanitise_flush(st, &out);
            assert(!sanitise_holds(st));
        }
        at += n;
    }
    sanitise_stream_free(st);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sg_error e;

    if (!plain) {
        assert(sanitiser_new(NULL, &plain, &e) == 0);
        assert(sanitiser_new("badge = EMP-[0-9]+\nrest = user .*\n", &custom, &e) == 0);
    }
    size_t n_cuts = size < 4 ? 0 : 3;
    const char *text = (const char *)data + n_cuts;
    size_t len = size - n_cuts;
    check_pieces(plain, data, n_cuts, text, len);
    check_pieces(custom, data, n_cuts, text, len);
    check_flushes(data, n_cuts, text, len);
    check_json(text, len);
    return 0;
}
