/* Parts of MCP that need no server: origins, bytes of files, events in pieces. */
#include "tap.h"

#include "cli/client/mcp_events.h"
#include "front/mcp/media.h"
#include "front/mcp/origin.h"

TAP_MAIN

TEST(origins)
{
    struct settings s;

    settings_init(&s);
    snprintf(s.domain, sizeof(s.domain), "box.example:8443");
    snprintf(s.public_url, sizeof(s.public_url), "https://node1.example:3000");
    EXPECT(origin_allowed(&s, "http://localhost"));
    EXPECT(origin_allowed(&s, "https://LOCALHOST:8080"));
    EXPECT(origin_allowed(&s, "http://127.0.0.1:3000"));
    EXPECT(origin_allowed(&s, "http://[::1]:3000"));
    EXPECT(origin_allowed(&s, "https://box.example"));
    EXPECT(origin_allowed(&s, "https://api.box.example:8443"));
    EXPECT(origin_allowed(&s, "https://node1.example"));
    EXPECT(!origin_allowed(&s, "https://3000-abcdefghijklmnopqrst.box.example"));
    EXPECT(!origin_allowed(&s, "https://evil.example"));
    EXPECT(!origin_allowed(&s, "https://xbox.example"));
    EXPECT(!origin_allowed(&s, "http://localhost@evil.example"));
    EXPECT(!origin_allowed(&s, "http://[::1].evil.example"));
    EXPECT(!origin_allowed(&s, "file://localhost"));
    EXPECT(!origin_allowed(&s, "null"));
    EXPECT(!origin_allowed(&s, ""));
    EXPECT(!origin_allowed(&s, "http://"));
    s.domain[0] = s.public_url[0] = '\0';
    EXPECT(!origin_allowed(&s, "https://"));
    EXPECT(!origin_allowed(&s, "https://api."));
    EXPECT(origin_allowed(&s, "http://localhost"));
}

TEST(pictures)
{
    EXPECT_STR(media_picture("\x89PNG\r\n\x1a\nxx", 10), "image/png");
    EXPECT_STR(media_picture("\xff\xd8\xff\xe0", 4), "image/jpeg");
    EXPECT_STR(media_picture("GIF89a", 6), "image/gif");
    EXPECT_STR(media_picture("RIFFxxxxWEBPVP8 ", 16), "image/webp");
    EXPECT(!media_picture("RIFFxxxxWAVE", 12));
    EXPECT(!media_picture("\x89PNG", 4));
    EXPECT(!media_picture("", 0));
}

TEST(texts)
{
    EXPECT(media_is_text("", 0, false));
    EXPECT(media_is_text("a\tb\r\n", 5, false));
    EXPECT(media_is_text("\x1b[1mbold", 8, false));
    EXPECT(media_is_text("gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80", 15, false));
    EXPECT(!media_is_text("a\0b", 3, false));
    EXPECT(!media_is_text("\xff\xfe", 2, false));
    EXPECT(!media_is_text("a\xc3", 2, false));
    EXPECT(media_is_text("a\xc3", 2, true));
    EXPECT(media_is_text("\x82\xac euro \xe2\x82", 10, true));
    EXPECT(!media_is_text("\x82\xac", 2, false));
    EXPECT(!media_is_text("a\xc3(", 3, true));
}

/* ---- events ---------------------------------------------------------------------------------- */

static void note(void *arg, const char *data, size_t len)
{
    struct strbuf *seen = arg;

    strbuf_addch(seen, '<');
    strbuf_add(seen, data, len);
    strbuf_addch(seen, '>');
}

static void expect_events(const char *bytes, const char *expected)
{
    for (size_t piece = 1; piece <= strlen(bytes); piece++) {
        struct mcp_events r;
        struct strbuf seen;

        mcp_events_init(&r);
        strbuf_init(&seen, 4096);
        for (size_t at = 0; at < strlen(bytes); at += piece) {
            size_t left = strlen(bytes) - at;
            EXPECT(mcp_events_feed(&r, bytes + at, left < piece ? left : piece, note, &seen) == 0);
        }
        EXPECT_STR(seen.buf, expected);
        mcp_events_done(&r);
        strbuf_done(&seen);
    }
}

TEST(events_in_pieces)
{
    expect_events("data: {}\n\n", "<{}>");
    expect_events("event: message\ndata: a\n\nid: 7\ndata:b\n\n", "<a><b>");
    expect_events("data: a\r\ndata: b\r\n\r\ndata: c\r\r", "<a\nb><c>");
    expect_events(": still there\n\ndata: a\n\n", "<a>");
    expect_events("data\n\ndatax: no\n\n\n", "<>");
    expect_events("data:  two\n\n", "< two>");
    expect_events("data: unfinished\n", "");
}

TEST(an_event_that_is_too_long)
{
    char piece[65536];
    struct mcp_events r;
    struct strbuf seen;
    int result = 0;

    memset(piece, 'x', sizeof(piece));
    mcp_events_init(&r);
    strbuf_init(&seen, 16);
    EXPECT(mcp_events_feed(&r, "data: ", 6, note, &seen) == 0);
    for (size_t n = 0; n <= MCP_EVENT_MAX / sizeof(piece) + 1 && result == 0; n++)
        result = mcp_events_feed(&r, piece, sizeof(piece), note, &seen);
    EXPECT(result == -E2BIG && seen.len == 0);
    mcp_events_done(&r);
    strbuf_done(&seen);
}
