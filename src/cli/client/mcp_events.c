#include "cli/client/mcp_events.h"

#include <string.h>

void mcp_events_init(struct mcp_events *r)
{
    *r = (struct mcp_events){0};
    strbuf_init(&r->line, MCP_EVENT_MAX + 16);
    strbuf_init(&r->data, MCP_EVENT_MAX);
}

void mcp_events_done(struct mcp_events *r)
{
    strbuf_done(&r->line);
    strbuf_done(&r->data);
}

/* Takes a line of the stream: an empty line ends the event, "data: text" adds to its data. */
static void take_line(struct mcp_events *r, void (*fn)(void *arg, const char *data, size_t len),
                      void *arg)
{
    static const char name[] = "data";
    const char *text = r->line.buf;
    size_t len = r->line.len, n = sizeof(name) - 1;

    if (len == 0) {
        if (r->has_data)
            fn(arg, r->data.buf, r->data.len);
        strbuf_reset(&r->data);
        r->has_data = false;
        return;
    }
    if (len < n || memcmp(text, name, n) != 0 || (len > n && text[n] != ':'))
        return;
    n += len > n;
    n += len > n && text[n] == ' ';
    if (r->has_data)
        strbuf_addch(&r->data, '\n');
    strbuf_add(&r->data, text + n, len - n);
    r->has_data = true;
}

int mcp_events_feed(struct mcp_events *r, const char *p, size_t len,
                    void (*fn)(void *arg, const char *data, size_t len), void *arg)
{
    while (len > 0) {
        size_t n = 0;

        if (r->after_cr && p[0] == '\n') {
            r->after_cr = false;
            p++, len--;
            continue;
        }
        r->after_cr = false;
        while (n < len && p[n] != '\n' && p[n] != '\r')
            n++;
        strbuf_add(&r->line, p, n);
        if (n < len) {
            r->after_cr = p[n] == '\r';
            n++;
            take_line(r, fn, arg);
            if (r->data.truncated || r->line.truncated)
                return -E2BIG;
            strbuf_reset(&r->line);
        }
        p += n;
        len -= n;
    }
    return r->line.truncated ? -E2BIG : 0;
}
