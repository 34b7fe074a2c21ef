/* Frames of an agent that runs a cell to lines. Each is: what it is, its length, its bytes.
 * Whatever comes, every line is a JSON object in ASCII, and the last one is whole. */
#include <assert.h>
#include <jansson.h>
#include <string.h>

#include "front/interpreter/results.h"

static void on_write(void *owner, const char *p, size_t len)
{
    strbuf_add(owner, p, len);
}

/* jansson takes no NUL in a key, which JSON allows: they are given another character. */
static void hide_nuls(char *p, size_t len)
{
    for (size_t i = 0; i + 5 < len; i++) {
        if (p[i] != '\\')
            continue;
        if (memcmp(p + i, "\\u0000", 6) == 0)
            p[i + 5] = '1';
        i++;
    }
}

static void check(struct strbuf *out)
{
    char *at = out->buf, *end = out->buf + out->len, *nl;

    for (char *p = at; p < end; p++)
        assert(*p == '\n' || (*p >= 0x20 && (unsigned char)*p < 0x80));
    while ((nl = memchr(at, '\n', (size_t)(end - at)))) {
        hide_nuls(at, (size_t)(nl - at));
        json_t *v =
            json_loadb(at, (size_t)(nl - at), JSON_DECODE_INT_AS_REAL | JSON_ALLOW_NUL, NULL);
        assert(json_is_object(v) && json_is_string(json_object_get(v, "type")));
        json_decref(v);
        at = nl + 1;
    }
    assert(at == end);
}

static void frame(struct lines *l, struct results *r, uint8_t what, const void *p, size_t len)
{
    static const char starts[] = "RTJr";

    if (what % 8 < 4) {
        AUTO(strbuf_done) struct strbuf packet = {0};
        strbuf_init(&packet, 4096);
        strbuf_addch(&packet, starts[what % 8]);
        strbuf_add(&packet, p, len);
        results_packet(r, packet.buf, packet.len);
    } else if (what % 8 < 6) {
        if (!results_open(r)) /* as cell.c has it */
            lines_output(l, what % 2 ? LINES_STDERR : LINES_STDOUT, p, len);
    } else {
        results_packet(r, p, len);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    AUTO(strbuf_done) struct strbuf out = {0};
    struct lines lines = {.write = on_write, .owner = &out};
    struct results results;
    size_t n;

    strbuf_init(&out, 64u << 20);
    results_init(&results, &lines, NULL);
    for (; len >= 2; data += n, len -= n) {
        uint8_t what = data[0];
        n = data[1];
        data += 2;
        len -= 2;
        n = n < len ? n : len;
        frame(&lines, &results, what, data, n);
    }
    results_close(&results);
    lines_output_end(&lines);
    if (results.failed)
        lines_error(&lines, &results.error[ERROR_NAME], &results.error[ERROR_VALUE],
                    &results.error[ERROR_TRACEBACK]);
    lines_end(&lines, 0);
    assert(!out.truncated);
    check(&out);
    results_done(&results);
    return 0;
}
