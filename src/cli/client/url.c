#include "cli/client/url.h"

#define ID_MAX 128

static bool is_plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c && strchr("-._~", c));
}

static void escape(struct strbuf *out, const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (is_plain(text[i]))
            strbuf_addch(out, text[i]);
        else
            strbuf_addf(out, "%%%02X", (unsigned char)text[i]);
    }
}

void url_escape(struct strbuf *out, const char *text)
{
    escape(out, text, strlen(text));
}

void url_add_query(struct strbuf *url, const char *key, const char *value)
{
    if (!value)
        return;
    strbuf_addch(url, strchr(url->buf, '?') ? '&' : '?');
    strbuf_addstr(url, key);
    strbuf_addch(url, '=');
    url_escape(url, value);
}

static void escape_twice(struct strbuf *out, const char *text, size_t len)
{
    AUTO(strbuf_done) struct strbuf once = strbuf_upto(out->max);

    escape(&once, text, len);
    url_escape(out, once.buf);
}

void url_add_pair(struct strbuf *filter, const char *key, size_t key_len, const char *value)
{
    if (filter->len > 0)
        strbuf_addch(filter, '&');
    escape_twice(filter, key, key_len);
    strbuf_addch(filter, '=');
    escape_twice(filter, value, strlen(value));
}

bool url_is_plain_name(const char *s)
{
    size_t len = strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-");

    return len > 0 && len <= ID_MAX && s[len] == '\0' && s[0] != '-';
}
