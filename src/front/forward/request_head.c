#include "front/forward/request_head.h"

#include <inttypes.h>
#include <string.h>
#include <strings.h>

static const char *const hop_by_hop[] = {
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
};

/* Headers that are for us, or that we set ourselves. */
static const char *const not_for_the_server[] = {
    "host",
    "content-length",
    "expect",
    "forwarded",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-port",
    "x-forwarded-proto",
    "x-real-ip",
    "e2b-sandbox-id",
    "e2b-sandbox-port",
    "e2b-traffic-access-token",
    "x-api-key", /* code inside must not learn the tenant's key */
};

static bool listed(const char *const *names, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

/* Whether `name` is an item of a comma-separated list. */
static bool in_list(const char *list, const char *name)
{
    size_t len = strlen(name);

    for (const char *p = list; *p; p += strcspn(p, ",")) {
        p += strspn(p, ", \t");
        if (strncasecmp(p, name, len) == 0 && strchr(", \t", p[len]))
            return true;
    }
    return false;
}

bool header_passes(const struct http_header *headers, size_t n, const char *name)
{
    if (listed(hop_by_hop, ARRAY_SIZE(hop_by_hop), name))
        return false;
    for (size_t i = 0; i < n; i++)
        if (strcmp(headers[i].name, "connection") == 0 && in_list(headers[i].value, name))
            return false;
    return true;
}

const char *header_single(const struct http_header *headers, size_t n, const char *name)
{
    const char *found = NULL;

    for (size_t i = 0; i < n; i++) {
        if (strcmp(headers[i].name, name) != 0)
            continue;
        if (found)
            return NULL;
        found = headers[i].value;
    }
    return found;
}

static void add_header(struct strbuf *out, const char *name, const char *value)
{
    strbuf_addf(out, "%s: %s\r\n", name, value);
}

static void add_framing(struct strbuf *out, const struct http_req *req)
{
    bool body_usual =
        req->method == HTTP_M_POST || req->method == HTTP_M_PUT || req->method == HTTP_M_PATCH;

    if (req->content_length < 0)
        add_header(out, "Transfer-Encoding", "chunked");
    else if (req->content_length > 0 || body_usual)
        strbuf_addf(out, "Content-Length: %" PRId64 "\r\n", req->content_length);
}

void request_head_write(struct strbuf *out, const struct http_req *req, const char *host,
                        const char *upgrade)
{
    strbuf_addf(out, "%s %s%s%s HTTP/1.1\r\n", req->method_name, req->path,
                req->query[0] ? "?" : "", req->query);
    add_header(out, "Host", host);
    for (size_t i = 0; i < req->n_headers; i++) {
        const char *name = req->headers[i].name;
        if (header_passes(req->headers, req->n_headers, name) &&
            !listed(not_for_the_server, ARRAY_SIZE(not_for_the_server), name))
            add_header(out, name, req->headers[i].value);
    }
    add_framing(out, req);
    add_header(out, "X-Forwarded-For", req->peer);
    add_header(out, "X-Forwarded-Host", req->host);
    add_header(out, "X-Forwarded-Proto", req->tls ? "https" : "http");
    add_header(out, "Connection", upgrade ? "Upgrade" : "close");
    if (upgrade)
        add_header(out, "Upgrade", upgrade);
    strbuf_addstr(out, "\r\n");
}

const char *request_upgrade(const struct http_req *req)
{
    if (!req->upgrade || req->content_length != 0 || req->method != HTTP_M_GET)
        return NULL;
    return header_single(req->headers, req->n_headers, "upgrade");
}

static bool host_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           strchr("-._:[]", c);
}

bool mask_host(const char *mask, unsigned port, char *ret, size_t cap)
{
    static const char holder[] = "${PORT}";
    size_t len = 0;

    while (*mask) {
        int n;
        if (strncmp(mask, holder, strlen(holder)) == 0) {
            n = snprintf(ret + len, cap - len, "%u", port);
            mask += strlen(holder);
        } else if (host_char(*mask)) {
            n = snprintf(ret + len, cap - len, "%c", *mask++);
        } else {
            return false;
        }
        len += (size_t)n;
        if (len >= cap)
            return false;
    }
    return len > 0;
}
