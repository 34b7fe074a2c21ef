/* What MCP's clients and servers send: messages, origins, files of any bytes, and events, which
 * must come out the same however they are cut. The first byte chooses. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "cli/client/mcp_events.h"
#include "front/mcp/media.h"
#include "front/mcp/message.h"
#include "front/mcp/origin.h"
#include "front/mcp/version.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define SEEN_MAX (1u << 20)

static void note(void *arg, const char *data, size_t len)
{
    struct strbuf *seen = arg;

    strbuf_add(seen, data, len);
    strbuf_addch(seen, '\0');
}

static void feed(const char *p, size_t len, size_t piece, struct strbuf *seen)
{
    struct mcp_events r;

    mcp_events_init(&r);
    strbuf_init(seen, SEEN_MAX);
    for (size_t at = 0; at < len; at += piece)
        if (mcp_events_feed(&r, p + at, len - at < piece ? len - at : piece, note, seen) < 0)
            break;
    mcp_events_done(&r);
}

static void fuzz_events(const char *p, size_t len)
{
    AUTO(strbuf_done) struct strbuf whole = {0}, cut = {0};

    feed(p, len, len ? len : 1, &whole);
    for (size_t piece = 1; piece <= 3; piece++) {
        feed(p, len, piece, &cut);
        assert(cut.len == whole.len && memcmp(cut.buf, whole.buf, whole.len) == 0);
        strbuf_done(&cut);
    }
}

/* An answer to what was read has its id, and is a message itself. */
static void fuzz_message(const char *p, size_t len)
{
    AUTO(strbuf_done) struct strbuf out = {0};
    json_t *v = json_loadb(p, len, 0, NULL);
    struct message m, again;
    struct sg_error e = {0};

    if (!v)
        return;
    if (message_read(v, &m, &e) < 0) {
        assert(e.code == -EINVAL && e.message[0]);
    } else if (m.kind == MESSAGE_REQUEST) {
        strbuf_init(&out, SEEN_MAX);
        message_error(&out, m.id, MESSAGE_INTERNAL, m.method, NULL);
        json_t *answer = json_loadb(out.buf, out.len, 0, NULL);
        assert(answer && message_read(answer, &again, &e) == 0);
        assert(again.kind == MESSAGE_RESPONSE && json_equal(again.id, m.id));
        json_decref(answer);
    }
    json_decref(v);
}

static void fuzz_texts(char *text, size_t len)
{
    struct settings s;
    enum mcp_version v;

    settings_init(&s);
    snprintf(s.domain, sizeof(s.domain), "box.example");
    if (origin_allowed(&s, text))
        assert(strncasecmp(text, "http", 4) == 0);
    media_picture(text, len);
    if (media_is_text(text, len, false))
        assert(media_is_text(text, len, true) && !memchr(text, '\0', len));
    if (version_read(text, &v))
        assert(strcmp(version_text(v), text) == 0);
    assert(version_has_sessions(version_settle(text)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    char *text = malloc(size);
    assert(text);
    memcpy(text, data + 1, size - 1);
    text[size - 1] = '\0';
    if (data[0] == 'e')
        fuzz_events(text, size - 1);
    else if (data[0] == 'm')
        fuzz_message(text, size - 1);
    else
        fuzz_texts(text, size - 1);
    free(text);
    return 0;
}
