#include "guard/http_message.h"
#include "guard/peek_impl.h"

struct head {
    struct http_text method, target;
    bool http10;
    struct http_text host;
    unsigned hosts, lengths, codings;
};

/* A host and its port, to compare Host with the target. */
struct authority {
    struct peek host;
    unsigned port; /* 0: none was given */
};

static bool begins_with(struct http_text t, const char *s)
{
    return t.len >= strlen(s) && strncasecmp(t.p, s, strlen(s)) == 0;
}

/* ---- host[:port] ----------------------------------------------------------------------------- */

static bool read_port(struct http_text t, unsigned *ret)
{
    *ret = 0;
    if (t.len < 1 || t.len > 5)
        return false;
    for (size_t i = 0; i < t.len; i++) {
        if (t.p[i] < '0' || t.p[i] > '9')
            return false;
        *ret = *ret * 10 + (unsigned)(t.p[i] - '0');
    }
    return *ret >= 1 && *ret <= 65535;
}

static bool read_authority(struct http_text t, struct authority *ret)
{
    const char *end;
    size_t host;

    *ret = (struct authority){0};
    if (t.len > 0 && t.p[0] == '[') {
        t = http_text_skip(t, 1);
        end = memchr(t.p, ']', t.len);
        if (!end || !memchr(t.p, ':', (size_t)(end - t.p)))
            return false;
        host = (size_t)(end - t.p);
        if (peek_host(t.p, host, &ret->host) < 0)
            return false;
        t = http_text_skip(t, host + 1);
    } else {
        end = memchr(t.p, ':', t.len);
        host = end ? (size_t)(end - t.p) : t.len;
        if (host == 0 || peek_host(t.p, host, &ret->host) < 0)
            return false;
        t = http_text_skip(t, host);
    }
    return t.len == 0 || (t.p[0] == ':' && read_port(http_text_skip(t, 1), &ret->port));
}

/* Two addresses must be the same text, because struct peek does not keep which address it was. */
static bool same_authority(const struct authority *a, struct http_text a_text,
                           const struct authority *b, struct http_text b_text,
                           unsigned default_port)
{
    if (a->host.address || b->host.address)
        return a_text.len == b_text.len && strncasecmp(a_text.p, b_text.p, a_text.len) == 0;
    return strcmp(a->host.name, b->host.name) == 0 &&
           (a->port ? a->port : default_port) == (b->port ? b->port : default_port);
}

/* ---- lines ----------------------------------------------------------------------------------- */

/* Takes a line that ends in CRLF, with no control character in it. 0: it is not whole yet; < 0: it
 * is malformed. */
static int take_line(struct http_text *rest, struct http_text *ret)
{
    const char *end = memchr(rest->p, '\n', rest->len);

    if (!end)
        return 0;
    *ret = (struct http_text){rest->p, (size_t)(end - rest->p)};
    *rest = http_text_skip(*rest, ret->len + 1);
    if (ret->len == 0 || ret->p[ret->len - 1] != '\r')
        return -EBADMSG;
    ret->len--;
    for (size_t i = 0; i < ret->len; i++)
        if (((uint8_t)ret->p[i] < 0x20 && ret->p[i] != '\t') || ret->p[i] == 0x7f)
            return -EBADMSG;
    return 1;
}

static bool take_word(struct http_text *t, struct http_text *ret)
{
    const char *space = memchr(t->p, ' ', t->len);

    if (!space || space == t->p)
        return false;
    *ret = (struct http_text){t->p, (size_t)(space - t->p)};
    *t = http_text_skip(*t, ret->len + 1);
    return true;
}

/* Reads METHOD SP TARGET SP VERSION, with one space each. Bytes above 0x7f are allowed: clients
 * that do not encode what was typed have them in targets, and no reader ends a target at one. */
