/* What the prompt reads from a server and shows on a terminal: events cut into pieces, text with
 * escape sequences, tracebacks, PNG pictures; and code that somebody types. The first byte
 * chooses. */
#include <assert.h>
#include <stdint.h>

#include "cli/client/repl_event.h"
#include "cli/client/repl_filter.h"
#include "cli/client/repl_image.h"
#include "cli/client/repl_sixel.h"
#include "cli/client/repl_traceback.h"
#include "cli/client/repl_whole.h"

#define OUT_MAX (64u * 1024 * 1024)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int look(void *arg, const struct repl_event *event, struct sg_error *e)
{
    static const char *const keys[] = {"text", "png", "traceback", "name"};
    size_t *n = arg;

    (void)e;
    (*n)++;
    assert(event->kind < REPL_EVENT_MAX_ && event->len > 0);
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
        struct repl_text t = repl_event_text(event, keys[i]);

        assert(t.text && t.text[t.len] == '\0');
    }
    return 0;
}

/* However the bytes are cut, the same events come out. */
static void fuzz_events(const char *text, size_t len)
{
    size_t seen[2] = {0};
    int result[2];

    for (size_t i = 0; i < 2; i++) {
        size_t piece = i == 0 ? len : 3;
        struct strbuf events;

        result[i] = 0;
        strbuf_init(&events, REPL_LINE_MAX);
        for (size_t at = 0; result[i] == 0 && at < len; at += piece)
            result[i] = repl_events_feed(&events, text + at, len - at < piece ? len - at : piece,
                                         look, &seen[i], NULL);
        strbuf_done(&events);
    }
    assert(result[0] == result[1] && seen[0] == seen[1]);
}

/* What is left of a text is left of itself too, and asks the terminal nothing. */
static void fuzz_filter(const char *text, size_t len)
{
    struct repl_filter once = {0}, twice = {0};
    AUTO(strbuf_done) struct strbuf out = {0}, again = {0};

    strbuf_init(&out, OUT_MAX);
    strbuf_init(&again, OUT_MAX);
    repl_filter(&once, &out, text, len);
    assert(out.len <= len + 1 && !strstr(out.buf, "\033]") && !strstr(out.buf, "\033P") &&
           !strstr(out.buf, "\033[c"));
    repl_filter(&twice, &again, out.buf, out.len);
    assert(again.len == out.len && memcmp(again.buf, out.buf, out.len) == 0);
}

static void fuzz_traceback(const char *text)
{
    AUTO(strbuf_done) struct strbuf out = {0};

    strbuf_init(&out, OUT_MAX);
    repl_traceback(&out, text, "Error", true);
    repl_traceback(&out, text, "", false);
}

static void fuzz_code(const char *text)
{
    static const char *const languages[] = {"python", "javascript", "r", "java", "bash", "other"};

    for (size_t i = 0; i < ARRAY_SIZE(languages); i++) {
        repl_is_whole(languages[i], text, false);
        repl_is_whole(languages[i], text, true);
        assert(repl_indent(languages[i], text) <= 64);
    }
}

static void fuzz_picture(const char *data, size_t len)
{
    AUTO(strbuf_done) struct strbuf out = {0};
    struct repl_pixels pixels;

    strbuf_init(&out, OUT_MAX);
    if (repl_kitty_encode(&out, data, len) == 0)
        assert(repl_iterm_encode(&out, data, len) == 0);
    repl_graphics_has_sixel(data);
    if (repl_png_decode(data, len, &pixels) < 0)
        return;
    repl_pixels_fit(&pixels, 64);
    if (pixels.height <= 1024)
        repl_sixel_encode(&out, &pixels);
    repl_pixels_done(&pixels);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0 || size > 1 << 20)
        return 0;
    AUTO(free_p) char *text = xcalloc(1, size);
    memcpy(text, data + 1, size - 1);
    switch (data[0] % 5) {
    case 0:
        fuzz_events(text, size - 1);
        break;
    case 1:
        fuzz_filter(text, size - 1);
        break;
    case 2:
        fuzz_traceback(text);
        break;
    case 3:
        fuzz_code(text);
        break;
    default:
        fuzz_picture(text, size - 1);
        break;
    }
    return 0;
}
