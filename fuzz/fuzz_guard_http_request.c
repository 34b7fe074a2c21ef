/* What a sandbox may send on an inspected connection. Whatever it is: what arrives at the server
 * are whole requests of the right host, with the rule's header in each, and nothing between them.
 * The first byte says how the bytes are cut, and whether bodies are sanitised. */
#include "inspect_feed.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Returns the length of a body that is there as a whole, or -1. */
static ssize_t body_len(const struct http_message *m, const char *p, size_t len)
{
    struct body_reader r;
    size_t at = 0;

    body_reader_init(&r, m->framing, m->length);
    while (!body_reader_done(&r)) {
        ssize_t n = at < len ? body_reader_next(&r, p + at, len - at) : -1;
        if (n < 0)
            return at < len ? -2 : -1;
        at += (size_t)n + r.piece;
        body_reader_take(&r, r.piece);
    }
    return (ssize_t)at;
}

static void check_arrived(const char *p, size_t len)
{
    while (len > 0) {
        static struct http_message m;
        struct http_scan s = {0};
        const char *why;
        ssize_t head = http_scan(&s, p, len), body;

        assert(head > 0); /* a head comes in one piece, or not at all */
        assert(http_read_request(p, (size_t)head, &m, &why) == 0);
        assert(http_check_host(&m, "a.test", 80, false, &why) == 0);
        assert(m.target.p[0] == '/' || m.target.p[0] == '*');
        assert(http_text_is(http_find(&m, "x-key")->value, FEED_SECRET));
        if (m.websocket)
            return;
        body = body_len(&m, p + head, len - (size_t)head);
        assert(body != -2);
        if (body < 0)
            return;
        p += head + body;
        len -= (size_t)(head + body);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char answers[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    struct feed_end client = {0}, server = {0};

    if (size == 0 || size > 200000)
        return 0;
    strbuf_init(&client.got, 1u << 24);
    strbuf_init(&server.got, 1u << 24);
    client.data = (const char *)data + 1;
    client.len = size - 1;
    client.step = data[0] & 0x80 ? size : 1 + size / 64 + (data[0] & 0x3f);
    server.data = answers;
    server.len = sizeof(answers) - 1;
    server.step = data[0] & 0x80 ? 1 : sizeof(answers);
    feed_run(&client, &server, data[0] & 0x40);
    check_arrived(server.got.buf, server.got.len);
    assert(!memmem(client.got.buf, client.got.len, FEED_SECRET, strlen(FEED_SECRET)));
    strbuf_done(&client.got);
    strbuf_done(&server.got);
    return 0;
}
