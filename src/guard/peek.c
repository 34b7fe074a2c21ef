#include "guard/http_message.h"
#include "guard/peek_impl.h"

#define METHOD_MAX 32

/* ---- hosts ----------------------------------------------------------------------------------- */

static bool is_ip(const char *p, size_t len)
{
    char text[NET_ADDR_TEXT_MAX];
    struct net_addr a;

    if (len >= sizeof(text) || memchr(p, 0, len))
        return false;
    memcpy(text, p, len);
    text[len] = 0;
    return net_addr_parse(text, &a) == 0;
}

static bool consists_of(const char *p, size_t len, const char *set)
{
    for (size_t i = 0; i < len; i++)
        if (!p[i] || !strchr(set, p[i]))
            return false;
    return true;
}

/* Whether the last label is a number. No top-level domain is one, and inet_aton() takes such a text
 * for an address. */
static bool ends_in_number(const char *p, size_t len)
{
    const char *dot, *digits = "0123456789";

    if (len > 0 && p[len - 1] == '.')
        len--;
    dot = memrchr(p, '.', len);
    if (dot) {
        len -= (size_t)(dot + 1 - p);
        p = dot + 1;
    }
    if (len > 2 && p[0] == '0' && (p[1] | 0x20) == 'x') {
        digits = "0123456789abcdefABCDEF";
        p += 2;
        len -= 2;
    }
    return len > 0 && consists_of(p, len, digits);
}

int peek_host(const char *p, size_t len, struct peek *ret)
{
    if (is_ip(p, len)) {
        ret->address = true;
        return 0;
    }
    if (len <= POLICY_NAME_MAX && ends_in_number(p, len)) {
        ret->address = true;
        return consists_of(p, len, "0123456789abcdefABCDEFxX.") ? 0 : -EINVAL;
    }
    return name_normalise(p, len, ret->name);
}

/* ---- the protocol ---------------------------------------------------------------------------- */

static bool is_known_method(const char *p, size_t len)
{
    static const char known[] = "GET POST PUT HEAD DELETE OPTIONS PATCH CONNECT TRACE PRI PROPFIND "
                                "PROPPATCH MKCOL COPY MOVE LOCK UNLOCK SEARCH REPORT ";
    const char *at = memmem(known, sizeof(known) - 1, p, len);

    return at && (at == known || at[-1] == ' ') && p[len - 1] == ' ';
}

/* Whether the bytes begin an HTTP/1 request: with a well-known method, or with any word that is
 * followed by something that only HTTP has. Other protocols begin with words too: "SSH-2.0-x y",
 * "EHLO x". PEEK_MORE, PEEK_HTTP or PEEK_OTHER. */
static enum peek_what begins_like_http(const char *p, size_t len)
{
    size_t n = 0;
    const char *end;

    while (n < len && http_is_token(p[n]))
        n++;
    if (n > METHOD_MAX)
        return PEEK_OTHER;
    if (n == len)
        return PEEK_MORE;
    if (n == 0 || p[n] != ' ')
        return PEEK_OTHER;
    if (is_known_method(p, n + 1))
        return PEEK_HTTP;
    if (n + 1 == len)
        return PEEK_MORE;
    if (!memchr("/*hH", p[n + 1], 4))
        return PEEK_OTHER;
    end = memchr(p, '\n', len);
    if (!end) /* git's own protocol has a NUL, and never an end of line */
        return memchr(p, 0, len) ? PEEK_OTHER : PEEK_MORE;
    return memmem(p, (size_t)(end - p), " HTTP/", 6) ? PEEK_HTTP : PEEK_OTHER;
}

static void peek_text(const uint8_t *p, size_t len, struct peek *ret)
{
    size_t blank = 0;

    /* Servers skip empty lines before a request, so this is one, but it is not passed on. */
    while (blank < len && (p[blank] == '\r' || p[blank] == '\n'))
        blank++;
    ret->what = begins_like_http((const char *)p + blank, len - blank);
    if (ret->what != PEEK_HTTP)
        return;
    if (blank)
        ret->what = PEEK_BAD;
    else
        peek_http(p, len, ret);
}

void peek_bytes(const uint8_t *p, size_t len, struct peek *ret)
{
    *ret = (struct peek){.what = PEEK_MORE};
    if (len == 0)
        return;
    if (p[0] == 0x16)
        peek_tls(p, len, ret);
    else
        peek_text(p, len < PEEK_MAX ? len : PEEK_MAX, ret);
    if (ret->what == PEEK_MORE && len >= PEEK_MAX)
        ret->what = PEEK_BAD;
}
