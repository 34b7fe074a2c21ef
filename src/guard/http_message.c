#include "guard/http_message.h"

#include <strings.h>

#include "guard/policy.h"

bool http_text_is(struct http_text t, const char *s)
{
    return t.len == strlen(s) && strncasecmp(t.p, s, t.len) == 0;
}

static bool begins(struct http_text t, const char *s)
{
    size_t n = strlen(s);

    return t.len >= n && memcmp(t.p, s, n) == 0;
}

struct http_text http_text_skip(struct http_text t, size_t n)
{
    return (struct http_text){t.p + n, t.len - n};
}

struct http_text http_text_trim(struct http_text t)
{
    while (t.len > 0 && (t.p[0] == ' ' || t.p[0] == '\t'))
        t = http_text_skip(t, 1);
    while (t.len > 0 && (t.p[t.len - 1] == ' ' || t.p[t.len - 1] == '\t'))
        t.len--;
    return t;
}

/* Cuts off and returns the text before the first c, and drops that c; all of the text if there is
 * no c. */
static struct http_text cut(struct http_text *rest, char c)
{
    const char *end = rest->len > 0 ? memchr(rest->p, c, rest->len) : NULL;
    struct http_text t = *rest;

    if (!end) {
        *rest = http_text_skip(t, t.len);
        return t;
    }
    t.len = (size_t)(end - t.p);
    *rest = http_text_skip(*rest, t.len + 1);
    return t;
}

static bool is_token(struct http_text t)
{
    for (size_t i = 0; i < t.len; i++)
        if (!http_is_token(t.p[i]))
            return false;
    return t.len > 0;
}

bool http_is_value(const char *p, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)p[i];
        if ((c < 0x20 && c != '\t') || c == 0x7f)
            return false;
    }
    return true;
}

/* ---- the end of a head ----------------------------------------------------------------------- */

ssize_t http_scan(struct http_scan *s, const char *p, size_t len)
{
    for (; s->at < len; s->at++) {
        unsigned char c = (unsigned char)p[s->at];

        if (s->at == HTTP_MESSAGE_MAX)
            return -E2BIG;
        if (s->at > 0 && (c == '\n') != (p[s->at - 1] == '\r'))
            return -EINVAL;
        if (c == '\n') {
            bool empty = s->at - s->line <= 1;

            if (s->at == 0 || (empty && s->lines == 0))
                return -EINVAL;
            if (empty)
                return (ssize_t)++s->at;
            if (++s->lines > HTTP_MESSAGE_FIELDS + 1)
                return -E2BIG;
            s->line = s->at + 1;
        } else if ((c < 0x20 && c != '\t' && c != '\r') || c == 0x7f) {
            return -EINVAL;
        }
    }
    return s->at < HTTP_MESSAGE_MAX ? 0 : -E2BIG;
}

/* ---- fields ---------------------------------------------------------------------------------- */

/* The next line, without its end; the head is whole, so there is one. */
static struct http_text next_line(struct http_text *rest)
{
    struct http_text line = cut(rest, '\n');

    if (line.len > 0)
        line.len--;
    return line;
}

static const char *read_fields(struct http_message *m, struct http_text rest)
{
    for (;;) {
        struct http_text value = next_line(&rest);
        struct http_text name;

        if (value.len == 0)
            return NULL;
        if (!memchr(value.p, ':', value.len))
            return "a header without a colon";
        name = cut(&value, ':');
        if (!is_token(name))
            return "the name of a header is not valid";
        if (m->n_fields == HTTP_MESSAGE_FIELDS)
            return "too many headers";
        m->fields[m->n_fields++] = (struct http_field){name, http_text_trim(value)};
    }
}

const struct http_field *http_find(const struct http_message *m, const char *name)
{
    for (size_t i = 0; i < m->n_fields; i++)
        if (http_text_is(m->fields[i].name, name))
            return &m->fields[i];
    return NULL;
}

static unsigned count_fields(const struct http_message *m, const char *name)
{
    unsigned n = 0;

    for (size_t i = 0; i < m->n_fields; i++)
        n += http_text_is(m->fields[i].name, name);
    return n;
}

