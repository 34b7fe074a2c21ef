#include "lib/http/head.h"

#include <llhttp.h>
#include <strings.h>

#include "lib/http/impl.h"

#define METHOD_MAX  32
#define VERSION_LEN 9 /* " HTTP/1.1" */
#define HOST_MAX    255
#define LENGTH_MAX  18 /* most digits of a Content-Length, which stays below 2^63 */

static int refuse(int status, const char *why, const char **ret_why)
{
    *ret_why = why;
    return -status;
}

/* ---- lines ----------------------------------------------------------------------------------- */

/* Judges the first line as soon as it has come, because clients of HTTP/0.9 and of HTTP/2 wait for
 * an answer to it. */
static int check_first_line(const char *line, size_t len, const struct http_limits *limits,
                            const char **ret_why)
{
    const char *sp = memchr(line, ' ', len), *version = memrchr(line, ' ', len);

    if (!sp || sp == line || version == sp || memchr(sp + 1, ' ', (size_t)(version - sp - 1)))
        return refuse(400, "the request line is not 'METHOD TARGET HTTP/1.1'", ret_why);
    size_t n = (size_t)(line + len - version);
    if (n == VERSION_LEN && memcmp(version, " HTTP/1.", 8) == 0 &&
        (version[8] == '1' || version[8] == '0'))
        return (size_t)(version - sp - 1) <= limits->target_max
                   ? 0
                   : refuse(414, "the request target is too long", ret_why);
    if (n > 6 && memcmp(version, " HTTP/", 6) == 0 && version[6] >= '0' && version[6] <= '9')
        return refuse(505, "only HTTP/1.1 and HTTP/1.0 are spoken here", ret_why);
    return refuse(400, "the request line is not 'METHOD TARGET HTTP/1.1'", ret_why);
}

/* Returns 1 at the end of the head. */
static int end_line(struct head_scan *s, const struct http_limits *limits, const char *p,
                    const char **ret_why)
{
    size_t len = s->pos - 1 - s->line;
    const char *line = p + s->line;

    s->line = s->pos + 1;
    if (s->in_headers) {
        if (len == 0)
            return 1;
        if (s->headers++ < limits->headers_max)
            return 0;
        return refuse(431, "the request has too many headers", ret_why);
    }
    if (len == 0 && s->start == 0) {
        s->start = s->line;
        return 0;
    }
    s->in_headers = true;
    return check_first_line(line, len, limits, ret_why);
}

static int check_byte(const struct head_scan *s, unsigned char b, const struct http_limits *limits,
                      const char **ret_why)
{
    if (b == '\n')
        return refuse(400, "a line of the request's head does not end in CR LF", ret_why);
    if ((b < 0x20 && !(b == '\t' && s->in_headers)) || b == 0x7f)
        return refuse(400, "a control character is in the request's head", ret_why);
    if (s->in_headers) {
        if (s->pos == s->line && (b == ' ' || b == '\t'))
            return refuse(400, "a header is folded over two lines", ret_why);
    } else {
        if (b >= 0x80)
            return refuse(400, "the request line is not ASCII", ret_why);
        if (s->pos - s->line >= METHOD_MAX + limits->target_max + VERSION_LEN)
            return refuse(414, "the request target is too long", ret_why);
    }
    return 0;
}

int head_scan(struct head_scan *s, const struct http_limits *limits, const char *p, size_t len,
              const char **ret_why)
{
    for (; s->pos < len; s->pos++) {
        unsigned char b = (unsigned char)p[s->pos];
        int r = 0;

        if (s->pos >= limits->head_max)
            return refuse(431, "the request's head is too long", ret_why);
        if (s->cr) {
            if (b != '\n')
                return refuse(400, "a CR without LF is in the request's head", ret_why);
            s->cr = false;
            r = end_line(s, limits, p, ret_why);
        } else if (b == '\r') {
            s->cr = true;
        } else if (b < 0x20 || b >= 0x7f || b == ' ' || !s->in_headers) {
            r = check_byte(s, b, limits, ret_why);
        }
        if (r < 0)
            return r;
        if (r > 0)
            return (int)++s->pos;
    }
    return 0;
}

/* ---- grammar --------------------------------------------------------------------------------- */

struct parse {
    struct http_header *headers;
    size_t n, max;
    const char *url;
    size_t url_len;
};

static int on_url(llhttp_t *parser, const char *at, size_t len)
{
    struct parse *p = parser->data;

    p->url = at;
    p->url_len = len;
    return 0;
}

static int on_field(llhttp_t *parser, const char *at, size_t len)
{
    struct parse *p = parser->data;

    if (p->n == p->max || at[len] != ':')
        return HPE_USER;
    p->headers[p->n++].name = at;
    return 0;
}

