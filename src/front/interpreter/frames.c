#include "front/interpreter/frames.h"

#include <string.h>

struct frame_head {
    uint32_t len;
    uint8_t sub, output;
};

void frames_init(struct frames *f, size_t max)
{
    *f = (struct frames){.last = SIZE_MAX};
    strbuf_init(&f->bytes, max);
}

void frames_done(struct frames *f)
{
    strbuf_done(&f->bytes);
    f->at = f->taken = 0;
    f->last = SIZE_MAX;
}

bool frames_empty(const struct frames *f)
{
    return f->at == f->bytes.len;
}

static struct frame_head head_at(const struct frames *f, size_t at)
{
    struct frame_head h;

    memcpy(&h, f->bytes.buf + at, sizeof(h));
    return h;
}

/* Moves the frames to the front of the buffer when more than half of it has been taken. */
static void compact(struct frames *f)
{
    if (f->at <= f->bytes.len / 2)
        return;
    strbuf_consume(&f->bytes, f->at);
    if (f->last != SIZE_MAX)
        f->last -= f->at;
    f->at = 0;
}

bool frames_add(struct frames *f, uint8_t sub, bool output, const void *p, size_t len)
{
    struct frame_head h = {.len = (uint32_t)len, .sub = sub, .output = output};

    compact(f);
    if (f->bytes.max - f->bytes.len < sizeof(h) + len)
        return false;
    struct frame_head last = f->last != SIZE_MAX ? head_at(f, f->last) : (struct frame_head){0};
    if (output && last.output && last.sub == sub) {
        last.len += (uint32_t)len;
        memcpy(f->bytes.buf + f->last, &last, sizeof(last));
    } else {
        f->last = f->bytes.len;
        strbuf_add(&f->bytes, &h, sizeof(h));
    }
    strbuf_add(&f->bytes, p, len);
    return !f->bytes.truncated;
}

bool frames_take(struct frames *f, size_t most, uint8_t *ret_sub, const void **ret_p,
                 size_t *ret_len)
{
    if (frames_empty(f)) {
        frames_done(f);
        return false;
    }
    compact(f);
    struct frame_head h = head_at(f, f->at);
    size_t left = h.len - f->taken, n = h.output && left > most ? most : left;

    *ret_sub = h.sub;
    *ret_p = f->bytes.buf + f->at + sizeof(h) + f->taken;
    *ret_len = n;
    f->taken += n;
    if (f->taken == h.len) {
        f->at += sizeof(h) + h.len;
        f->taken = 0;
        f->last = frames_empty(f) ? SIZE_MAX : f->last;
    }
    return true;
}