/* Whether a comma-separated list, perhaps spread over several fields, has a word. */
static bool lists(const struct http_message *m, const char *name, struct http_text word)
{
    for (size_t i = 0; i < m->n_fields; i++) {
        struct http_text rest = m->fields[i].value;

        if (!http_text_is(m->fields[i].name, name))
            continue;
        while (rest.len > 0) {
            struct http_text t = http_text_trim(cut(&rest, ','));
            if (t.len == word.len && strncasecmp(t.p, word.p, t.len) == 0)
                return true;
        }
    }
    return false;
}

static bool lists_word(const struct http_message *m, const char *name, const char *word)
{
    return lists(m, name, (struct http_text){word, strlen(word)});
}

static bool read_length(struct http_text t, uint64_t *ret)
{
    uint64_t v = 0;

    if (t.len == 0 || t.len > 18)
        return false;
    for (size_t i = 0; i < t.len; i++) {
        if (t.p[i] < '0' || t.p[i] > '9')
            return false;
        v = v * 10 + (uint64_t)(t.p[i] - '0');
    }
    *ret = v;
    return true;
}

/* Reads from the fields where the body ends; `otherwise` counts if they do not say. Returns what is
 * wrong, or NULL. */
static const char *read_framing(struct http_message *m, enum http_framing otherwise)
{
    const struct http_field *coding = http_find(m, "transfer-encoding");
    const struct http_field *length = http_find(m, "content-length");

    m->framing = otherwise;
    if (count_fields(m, "content-length") > 1)
        return "more than one Content-Length";
    if (coding && length)
        return "both Content-Length and Transfer-Encoding";
    if (coding && (count_fields(m, "transfer-encoding") > 1 || m->http10 ||
                   !http_text_is(coding->value, "chunked")))
        return "a Transfer-Encoding that is not exactly chunked";
    if (length && !read_length(length->value, &m->length))
        return "the Content-Length is not valid";
    if (coding)
        m->framing = FRAMING_CHUNKED;
    if (length)
        m->framing = FRAMING_LENGTH;
    return NULL;
}

static bool read_version(struct http_text t, struct http_message *m)
{
    m->http10 = begins(t, "HTTP/1.0");
    return t.len == 8 && (m->http10 || begins(t, "HTTP/1.1"));
}

static bool names_websocket(const struct http_message *m)
{
    const struct http_field *upgrade = http_find(m, "upgrade");

    return upgrade && !m->http10 && lists_word(m, "connection", "upgrade") &&
           http_text_is(upgrade->value, "websocket") && count_fields(m, "upgrade") == 1;
}

/* ---- requests -------------------------------------------------------------------------------- */

static bool is_target(struct http_text t)
{
    for (size_t i = 0; i < t.len; i++) {
        unsigned char c = (unsigned char)t.p[i];
        if (c <= 0x20 || c == 0x7f || c == '#')
            return false;
    }
    return t.len > 0;
}

static int read_request_line(struct http_text line, struct http_message *m, const char **ret_why)
{
    m->method = cut(&line, ' ');
    m->target = cut(&line, ' ');
    *ret_why = "the first line is not an HTTP request";
    if (!is_token(m->method) || !is_target(m->target) || line.len == 0)
        return 400;
    *ret_why = "only HTTP/1.1 is supported";
    return read_version(line, m) ? 0 : 505;
}

int http_read_request(const char *p, size_t len, struct http_message *ret, const char **ret_why)
{
    struct http_text rest = {p, len};
    const struct http_field *expect;
    int r;

    *ret = (struct http_message){0};
    r = read_request_line(next_line(&rest), ret, ret_why);
    if (r)
        return r;
    *ret_why = read_fields(ret, rest);
    if (!*ret_why)
        *ret_why = read_framing(ret, FRAMING_NONE);
    if (*ret_why)
        return 400;
    if (http_text_is(ret->method, "CONNECT") || http_text_is(ret->method, "TRACE")) {
        *ret_why = "CONNECT and TRACE are not allowed";
        return 405;
    }
    expect = http_find(ret, "expect");
    ret->expect = expect && !ret->http10 && http_text_is(expect->value, "100-continue");
    if (expect && !ret->expect) {
        *ret_why = "only 100-continue can be expected";
        return 417;
    }
    ret->close = ret->http10 || lists_word(ret, "connection", "close");
    ret->websocket =
        names_websocket(ret) && http_text_is(ret->method, "GET") && ret->framing == FRAMING_NONE;
    return 0;
}

