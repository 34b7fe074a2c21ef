#include "lib/text/base64.h"

#define PIECE 768 /* bytes at a time, a multiple of 3 */

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static size_t encode_piece(char *out, const uint8_t *p, size_t len)
{
    char *start = out;

    for (; len >= 3; p += 3, len -= 3) {
        uint32_t v = (uint32_t)p[0] << 16 | (uint32_t)p[1] << 8 | p[2];
        *out++ = alphabet[v >> 18];
        *out++ = alphabet[v >> 12 & 63];
        *out++ = alphabet[v >> 6 & 63];
        *out++ = alphabet[v & 63];
    }
    if (len > 0) {
        uint32_t v = (uint32_t)p[0] << 16 | (len > 1 ? (uint32_t)p[1] << 8 : 0);
        *out++ = alphabet[v >> 18];
        *out++ = alphabet[v >> 12 & 63];
        *out++ = len > 1 ? alphabet[v >> 6 & 63] : '=';
        *out++ = '=';
    }
    return (size_t)(out - start);
}

void base64_encode(struct strbuf *out, const void *data, size_t len)
{
    const uint8_t *p = data;
    char text[PIECE / 3 * 4];

    while (len > 0) {
        size_t n = len < PIECE ? len : PIECE;
        strbuf_add(out, text, encode_piece(text, p, n));
        p += n;
        len -= n;
    }
}

static int digit(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    if (c == '+' || c == '-')
        return 62;
    return c == '/' || c == '_' ? 63 : -1;
}

/* Padding counts only where it completes a group of four. */
static size_t without_padding(const char *text, size_t len)
{
    if (len > 0 && len % 4 == 0 && text[len - 1] == '=')
        len -= text[len - 2] == '=' ? 2 : 1;
    return len;
}

int base64_decode(struct strbuf *out, const char *text, size_t len)
{
    uint8_t bytes[PIECE];
    size_t n = 0;
    uint32_t v = 0;
    unsigned bits = 0;

    len = without_padding(text, len);
    if (len % 4 == 1)
        return -EINVAL;
    for (size_t i = 0; i < len; i++) {
        int d = digit(text[i]);
        if (d < 0)
            return -EINVAL;
        v = v << 6 | (uint32_t)d;
        bits += 6;
        if (bits < 8)
            continue;
        bits -= 8;
        bytes[n++] = (uint8_t)(v >> bits);
        if (n == sizeof(bytes)) {
            strbuf_add(out, bytes, n);
            n = 0;
        }
    }
    strbuf_add(out, bytes, n);
    return 0;
}
