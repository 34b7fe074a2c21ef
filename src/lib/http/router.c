#include "lib/http/router.h"

#include "lib/http/impl.h"

#define SEGMENTS_MAX 16

struct segment {
    const char *raw;
    size_t len;
    const char *decoded;
};

/* A parameter's value must be a segment that a file system would take as a plain name. */
static bool segment_plain(const char *decoded)
{
    return decoded && *decoded && strcmp(decoded, ".") != 0 && strcmp(decoded, "..") != 0;
}

/* Returns the number of segments, 0 for "/", or -1 if no pattern can match. */
static int split(struct http_req *req, struct segment *ret)
{
    const char *p = req->path;
    int n = 0;

    if (*p != '/')
        return -1;
    if (p[1] == '\0')
        return 0;
    while (*p == '/') {
        struct segment *s = &ret[n];

        if (n++ == SEGMENTS_MAX)
            return -1;
        s->raw = p + 1;
        s->len = strcspn(s->raw, "/");
        s->decoded = http_decode(req, s->raw, s->len, false);
        if (!segment_plain(s->decoded))
            return -1;
        p = s->raw + s->len;
    }
    return *p ? -1 : n;
}

/* Whether the pattern matches. *ret_rank: larger is better; a literal further left counts most. */
static bool match(const char *pattern, const struct segment *segments, int n, uint32_t *ret_rank)
{
    uint32_t rank = 0;
    int i = 0;

    if (strcmp(pattern, "/") == 0)
        pattern++;
    for (; *pattern == '/'; i++) {
        size_t len = strcspn(++pattern, "/");

        if (i == n)
            return false;
        if (*pattern != '{') {
            if (len != segments[i].len || memcmp(pattern, segments[i].raw, len) != 0)
                return false;
            rank |= 1u << (SEGMENTS_MAX - i);
        }
        pattern += len;
    }
    *ret_rank = rank;
    return i == n;
}

static void set_params(struct http_req *req, const char *pattern, const struct segment *segments)
{
    size_t n = 0;

    for (int i = 0; *pattern == '/'; i++) {
        size_t len = strcspn(++pattern, "/");

        if (*pattern == '{' && n < HTTP_PARAMS_MAX)
            req->params[n++] = segments[i].decoded;
        pattern += len;
    }
}

const char *http_method_name(enum http_method m)
{
    static const char *const names[] = {
        [HTTP_M_GET] = "GET", [HTTP_M_HEAD] = "HEAD",       [HTTP_M_POST] = "POST",
        [HTTP_M_PUT] = "PUT", [HTTP_M_PATCH] = "PATCH",     [HTTP_M_DELETE] = "DELETE",
        [HTTP_M_OTHER] = "",  [HTTP_M_OPTIONS] = "OPTIONS",
    };
    return names[m];
}

static void list_methods(unsigned methods, struct strbuf *allow)
{
    for (enum http_method m = HTTP_M_GET; m < HTTP_M_OTHER; m++) {
        if (methods & 1u << m) {
            strbuf_addstr(allow, allow->len > 0 ? ", " : "");
            strbuf_addstr(allow, http_method_name(m));
        }
    }
}

enum http_match http_route_find(const struct http_route *routes, size_t n, struct http_req *req,
                                const struct http_route **ret, struct strbuf *allow)
{
    struct segment segments[SEGMENTS_MAX];
    const struct http_route *best = NULL;
    uint32_t rank, best_rank = 0;
    unsigned methods = 0;
    int n_segments = split(req, segments);

    for (size_t i = 0; n_segments >= 0 && i < n; i++) {
        if (!match(routes[i].pattern, segments, n_segments, &rank))
            continue;
        methods |= 1u << routes[i].method;
        if (routes[i].method == req->method && (!best || rank > best_rank)) {
            best = &routes[i];
            best_rank = rank;
        }
    }
    if (best) {
        set_params(req, best->pattern, segments);
        *ret = best;
        return HTTP_FOUND;
    }
    if (allow)
        list_methods(methods, allow);
    return methods ? HTTP_NO_METHOD : HTTP_NO_PATH;
}
