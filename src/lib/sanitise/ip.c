/* Finds IPv6 addresses, in full or with ::, in the ranges that are in use: global, unique local,
 * link-local, multicast, and IPv4 ones in IPv6 form. Other texts that look like one are names of
 * C++ or Rust (abc::def), slices of Python (x[100::2]), times and hardware addresses. ::1 and ::
 * belong to nobody and stay, as 127.0.0.1 and 0.0.0.0 do. */
#include <arpa/inet.h>

#include "lib/sanitise/impl.h"

static bool is_part(int c)
{
    return cc_is(c, CC_HEX) || c == ':' || c == '.';
}

static bool in_use(const struct in6_addr *a)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff}, nat64[4] = {0, 0x64, 0xff, 0x9b};
    const uint8_t *b = a->s6_addr;

    if (memcmp(b, mapped, 12) == 0)
        return b[12] != 127 && b[12] != 0;
    return (b[0] & 0xe0) == 0x20 || (b[0] & 0xfe) == 0xfc || b[0] == 0xff ||
           (b[0] == 0xfe && (b[1] & 0xc0) == 0x80) || memcmp(b, nat64, 4) == 0;
}

bool number_ipv6(const struct view *v, size_t from, size_t to, struct finds *out)
{
    size_t start = from, end = to, colons = 0;
    char text[INET6_ADDRSTRLEN + 1];
    struct in6_addr a;
    bool doubled = false;

    while (to - start < sizeof(text) && is_part(view_at(v, start - 1)))
        start--;
    while (end - start < sizeof(text) && is_part(view_at(v, end)))
        end++;
    for (size_t i = start; i < end; i++) {
        colons += v->p[i] == ':';
        doubled = doubled || (v->p[i] == ':' && view_at(v, i + 1) == ':');
    }
    if (colons < 7 && !doubled) /* a time */
        return false;
    /* A colon or dot at the end belongs to the sentence. */
    while (end > start + 2 && (v->p[end - 1] == '.' || v->p[end - 1] == ':') &&
           !(v->p[end - 1] == ':' && v->p[end - 2] == ':'))
        end--;
    size_t len = end - start;
    if (len >= sizeof(text) || !view_word_begins(v, start) || !view_word_ends(v, end))
        return false;
    memcpy(text, v->p + start, len);
    text[len] = '\0';
    if (inet_pton(AF_INET6, text, &a) != 1 || !in_use(&a) || !strpbrk(text, "0123456789"))
        return false;
    bool decimal = strspn(text, "0123456789:") == len;
    int before = view_at(v, start - 2);
    if (decimal && view_at(v, start - 1) == '[' && (cc_is(before, CC_TOKEN) || before == ')'))
        return false;
    if (view_at(v, end) == '%') /* its zone */
        end += 1 + view_span(v, end + 1, CC_ALNUM, 16);
    find_add(out, start, end, KIND_IP_ADDRESS, TAIL_NONE);
    return true;
}
