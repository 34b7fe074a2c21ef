#include "lib/text/utf8.h"

#include <string.h>

#define HIGH_BITS 0x8080808080808080ull

/* Skips ASCII 32 bytes at a time, since most text is ASCII. */
static const unsigned char *skip_ascii(const unsigned char *p, const unsigned char *end)
{
    uint64_t w[4];

    while (end - p >= (ptrdiff_t)sizeof(w)) {
        memcpy(w, p, sizeof(w));
        if ((w[0] | w[1] | w[2] | w[3]) & HIGH_BITS)
            break;
        p += sizeof(w);
    }
    while (p < end && *p < 0x80)
        p++;
    return p;
}

static bool begin_character(struct utf8_state *s, unsigned char lead)
{
    s->lo = 0x80;
    s->hi = 0xbf;
    if (lead >= 0xc2 && lead <= 0xdf) {
        s->need = 1;
    } else if ((lead & 0xf0) == 0xe0) {
        s->need = 2;
        s->lo = lead == 0xe0 ? 0xa0 : 0x80;
        s->hi = lead == 0xed ? 0x9f : 0xbf;
    } else if (lead >= 0xf0 && lead <= 0xf4) {
        s->need = 3;
        s->lo = lead == 0xf0 ? 0x90 : 0x80;
        s->hi = lead == 0xf4 ? 0x8f : 0xbf;
    } else {
        return false;
    }
    return true;
}

bool utf8_feed(struct utf8_state *s, const void *data, size_t len)
{
    const unsigned char *p = data, *end = p + len;

    while (p < end) {
        if (s->need == 0) {
            p = skip_ascii(p, end);
            if (p == end)
                break;
            if (!begin_character(s, *p++))
                return false;
            continue;
        }
        if (*p < s->lo || *p > s->hi)
            return false;
        s->lo = 0x80;
        s->hi = 0xbf;
        s->need--;
        p++;
    }
    return true;
}

bool utf8_valid(const void *data, size_t len)
{
    struct utf8_state s = {0};

    return utf8_feed(&s, data, len) && utf8_whole(&s);
}