static bool read_request_line(struct http_text line, struct head *h)
{
    if (memchr(line.p, '\t', line.len) || !take_word(&line, &h->method) ||
        !take_word(&line, &h->target))
        return false;
    for (size_t i = 0; i < h->method.len; i++)
        if (!http_is_token(h->method.p[i]))
            return false;
    h->http10 = line.len == 8 && memcmp(line.p, "HTTP/1.0", 8) == 0;
    return h->http10 || (line.len == 8 && memcmp(line.p, "HTTP/1.1", 8) == 0);
}

/* Reads a field. Refuses a folded line, which begins with a space and so has no name. */
static bool read_field(struct http_text line, struct head *h)
{
    struct http_text name = {line.p, 0}, value;

    while (name.len < line.len && http_is_token(line.p[name.len]))
        name.len++;
    if (name.len == 0 || name.len == line.len || line.p[name.len] != ':')
        return false;
    value = http_text_trim(http_text_skip(line, name.len + 1));
    if (http_text_is(name, "host")) {
        h->host = value;
        h->hosts++;
    }
    h->lengths += http_text_is(name, "content-length");
    h->codings += http_text_is(name, "transfer-encoding");
    return true;
}

/* ---- the whole head -------------------------------------------------------------------------- */

/* Whether the target, if it names a host, names the one of Host. */
static bool target_agrees(const struct head *h, const struct authority *host)
{
    struct authority named;
    struct http_text t = h->target;
    unsigned default_port;
    bool connect = http_text_is(h->method, "connect");

    if (connect) {
        default_port = 0;
    } else if (t.p[0] == '/') {
        return true;
    } else if (t.p[0] == '*') {
        return t.len == 1 && http_text_is(h->method, "options");
    } else if (begins_with(t, "http://")) {
        t = http_text_skip(t, strlen("http://"));
        default_port = 80;
    } else if (begins_with(t, "https://")) {
        t = http_text_skip(t, strlen("https://"));
        default_port = 443;
    } else {
        return false;
    }
    for (size_t i = 0; i < t.len && !connect; i++)
        if (t.p[i] == '/' || t.p[i] == '?')
            t.len = i;
    return read_authority(t, &named) && (!connect || named.port) &&
           same_authority(&named, t, host, h->host, default_port);
}

static bool judge_head(const struct head *h, struct peek *ret)
{
    struct authority host;

    if (h->hosts != 1 || h->lengths + h->codings > 1 || (h->codings && h->http10) ||
        !read_authority(h->host, &host) || !target_agrees(h, &host))
        return false;
    *ret = host.host;
    ret->what = PEEK_HTTP;
    ret->connect = http_text_is(h->method, "connect");
    return true;
}

/* Whether the bytes are the preface of HTTP/2. It looks like a request, so that readers of HTTP/1
 * stumble over it. */
static enum peek_what peek_preface(const uint8_t *p, size_t len)
{
    static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    size_t n = len < sizeof(preface) - 1 ? len : sizeof(preface) - 1;

    if (memcmp(p, preface, n) != 0)
        return PEEK_BAD;
    return n == sizeof(preface) - 1 ? PEEK_HTTP : PEEK_MORE;
}

void peek_http(const uint8_t *p, size_t len, struct peek *ret)
{
    struct http_text rest = {(const char *)p, len < PEEK_MAX ? len : PEEK_MAX}, line;
    struct head h = {0};
    int r;

    *ret = (struct peek){.what = PEEK_MORE};
    if (len >= 4 && memcmp(p, "PRI ", 4) == 0) {
        ret->what = peek_preface(p, len);
        ret->h2c = ret->what == PEEK_HTTP;
        return;
    }
    r = take_line(&rest, &line);
    if (r > 0 && !read_request_line(line, &h))
        r = -EBADMSG;
    while (r > 0) {
        r = take_line(&rest, &line);
        if (r > 0 && line.len == 0)
            break;
        if (r > 0 && !read_field(line, &h))
            r = -EBADMSG;
    }
    if (r < 0 || (r > 0 && !judge_head(&h, ret)))
        *ret = (struct peek){.what = PEEK_BAD};
    if (r == 0 && len >= PEEK_MAX)
        ret->what = PEEK_BAD;
}
