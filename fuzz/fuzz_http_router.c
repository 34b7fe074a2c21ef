/* A method and a path against a table of routes. */
#include <assert.h>

#include "lib/http/impl.h"
#include "lib/http/router.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void handler(struct http_req *req)
{
    (void)req;
}

static const struct http_route routes[] = {
    {HTTP_M_GET, "/", handler, 0},
    {HTTP_M_GET, "/health", handler, 0},
    {HTTP_M_GET, "/sandboxes/{id}", handler, 0},
    {HTTP_M_DELETE, "/sandboxes/{id}", handler, 0},
    {HTTP_M_GET, "/sandboxes/metrics", handler, 0},
    {HTTP_M_POST, "/sandboxes/{id}/timeout", handler, 0},
    {HTTP_M_GET, "/{a}/{b}/{c}/{d}/{e}", handler, 0},
};

static void check_param(const char *value)
{
    assert(*value && strcmp(value, ".") != 0 && strcmp(value, "..") != 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    AUTO(strbuf_done) struct strbuf allow = {0};
    const struct http_route *route = NULL;

    struct req *r = xcalloc(1, sizeof(*r));
    strbuf_init(&r->headers, 0);
    strbuf_init(&r->collected, 0);
    strbuf_init(&allow, 256);
    char *path = http_req_alloc(&r->pub, size);
    memcpy(path, data + 1, size - 1);
    r->pub.method = data[0] % (HTTP_M_OTHER + 1);
    r->pub.path = path;
    enum http_match m = http_route_find(routes, ARRAY_SIZE(routes), &r->pub, &route, &allow);
    assert((m == HTTP_FOUND) == (route != NULL));
    assert(m != HTTP_FOUND || route->method == r->pub.method);
    assert((m == HTTP_NO_METHOD) == (allow.len > 0));
    for (size_t i = 0; i < HTTP_PARAMS_MAX && r->pub.params[i]; i++)
        check_param(r->pub.params[i]);
    req_free(r);
    return 0;
}
