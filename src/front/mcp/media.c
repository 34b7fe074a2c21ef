#include "front/mcp/media.h"

#include <stdint.h>
#include <string.h>

#include "lib/base/base.h"

const char *media_picture(const void *p, size_t len)
{
    static const struct {
        const char *type, *head;
        size_t head_len;
    } known[] = {
        {"image/png", "\x89PNG\r\n\x1a\n", 8},
        {"image/jpeg", "\xff\xd8\xff", 3},
        {"image/gif", "GIF87a", 6},
        {"image/gif", "GIF89a", 6},
    };
    const char *bytes = p;

    for (size_t i = 0; i < ARRAY_SIZE(known); i++)
        if (len >= known[i].head_len && memcmp(bytes, known[i].head, known[i].head_len) == 0)
            return known[i].type;
    if (len >= 12 && memcmp(bytes, "RIFF", 4) == 0 && memcmp(bytes + 8, "WEBP", 4) == 0)
        return "image/webp";
    return NULL;
}

static bool is_tail(unsigned char c)
{
    return (c & 0xc0) == 0x80;
}

/* Length of the character that begins with c. 0: no text has such a character. */
static size_t length_of(unsigned char c)
{
    if (c < 0x80)
        return c >= 0x20 || (c && strchr("\t\n\r\f\b\x1b", c)) ? 1 : 0;
    return c >= 0xc2 && c < 0xe0 ? 2 : c >= 0xe0 && c < 0xf0 ? 3 : c >= 0xf0 && c < 0xf5 ? 4 : 0;
}

bool media_is_text(const void *p, size_t len, bool part)
{
    const unsigned char *at = p, *end = at + len;

    for (int i = 0; part && i < 3 && at < end && is_tail(*at); i++)
        at++;
    while (at < end) {
        size_t n = length_of(*at);

        if (n == 0)
            return false;
        for (size_t i = 1; i < n; i++) {
            if (at + i == end)
                return part;
            if (!is_tail(at[i]))
                return false;
        }
        at += n;
    }
    return true;
}
