#include "front/envd/envd.h"

#include "front/envd/files.h"
#include <string.h>

#include "lib/text/json.h"
#include "front/envd/service.h"
#include "front/core/reply.h"

/* ---- routes ---------------------------------------------------------------------------------- */

static void reply_internal_path(struct http_req *req)
{
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(4096);
    struct json j = {.out = &out};

    jw_object_begin(&j);
    jw_string(jw_key(&j, "message"), "this path cannot be reached from outside");
    jw_string(jw_key(&j, "path"), req->path);
    jw_i64(jw_key(&j, "code"), 404);
    reply_put_fault(req, &j, 404, "this path cannot be reached from outside");
    jw_object_end(&j);
    reply_json(req, 404, &out);
}

static const struct route {
    enum http_method method;
    const char *path;
    bool open; /* without the access token */
    void (*handle)(struct sandbox *b, struct http_req *req);
} routes[] = {
    {HTTP_M_GET, "/health", true, envd_health},
    {HTTP_M_GET, "/files", true, envd_files_get},
    {HTTP_M_POST, "/files", true, envd_files_post},
    {HTTP_M_POST, "/files/compose", false, envd_files_compose},
    {HTTP_M_GET, "/metrics", false, envd_metrics},
    {HTTP_M_GET, "/envs", false, envd_envs},
};

/* Paths that only E2B's own orchestrator asks for. Nobody may use them here. */
static const char *const internal_paths[] = {"/init",     "/freeze", "/unfreeze", "/collapse",
                                             "/fsfreeze", "/fsthaw", "/upgrade"};

static bool is_internal(const char *path)
{
    for (size_t i = 0; i < ARRAY_SIZE(internal_paths); i++)
        if (strcmp(internal_paths[i], path) == 0)
            return true;
    return false;
}

static const struct rpc_service *service_of(const char *path)
{
    const struct rpc_service *services[] = {&process_service, &filesystem_service};

    for (size_t i = 0; i < ARRAY_SIZE(services); i++)
        if (strncmp(path, services[i]->prefix, strlen(services[i]->prefix)) == 0)
            return services[i];
    return NULL;
}

static bool token_given(const struct sandbox *b, const struct http_req *req)
{
    const char *token = http_header_get(req, "x-access-token");

    return b->spec.envd_token[0] == '\0' || (token && token_equal(b->spec.envd_token, token));
}

struct sandbox *envd_sandbox_by_token(struct front *f, const struct http_req *req)
{
    const char *token = http_header_get(req, "x-access-token");

    SANDBOXES_EACH(b, f)
        if (token && b->spec.envd_token[0] != '\0' && token_equal(b->spec.envd_token, token))
            return b;
    return NULL;
}

bool envd_allows(const struct sandbox *b, struct http_req *req)
{
    return token_given(b, req) || (strcmp(req->path, "/files") == 0 && files_allow(b, req));
}

void envd_request(struct sandbox *b, struct http_req *req)
{
    const struct route *route = NULL;
    const struct rpc_service *service = service_of(req->path);
    bool other_method = false;

    reply_add_cors(req);
    if (req->method == HTTP_M_OPTIONS) {
        reply_preflight(req);
        return;
    }
    if (is_internal(req->path)) {
        reply_internal_path(req);
        return;
    }
    for (size_t i = 0; i < ARRAY_SIZE(routes) && !route; i++) {
        if (strcmp(routes[i].path, req->path) != 0)
            continue;
        if (routes[i].method == req->method)
            route = &routes[i];
        else
            other_method = true;
    }
    if (!(route && route->open) && !token_given(b, req))
        reply_error(req, 401, "%s", ENVD_UNAUTHORIZED);
    else if (service)
        rpc_serve(service, b->front->loop, req, sandbox_ref(b));
    else if (route)
        route->handle(b, req);
    else if (other_method)
        reply_error(req, 405, "%s is not for %s", req->path, req->method_name);
    else
        reply_error(req, 404, "there is no %s here", req->path);
}
