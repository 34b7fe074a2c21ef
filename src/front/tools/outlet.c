#include "front/tools/outlet.h"

#define PIECE_MAX (64u * 1024)

void outlet_init(struct outlet *s, struct http_req *req, size_t max)
{
    *s = (struct outlet){.req = req};
    strbuf_init(&s->waiting, max);
}

void outlet_done(struct outlet *s)
{
    strbuf_done(&s->waiting);
}

/* Writes as much as the connection takes. Returns the number of bytes. */
static size_t hand_on(struct outlet *s, const char *p, size_t len)
{
    size_t at = 0;

    while (at < len && !s->choked) {
        size_t n = len - at < PIECE_MAX ? len - at : PIECE_MAX;

        s->choked = !http_write(s->req, p + at, n);
        at += n;
    }
    return at;
}

/* Makes the waiting bytes count as if they waited in the connection. */
static void count(struct outlet *s)
{
    http_keep(s->req, s->waiting.len - s->at);
}

static void finish_if_empty(struct outlet *s)
{
    count(s);
    if (s->at < s->waiting.len)
        return;
    strbuf_done(&s->waiting);
    s->at = 0;
    if (s->finish)
        http_finish(s->req);
}

bool outlet_write(struct outlet *s, const void *p, size_t len)
{
    size_t n = s->waiting.len == 0 ? hand_on(s, p, len) : 0;

    strbuf_add(&s->waiting, (const char *)p + n, len - n);
    count(s);
    if (s->waiting.truncated)
        http_abort(s->req);
    return !s->choked;
}

void outlet_finish(struct outlet *s)
{
    s->finish = true;
    finish_if_empty(s);
}

bool outlet_pump(struct outlet *s)
{
    s->choked = false;
    s->at += hand_on(s, s->waiting.buf + s->at, s->waiting.len - s->at);
    finish_if_empty(s);
    return !s->choked;
}
