/* What a server may answer on an inspected connection. Whatever it is: what arrives in the sandbox
 * begins with whole answers, the secret is not in their heads, and nothing hangs. The first byte
 * says what was asked and how the bytes are cut. */
#include "inspect_feed.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const requests[] = {
    "GET / HTTP/1.1\r\nHost: a.test\r\n\r\nGET /2 HTTP/1.1\r\nHost: a.test\r\n\r\n",
    "HEAD / HTTP/1.1\r\nHost: a.test\r\n\r\nGET /2 HTTP/1.1\r\nHost: a.test\r\n\r\n",
    "GET / HTTP/1.0\r\nHost: a.test\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a.test\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n",
};

/* The first answer's head, and those before it. */
static void check_arrived(const char *p, size_t len, bool to_head)
{
    for (unsigned n = 0; len > 0; n++) {
        static struct http_message m;
        struct http_scan s = {0};
        const char *why;
        ssize_t head = http_scan(&s, p, len);

        assert(head > 0);
        assert(http_read_response(p, (size_t)head, to_head, &m, &why) == 0);
        assert(!memmem(p, (size_t)head, FEED_SECRET, strlen(FEED_SECRET)));
        assert(m.status != 101 || m.websocket);
        if (m.status >= 200 || m.status == 101)
            return;
        assert(n < INSPECT_INTERIM_MAX);
        p += head;
        len -= (size_t)head;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct feed_end client = {0}, server = {0};
    const char *request;

    if (size == 0 || size > 200000)
        return 0;
    request = requests[data[0] & 3];
    strbuf_init(&client.got, 1u << 24);
    strbuf_init(&server.got, 1u << 24);
    client.data = request;
    client.len = client.step = strlen(request);
    server.data = (const char *)data + 1;
    server.len = size - 1;
    server.step = data[0] & 0x80 ? size : 1 + size / 64 + (data[0] >> 2 & 0x1f);
    feed_run(&client, &server, false);
    check_arrived(client.got.buf, client.got.len, (data[0] & 3) == 1);
    strbuf_done(&client.got);
    strbuf_done(&server.got);
    return 0;
}