/* Whether t is NAME or NAME:PORT of the connection. */
static bool is_authority(struct http_text t, const char *name, uint16_t port, bool *ret_port)
{
    struct http_text host = cut(&t, ':');
    char normal[POLICY_NAME_MAX + 1];
    uint64_t number;

    *ret_port = host.p + host.len < t.p;
    if (*ret_port && (!read_length(t, &number) || number != port))
        return false;
    return name_normalise(host.p, host.len, normal) == 0 && strcmp(normal, name) == 0;
}

int http_check_host(struct http_message *m, const char *name, uint16_t port, bool tls,
                    const char **ret_why)
{
    const struct http_field *host = http_find(m, "host");
    const char *scheme = tls ? "https://" : "http://";
    struct http_text authority;
    bool has_port;

    *ret_why = "one Host is needed";
    if (!host || count_fields(m, "host") != 1)
        return 400;
    *ret_why = "Host is not the name of the connection";
    if (!is_authority(host->value, name, port, &m->host_port))
        return 421;
    if (m->target.p[0] == '/' ||
        (http_text_is(m->target, "*") && http_text_is(m->method, "OPTIONS")))
        return 0;
    *ret_why = "the target is neither a path nor one of this connection";
    if (m->target.len <= strlen(scheme) || strncasecmp(m->target.p, scheme, strlen(scheme)) != 0)
        return 400;
    authority = http_text_skip(m->target, strlen(scheme));
    size_t n = 0;
    while (n < authority.len && authority.p[n] != '/' && authority.p[n] != '?')
        n++;
    m->target = http_text_skip(authority, n);
    authority.len = n;
    return is_authority(authority, name, port, &has_port) ? 0 : 421;
}

/* ---- answers --------------------------------------------------------------------------------- */

static bool read_status_line(struct http_text line, struct http_message *m)
{
    struct http_text version = cut(&line, ' ');
    struct http_text status = cut(&line, ' ');
    uint64_t number;

    m->reason = line;
    if (!read_version(version, m) || status.len != 3 || !read_length(status, &number))
        return false;
    m->status = (unsigned)number;
    return m->status >= 100 && m->status <= 599;
}

int http_read_response(const char *p, size_t len, bool to_head, struct http_message *ret,
                       const char **ret_why)
{
    struct http_text rest = {p, len};

    *ret = (struct http_message){0};
    *ret_why = "the first line is not an HTTP response";
    if (!read_status_line(next_line(&rest), ret))
        return -EPROTO;
    *ret_why = read_fields(ret, rest);
    if (!*ret_why)
        *ret_why = read_framing(ret, FRAMING_CLOSE);
    if (*ret_why)
        return -EPROTO;
    if (to_head || ret->status < 200 || ret->status == 204 || ret->status == 304)
        ret->framing = FRAMING_NONE;
    ret->close = ret->framing == FRAMING_CLOSE || lists_word(ret, "connection", "close") ||
                 (ret->http10 && !lists_word(ret, "connection", "keep-alive"));
    ret->websocket = ret->status == 101 && names_websocket(ret);
    return 0;
}

/* ---- which fields pass ----------------------------------------------------------------------- */

bool http_is_own(const char *name)
{
    static const char *const own[] = {"connection",
                                      "keep-alive",
                                      "proxy-connection",
                                      "proxy-authenticate",
                                      "proxy-authorization",
                                      "te",
                                      "trailer",
                                      "transfer-encoding",
                                      "upgrade",
                                      "content-length",
                                      "host",
                                      "expect",
                                      "http2-settings"};

    for (size_t i = 0; i < ARRAY_SIZE(own); i++)
        if (strcasecmp(own[i], name) == 0)
            return true;
    return false;
}

bool http_passes(const struct http_message *m, const struct http_field *f)
{
    char name[24];

    if (f->name.len < sizeof(name)) {
        memcpy(name, f->name.p, f->name.len);
        name[f->name.len] = '\0';
        if (http_is_own(name))
            return false;
    }
    return !lists(m, "connection", f->name);
}

void http_write_field(struct strbuf *out, struct http_text name, struct http_text value)
{
    strbuf_add(out, name.p, name.len);
    strbuf_add(out, ": ", 2);
    strbuf_add(out, value.p, value.len);
    strbuf_add(out, "\r\n", 2);
}
