/* Which function answers a request: a table of methods and path patterns.
 *
 * A pattern is literal segments and parameters: "/sandboxes/{id}/timeout". Paths are compared
 * segment by segment as they came; a parameter's value is percent-decoded after that, once, so an
 * encoded slash stays inside its segment. Empty segments, "." and ".." never match, decoded or not.
 * Literal segments win over parameters. */
#pragma once

#include "lib/http/http.h"

struct http_route {
    enum http_method method;
    const char *pattern;
    void (*handler)(struct http_req *req);
    size_t body_max; /* for the owner of the table: how much body this route may have */
};

enum http_match { HTTP_NO_PATH, HTTP_NO_METHOD, HTTP_FOUND };

/* On HTTP_FOUND *ret is the route and req->params are set, in the pattern's order. HTTP_NO_METHOD:
 * the path is known, with other methods, which are listed in allow (if not NULL) for the Allow
 * header. HEAD is never matched with GET. */
enum http_match http_route_find(const struct http_route *routes, size_t n, struct http_req *req,
                                const struct http_route **ret, struct strbuf *allow);
