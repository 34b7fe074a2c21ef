/* Finds the function that answers a request, by a table of methods and path patterns. */
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
 * the path is known, but with other methods; allow (if not NULL) gets their list, for the Allow
 * header. HEAD is never matched with GET. */
enum http_match http_route_find(const struct http_route *routes, size_t n, struct http_req *req,
                                const struct http_route **ret, struct strbuf *allow);