static int on_head_end(llhttp_t *parser UNUSED)
{
    return HPE_PAUSED;
}

static const llhttp_settings_t settings = {
    .on_url = on_url,
    .on_header_field = on_field,
    .on_headers_complete = on_head_end,
};

/* The characters of a header's name. Checked here because llhttp lets spaces pass unless it was
 * built in its strict mode. */
static bool is_token(unsigned char b)
{
    return (b >= '0' && b <= '9') || (b >= 'a' && b <= 'z') || (b >= 'A' && b <= 'Z') ||
           (b != '\0' && strchr("!#$%&'*+-.^_`|~", b));
}

/* The value is the text between the colon and the end of the line. False: the name is invalid. */
static bool split_header(struct http_header *h, char *head)
{
    char *name = head + (h->name - head), *p = name;

    for (; *p != ':'; p++) {
        if (!is_token((unsigned char)*p))
            return false;
        if (*p >= 'A' && *p <= 'Z')
            *p = (char)(*p | 0x20);
    }
    if (p == name)
        return false;
    *p++ = '\0';
    p += strspn(p, " \t");
    char *end = p + strcspn(p, "\r");
    while (end > p && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    *end = '\0';
    h->value = p;
    return true;
}

static enum http_method method_of(const char *name)
{
    enum http_method m = HTTP_M_GET;

    while (m < HTTP_M_OTHER && strcmp(http_method_name(m), name) != 0)
        m++;
    return m;
}

static int run_llhttp(struct req *r, char *head, size_t len, struct parse *p, const char **ret_why)
{
    llhttp_t parser;

    llhttp_init(&parser, HTTP_REQUEST, &settings);
    parser.data = p;
    if (llhttp_execute(&parser, head, len) != HPE_PAUSED || p->n != p->max || !p->url)
        return refuse(400, parser.reason && *parser.reason ? parser.reason : "malformed request",
                      ret_why);
    r->pub.method_name = llhttp_method_name((llhttp_method_t)parser.method);
    r->pub.method = method_of(r->pub.method_name);
    r->http10 = parser.http_minor == 0;
    return 0;
}

/* ---- meaning --------------------------------------------------------------------------------- */

bool http_list_has(const char *list, const char *word, bool fold)
{
    size_t len = strlen(word);

    while (*list) {
        list += strspn(list, " \t,");
        size_t n = strcspn(list, " \t,");
        if (n == len && (fold ? strncasecmp(list, word, n) : strncmp(list, word, n)) == 0)
            return true;
        list += n;
    }
    return false;
}

static int read_length(struct req *r, const char *value, const char **ret_why)
{
    size_t len = strlen(value);

    if (len == 0 || len > LENGTH_MAX || value[strspn(value, "0123456789")] != '\0')
        return refuse(400, "Content-Length is not a number", ret_why);
    r->pub.content_length = strtoll(value, NULL, 10);
    return 0;
}

/* Whether the text is a name or an address, perhaps with a port. */
static bool host_valid(const char *host)
{
    size_t len = strlen(host), n;

    if (len == 0 || len > HOST_MAX)
        return false;
    if (host[0] == '[') {
        n = 1 + strspn(host + 1, "0123456789abcdef:.");
        if (n == 1 || host[n++] != ']')
            return false;
    } else {
        n = strspn(host, "abcdefghijklmnopqrstuvwxyz0123456789-._");
    }
    if (host[n] == '\0')
        return n > 0;
    if (host[n] != ':' || n == 0)
        return false;
    size_t digits = strspn(host + n + 1, "0123456789");
    return digits >= 1 && digits <= 5 && host[n + 1 + digits] == '\0';
}

struct seen {
    unsigned hosts, lengths, codings;
    bool upgrade, connection_upgrade, close, keep_alive;
};

static int read_host(struct req *r, char *value, const char **ret_why)
{
    for (char *p = value; *p; p++)
        if (*p >= 'A' && *p <= 'Z')
            *p = (char)(*p | 0x20);
    if (!host_valid(value))
        return refuse(400, "the Host header is not a host name", ret_why);
    r->pub.host = value;
    return 0;
}

static int read_header(struct req *r, const struct http_header *h, char *head, struct seen *seen,
                       const char **ret_why)
{
    const char *name = h->name;

    if (strcmp(name, "host") == 0) {
        if (seen->hosts++ > 0)
            return refuse(400, "the request has two Host headers", ret_why);
        return read_host(r, head + (h->value - head), ret_why);
    }
    if (strcmp(name, "content-length") == 0) {
        if (seen->lengths++ > 0)
            return refuse(400, "the request has two Content-Length headers", ret_why);
        return read_length(r, h->value, ret_why);
    }
    if (strcmp(name, "transfer-encoding") == 0) {
        if (seen->codings++ > 0 || strcmp(h->value, "chunked") != 0)
            return refuse(400, "Transfer-Encoding must be 'chunked', once", ret_why);
        return 0;
    }
    if (strcmp(name, "connection") == 0) {
        seen->close |= http_list_has(h->value, "close", true);
        seen->keep_alive |= http_list_has(h->value, "keep-alive", true);
        seen->connection_upgrade |= http_list_has(h->value, "upgrade", true);
    } else if (strcmp(name, "upgrade") == 0) {
        seen->upgrade = *h->value != '\0';
    } else if (strcmp(name, "expect") == 0) {
        if (strcasecmp(h->value, "100-continue") != 0)
            return refuse(417, "the only expectation known is 100-continue", ret_why);
        r->expect = true;
    }
    return 0;
}

static int read_headers(struct req *r, char *head, const char **ret_why)
{
    struct seen seen = {0};

    for (size_t i = 0; i < r->pub.n_headers; i++) {
        int status = read_header(r, &r->pub.headers[i], head, &seen, ret_why);
        if (status < 0)
            return status;
    }
    if (seen.codings > 0 && (seen.lengths > 0 || r->http10))
        return refuse(400, "Transfer-Encoding does not go with Content-Length or HTTP/1.0",
                      ret_why);
    if (seen.hosts == 0 && !r->http10)
        return refuse(400, "the request has no Host header", ret_why);
    if (seen.codings > 0)
        r->pub.content_length = -1;
    r->expect = r->expect && !r->http10 && r->pub.content_length != 0;
    r->keep_alive = !seen.close && (!r->http10 || seen.keep_alive);
    r->pub.upgrade = seen.upgrade && seen.connection_upgrade && !r->http10;
    return 0;
}

/* A target such as "http://host/path" is meant for proxies. It is accepted if the host is that of
 * the Host header. Returns where the path begins, or NULL. */
static const char *skip_authority(const struct req *r, const char *target)
{
    size_t scheme = strncasecmp(target, "http://", 7) == 0    ? 7
                    : strncasecmp(target, "https://", 8) == 0 ? 8
                                                              : 0;
    size_t len = strcspn(target + scheme, "/?");

    if (scheme == 0 || len != strlen(r->pub.host) ||
        strncasecmp(target + scheme, r->pub.host, len) != 0)
        return NULL;
    return target + scheme + len;
}

static int read_target(struct req *r, const char **ret_why)
{
    const char *path = r->pub.target;

    if (*path != '/')
        path = skip_authority(r, path);
    if (!path)
        return refuse(400, "the request target is neither a path nor a URL of this host", ret_why);
    size_t len = strcspn(path, "?");
    if (strchr(path, '#'))
        return refuse(400, "the request target has a fragment", ret_why);
    r->pub.query = path[len] == '?' ? path + len + 1 : "";
    if (path[len] == '\0' && len > 0) {
        r->pub.path = path;
        return 0;
    }
    char *copy = http_req_alloc(&r->pub, len + 2);
    memcpy(copy, len > 0 ? path : "/", len > 0 ? len : 1);
    copy[len > 0 ? len : 1] = '\0';
    r->pub.path = copy;
    return 0;
}

int head_parse(struct req *r, char *head, size_t len, struct http_header *headers, size_t n_headers,
               const char **ret_why)
{
    struct parse p = {.headers = headers, .max = n_headers};
    int status = run_llhttp(r, head, len, &p, ret_why);

    if (status < 0)
        return status;
    for (size_t i = 0; i < p.n; i++)
        if (!split_header(&headers[i], head))
            return refuse(400, "a header's name has a character that is not allowed", ret_why);
    /* head_scan found two spaces in the first line: llhttp must have seen them at the same
     * places. */
    size_t url = (size_t)(p.url - head), method_len = strlen(r->pub.method_name);
    if (url != method_len + 1 || head[url + p.url_len] != ' ' ||
        head[url + p.url_len + VERSION_LEN] != '\r')
        return refuse(400, "the request line is not 'METHOD TARGET HTTP/1.1'", ret_why);
    head[url + p.url_len] = '\0';
    r->pub.target = head + url;
    r->pub.host = "";
    r->pub.headers = headers;
    r->pub.n_headers = n_headers;
    status = read_headers(r, head, ret_why);
    return status < 0 ? status : read_target(r, ret_why);
}
