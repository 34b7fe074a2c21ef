#include "front/interpreter/routes.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "front/core/reply.h"
#include "lib/http/router.h"
#include "front/interpreter/interpreter.h"

#define MESSAGE_MAX 4096

void refuse(struct http_req *req, int status, const char *fmt, ...)
{
    char message[MESSAGE_MAX];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(message, sizeof(message), fmt, ap);
    va_end(ap);
    for (char *p = message; *p; p++)
        if ((unsigned char)*p < 0x20)
            *p = ' ';
    http_failed(req, status, message);
    http_reply(req, status, "text/plain; charset=utf-8", message, strlen(message));
}

void refuse_call(struct http_req *req, const struct sandbox *b, int status, const char *message,
                 const char *context)
{
    if (status == CALL_GONE)
        reply_gone(req, b);
    else if (status == ENOENT && context)
        refuse(req, 404, "Context %s not found", context);
    else
        refuse(req, status_of_call(status), "%s", message);
}

static void health(struct http_req *req)
{
    http_add_header(req, "Cache-Control", "no-store");
    http_reply(req, 200, "application/json", "\"OK\"", 4);
}

static const struct http_route routes[] = {
    {HTTP_M_GET, "/health", health, 0},
    {HTTP_M_POST, "/execute", interpreter_execute, 0},
    {HTTP_M_GET, "/contexts", interpreter_list, 0},
    {HTTP_M_POST, "/contexts", interpreter_create, 0},
    {HTTP_M_DELETE, "/contexts/{id}", contexts_remove, 0},
    {HTTP_M_POST, "/contexts/{id}/restart", contexts_restart, 0},
    {HTTP_M_POST, "/contexts/{id}/interrupt", contexts_interrupt, 0},
};

static bool needs_token(const struct http_route *r)
{
    return r->handler == interpreter_execute || r->handler == contexts_interrupt;
}

/* Whether the request may use the route. NULL: there is no such route. */
static bool token_right(const struct sandbox *b, const struct http_req *req,
                        const struct http_route *route)
{
    const char *token = http_header_get(req, "x-access-token");

    if (b->spec.envd_token[0] == '\0')
        return true;
    return token ? token_equal(b->spec.envd_token, token) : !(route && needs_token(route));
}

bool interpreter_allows(const struct sandbox *b, struct http_req *req)
{
    const struct http_route *route = NULL;

    http_route_find(routes, ARRAY_SIZE(routes), req, &route, NULL);
    return token_right(b, req, route);
}

void interpreter_request(struct sandbox *b, struct http_req *req)
{
    AUTO(strbuf_done) struct strbuf allow = strbuf_upto(256);
    const struct http_route *route = NULL;

    reply_add_cors(req);
    if (req->method == HTTP_M_OPTIONS) {
        reply_preflight(req);
        return;
    }
    enum http_match found = http_route_find(routes, ARRAY_SIZE(routes), req, &route, &allow);
    if (!token_right(b, req, route)) {
        refuse(req, 401, "the sandbox's access token is missing or wrong: X-Access-Token");
    } else if (found == HTTP_FOUND) {
        req->owner = b;
        route->handler(req);
    } else if (found == HTTP_NO_METHOD) {
        http_add_header(req, "Allow", allow.buf);
        refuse(req, 405, "%s is not for %s", req->path, req->method_name);
    } else {
        refuse(req, 404, "there is no %s here", req->path);
    }
}
