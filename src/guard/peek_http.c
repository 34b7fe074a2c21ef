#include "guard/peek_impl.h"

struct text {
    const char *p;
    size_t len;
};

struct head {
    struct text method, target;
    bool http10;
    struct text host;
    unsigned hosts, lengths, codings;
    bool upgrade;
};

/* A host and its port, to compare Host with the target. */
struct authority {
    struct peek host;
    unsigned port; /* 0: none was given */
};

static bool text_is(struct text t, const char *s)
{
    return t.len == strlen(s) && strncasecmp(t.p, s, t.len) == 0;
}

static bool begins_with(struct text t, const char *s)
{
    return t.len >= strlen(s) && strncasecmp(t.p, s, strlen(s)) == 0;
}

static struct text after(struct text t, size_t n)
{
    return (struct text){t.p + n, t.len - n};
}

/* ---- host[:port] ----------------------------------------------------------------------------- */

static bool read_port(struct text t, unsigned *ret)
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

static bool read_authority(struct text t, struct authority *ret)
{
    const char *end;
    size_t host;

    *ret = (struct authority){0};
    if (t.len > 0 && t.p[0] == '[') {
        t = after(t, 1);
        end = memchr(t.p, ']', t.len);
        if (!end || !memchr(t.p, ':', (size_t)(end - t.p)))
            return false;
        host = (size_t)(end - t.p);
        if (peek_host(t.p, host, &ret->host) < 0)
            return false;
        t = after(t, host + 1);
    } else {
        end = memchr(t.p, ':', t.len);
        host = end ? (size_t)(end - t.p) : t.len;
        if (host == 0 || peek_host(t.p, host, &ret->host) < 0)
            return false;
        t = after(t, host);
    }
    return t.len == 0 || (t.p[0] == ':' && read_port(after(t, 1), &ret->port));
}

/* Two addresses must be the same text, because struct peek does not keep which address it was. */
static bool same_authority(const struct authority *a, struct text a_text, const struct authority *b,
                           struct text b_text, unsigned default_port)
{
    if (a->host.address || b->host.address)
        return a_text.len == b_text.len && strncasecmp(a_text.p, b_text.p, a_text.len) == 0;
    return strcmp(a->host.name, b->host.name) == 0 &&
           (a->port ? a->port : default_port) == (b->port ? b->port : default_port);
}

/* ---- lines ----------------------------------------------------------------------------------- */

/* Takes a line that ends in CRLF, with no control character in it. 0: it is not whole yet; < 0: it
 * is malformed. */
static int take_line(struct text *rest, struct text *ret)
{
    const char *end = memchr(rest->p, '\n', rest->len);

    if (!end)
        return 0;
    *ret = (struct text){rest->p, (size_t)(end - rest->p)};
    *rest = after(*rest, ret->len + 1);
    if (ret->len == 0 || ret->p[ret->len - 1] != '\r')
        return -EBADMSG;
    ret->len--;
    for (size_t i = 0; i < ret->len; i++)
        if (((uint8_t)ret->p[i] < 0x20 && ret->p[i] != '\t') || ret->p[i] == 0x7f)
            return -EBADMSG;
    return 1;
}

static bool take_word(struct text *t, struct text *ret)
{
    const char *space = memchr(t->p, ' ', t->len);

    if (!space || space == t->p)
        return false;
    *ret = (struct text){t->p, (size_t)(space - t->p)};
    *t = after(*t, ret->len + 1);
    return true;
}

/* Reads METHOD SP TARGET SP VERSION, with one space each. Bytes above 0x7f are allowed: clients
 * that do not encode what was typed have them in targets, and no reader ends a target at one. */
static bool read_request_line(struct text line, struct head *h)
{
    if (memchr(line.p, '\t', line.len) || !take_word(&line, &h->method) ||
        !take_word(&line, &h->target))
        return false;
    for (size_t i = 0; i < h->method.len; i++)
        if (!peek_is_token(h->method.p[i]))
            return false;
    h->http10 = line.len == 8 && memcmp(line.p, "HTTP/1.0", 8) == 0;
    return h->http10 || (line.len == 8 && memcmp(line.p, "HTTP/1.1", 8) == 0);
}

static struct text trimmed(struct text t)
{
    while (t.len > 0 && (t.p[0] == ' ' || t.p[0] == '\t'))
        t = after(t, 1);
    while (t.len > 0 && (t.p[t.len - 1] == ' ' || t.p[t.len - 1] == '\t'))
        t.len--;
    return t;
}

/* Reads a field. Refuses a folded line, which begins with a space and so has no name. */
static bool read_field(struct text line, struct head *h)
{
    struct text name = {line.p, 0}, value;

    while (name.len < line.len && peek_is_token(line.p[name.len]))
        name.len++;
    if (name.len == 0 || name.len == line.len || line.p[name.len] != ':')
        return false;
    value = trimmed(after(line, name.len + 1));
    if (text_is(name, "host")) {
        h->host = value;
        h->hosts++;
    }
    h->lengths += text_is(name, "content-length");
    h->codings += text_is(name, "transfer-encoding");
    h->upgrade |= text_is(name, "upgrade");
    return true;
}

/* ---- the whole head -------------------------------------------------------------------------- */

/* Whether the target, if it names a host, names the one of Host. */
static bool target_agrees(const struct head *h, const struct authority *host)
{
    struct authority named;
    struct text t = h->target;
    unsigned default_port;
    bool connect = text_is(h->method, "connect");

    if (connect) {
        default_port = 0;
    } else if (t.p[0] == '/') {
        return true;
    } else if (t.p[0] == '*') {
        return t.len == 1 && text_is(h->method, "options");
    } else if (begins_with(t, "http://")) {
        t = after(t, strlen("http://"));
        default_port = 80;
    } else if (begins_with(t, "https://")) {
        t = after(t, strlen("https://"));
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
    ret->connect = text_is(h->method, "connect");
    ret->upgrade = h->upgrade;
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
    struct text rest = {(const char *)p, len < PEEK_MAX ? len : PEEK_MAX}, line;
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
