#include "lib/channel/frame.h"

#include <assert.h>

#include "wire/agent.h"

/* The lengths and subs that a frame of each type may have. Any other frame is refused before
 * anybody looks at the state of its stream, so later code never sees, say, a CREDIT without its
 * number. */
static const struct {
    uint32_t min_len, max_len;
    uint8_t min_sub, max_sub;
} rules[FRAME_TYPE_MAX_] = {
    [FRAME_OPEN] = {4, FRAME_PAYLOAD_MAX, 1,
                    UINT8_MAX}, /* an unknown operation is answered by END */
    [FRAME_DATA] = {1, FRAME_PAYLOAD_MAX, CHAN_STDIN, CHAN_KERNEL},
    [FRAME_EOF] = {0, 0, 0, 0},
    [FRAME_CONTROL] = {0, FRAME_PAYLOAD_MAX, 1, CONTROL_MAX_ - 1},
    [FRAME_EVENT] = {0, FRAME_PAYLOAD_MAX, 1, EVENT_MAX_ - 1},
    [FRAME_END] = {9, FRAME_PAYLOAD_MAX, 0, 0}, /* status and an empty message */
    [FRAME_CANCEL] = {0, 0, 0, 0},
    [FRAME_CREDIT] = {4, 4, 0, 0},
};

void frame_put_u32(uint8_t *p, uint32_t v)
{
    for (unsigned i = 0; i < 4; i++)
        p[i] = (uint8_t)(v >> (8 * i));
}

static uint32_t get_le32(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static bool frame_valid(const struct frame *f)
{
    if (f->stream == 0 || f->type < FRAME_OPEN || f->type >= FRAME_TYPE_MAX_)
        return false;
    return f->len >= rules[f->type].min_len && f->len <= rules[f->type].max_len &&
           f->sub >= rules[f->type].min_sub && f->sub <= rules[f->type].max_sub;
}

void frame_encode_header(uint8_t out[FRAME_HEADER], const struct frame *f)
{
    assert(frame_valid(f));
    frame_put_u32(out, f->len);
    frame_put_u32(out + 4, f->stream);
    out[8] = f->type;
    out[9] = f->sub;
    out[10] = out[11] = 0;
}

int frame_decode(const uint8_t *buf, size_t len, struct frame *ret)
{
    if (len < FRAME_HEADER)
        return 0;

    struct frame f = {
        .len = get_le32(buf),
        .stream = get_le32(buf + 4),
        .type = buf[8],
        .sub = buf[9],
        .payload = buf + FRAME_HEADER,
    };
    if (buf[10] != 0 || buf[11] != 0 || !frame_valid(&f))
        return -EPROTO;
    if (len - FRAME_HEADER < f.len)
        return 0;
    *ret = f;
    return (int)(FRAME_HEADER + f.len);
}
