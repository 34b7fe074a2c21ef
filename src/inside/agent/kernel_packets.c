#include "inside/agent/kernel_packets.h"

#include <assert.h>
#include <string.h>

void kernel_packets_run(struct kernel_packets *s, uint32_t cell)
{
    assert(s->ready && !s->running);
    s->running = true;
    s->cell = cell;
}

void kernel_packets_rest(struct kernel_packets *s)
{
    assert(s->ready && !s->resting);
    s->resting = true;
}

static int check_begin(struct kernel_packets *s, const uint8_t *p, size_t len)
{
    if (s->in_result || len != 2 || !memchr("mde", p[1], 3))
        return -EPROTO;
    s->in_result = true;
    s->stray = !s->running;
    s->result = len;
    return s->stray ? PACKET_STRAY : PACKET_BEGIN;
}

static bool is_key(const uint8_t *p, size_t len)
{
    if (len == 0 || len > KERNEL_KEY_MAX)
        return false;
    for (size_t i = 0; i < len; i++)
        if (!(p[i] >= 'a' && p[i] <= 'z') && p[i] != '_')
            return false;
    return true;
}

static int check_field(struct kernel_packets *s, const uint8_t *p, size_t len)
{
    const uint8_t *end = memchr(p, '\0', len);

    if (!s->in_result || !end || !is_key(p + 1, (size_t)(end - p) - 1))
        return -EPROTO;
    s->result += len;
    if (s->result > KERNEL_RESULT_MAX)
        return -EPROTO;
    return s->stray ? PACKET_STRAY : PACKET_RESULT;
}

static int check_whole(struct kernel_packets *s, size_t len)
{
    if (len != 1)
        return -EPROTO;
    if (!s->in_result)
        return PACKET_STRAY;
    s->in_result = false;
    return s->stray ? PACKET_STRAY : PACKET_RESULT;
}

static int check_done(struct kernel_packets *s, const uint8_t *p, size_t len)
{
    if (!s->running || (len != 5 && len != 6))
        return -EPROTO;
    uint32_t cell =
        (uint32_t)p[1] | (uint32_t)p[2] << 8 | (uint32_t)p[3] << 16 | (uint32_t)p[4] << 24;
    /* a stray result may be under way, sent by a thread of an earlier cell */
    if (cell != s->cell || (s->in_result && !s->stray))
        return -EPROTO;
    s->running = false;
    return PACKET_DONE;
}

int kernel_packets_check(struct kernel_packets *s, const void *packet, size_t len)
{
    const uint8_t *p = packet;

    if (len == 0 || len > KERNEL_PACKET_MAX || (!s->ready && p[0] != 'Q'))
        return -EPROTO;
    switch (p[0]) {
    case 'Q':
        if (s->ready || len != 1)
            return -EPROTO;
        s->ready = true;
        return PACKET_READY;
    case 'R':
        return check_begin(s, p, len);
    case 'T':
    case 'J':
        return check_field(s, p, len);
    case 'r':
        return check_whole(s, len);
    case 'F':
        return check_done(s, p, len);
    case 'P':
        if (!s->resting || len != 1)
            return -EPROTO;
        s->resting = false;
        return PACKET_RESTED;
    default:
        return -EPROTO;
    }
}
