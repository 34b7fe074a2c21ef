#include "lib/http/impl.h"
#include "lib/http/router.h"
#include "tap.h"

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
    {HTTP_M_GET, "/templates/{id}/builds/{build}/status", handler, 0},
    {HTTP_M_GET, "/templates/aliases/{alias}", handler, 0},
    {HTTP_M_GET, "/templates/{id}/{any}", handler, 0},
};

static struct req *req;
static const struct http_route *route;
static struct strbuf allow;

static enum http_match find(enum http_method method, const char *path)
{
    if (req)
        req_free(req);
    req = xcalloc(1, sizeof(*req));
    strbuf_init(&req->headers, 0);
    strbuf_init(&req->collected, 0);
    req->pub.method = method;
    req->pub.path = path;
    route = NULL;
    strbuf_done(&allow);
    strbuf_init(&allow, 256);
    return http_route_find(routes, ARRAY_SIZE(routes), &req->pub, &route, &allow);
}

static bool found(enum http_method method, const char *path, const char *pattern)
{
    return find(method, path) == HTTP_FOUND && strcmp(route->pattern, pattern) == 0;
}

TEST(literal_and_parameter)
{
    EXPECT(found(HTTP_M_GET, "/", "/"));
    EXPECT(found(HTTP_M_GET, "/health", "/health"));
    EXPECT(found(HTTP_M_GET, "/sandboxes/abc", "/sandboxes/{id}"));
    EXPECT_STR(req->pub.params[0], "abc");
    EXPECT(found(HTTP_M_GET, "/sandboxes/metrics", "/sandboxes/metrics"));
    EXPECT(found(HTTP_M_DELETE, "/sandboxes/metrics", "/sandboxes/{id}"));
    EXPECT(
        found(HTTP_M_GET, "/templates/a/builds/b/status", "/templates/{id}/builds/{build}/status"));
    EXPECT_STR(req->pub.params[0], "a");
    EXPECT_STR(req->pub.params[1], "b");
    EXPECT(found(HTTP_M_GET, "/templates/aliases/x", "/templates/aliases/{alias}"));
    EXPECT_STR(req->pub.params[0], "x");
    EXPECT(found(HTTP_M_GET, "/templates/b/x", "/templates/{id}/{any}"));
}

TEST(decoding_comes_after_splitting)
{
    EXPECT(found(HTTP_M_GET, "/sandboxes/team%2Fsnap%3Adefault", "/sandboxes/{id}"));
    EXPECT_STR(req->pub.params[0], "team/snap:default");
    EXPECT(found(HTTP_M_GET, "/sandboxes/a%252e", "/sandboxes/{id}"));
    EXPECT_STR(req->pub.params[0], "a%2e");
    EXPECT(found(HTTP_M_GET, "/sandboxes/a+b%zz%", "/sandboxes/{id}"));
    EXPECT_STR(req->pub.params[0], "a+b%zz%");
    /* A literal is compared as it came. */
    EXPECT(found(HTTP_M_GET, "/sandboxes/metric%73", "/sandboxes/{id}"));
    EXPECT(find(HTTP_M_GET, "/%68ealth") == HTTP_NO_PATH);
}

TEST(what_never_matches)
{
    static const char *const paths[] = {
        "",
        "health",
        "//health",
        "/health/",
        "/health//",
        "//",
        "/sandboxes",
        "/sandboxes/",
        "/sandboxes//",
        "/sandboxes/.",
        "/sandboxes/..",
        "/sandboxes/%2e",
        "/sandboxes/%2E%2e",
        "/sandboxes/.%2e",
        "/sandboxes/a%00b",
        "/sandboxes/%00",
        "/./health",
        "/../health",
        "/x/../health",
        "/%2fhealth",
        "/health;x",
        "/HEALTH",
        "/health%20",
        "/sandboxes/..;/timeout",
        "/a/b/c/d/e/f/g/h/i/j/k/l/m/n/o/p/q/r/s/t",
    };

    for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
        enum http_match m = find(HTTP_M_GET, paths[i]);

        /* "..;" is a name like any other: there is only no GET for it. */
        EXPECT(m == HTTP_NO_PATH || (m == HTTP_NO_METHOD && strstr(paths[i], "..;")));
        if (m == HTTP_FOUND)
            printf("# '%s' found %s\n", paths[i], route->pattern);
    }
}

TEST(methods)
{
    EXPECT(find(HTTP_M_PUT, "/sandboxes/x") == HTTP_NO_METHOD);
    EXPECT_STR(allow.buf, "GET, DELETE");
    EXPECT(find(HTTP_M_HEAD, "/health") == HTTP_NO_METHOD);
    EXPECT_STR(allow.buf, "GET");
    EXPECT(find(HTTP_M_OTHER, "/health") == HTTP_NO_METHOD);
    EXPECT(find(HTTP_M_GET, "/sandboxes/x/timeout") == HTTP_NO_METHOD);
    EXPECT_STR(allow.buf, "POST");
    EXPECT(find(HTTP_M_OTHER, "/nothing") == HTTP_NO_PATH);
    EXPECT_STR(allow.buf, "");
    EXPECT(http_route_find(routes, 0, &req->pub, &route, NULL) == HTTP_NO_PATH);
}

TAP_MAIN
