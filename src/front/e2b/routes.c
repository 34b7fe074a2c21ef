#include "front/e2b/e2b.h"

#include "front/e2b/accounts.h"
#include "front/e2b/admin.h"
#include "front/e2b/build.h"
#include "front/e2b/checkpoints.h"
#include "front/e2b/events.h"
#include "front/e2b/request.h"
#include "front/e2b/sandbox.h"
#include "front/e2b/secrets.h"
#include "front/e2b/template.h"
#include "front/e2b/volumes.h"
#include "front/core/auth.h"
#include "front/core/ready.h"

/* Before version 2 E2B's command line built images by itself and pushed them to E2B's registry. */
static void no_old_builds(struct http_req *req)
{
    reply_error(req, 400,
                "templates are no longer built this way: update @e2b/cli and use 'e2b template "
                "create', or the SDK's Template()");
}

/* Every route that E2B's programs may call. docs/e2b.md lists them for people. */
static const struct http_route routes[] = {
    {HTTP_M_POST, "/v2/sandboxes", sandbox_create_v2, E2B_BODY_MAX},
    {HTTP_M_POST, "/sandboxes", sandbox_create_v1, E2B_BODY_MAX},
    {HTTP_M_GET, "/v2/sandboxes", sandboxes_list_v2, 0},
    {HTTP_M_GET, "/sandboxes", sandboxes_list_v1, 0},
    {HTTP_M_POST, "/v2/sandboxes/{id}/connect", sandbox_connect_v2, E2B_BODY_MAX},
    {HTTP_M_POST, "/sandboxes/{id}/connect", sandbox_connect_v1, E2B_BODY_MAX},
    {HTTP_M_GET, "/sandboxes/{id}", e2b_sandbox_get, 0},
    {HTTP_M_DELETE, "/sandboxes/{id}", e2b_sandbox_kill, 0},
    {HTTP_M_POST, "/sandboxes/{id}/timeout", sandbox_timeout, E2B_BODY_MAX},
    {HTTP_M_POST, "/sandboxes/{id}/refreshes", sandbox_refresh, E2B_BODY_MAX},
    {HTTP_M_POST, "/sandboxes/{id}/pause", e2b_sandbox_pause, E2B_BODY_MAX},
    {HTTP_M_POST, "/sandboxes/{id}/resume", e2b_sandbox_resume, E2B_BODY_MAX},
    {HTTP_M_GET, "/sandboxes/metrics", sandboxes_metrics, 0},
    {HTTP_M_GET, "/sandboxes/{id}/metrics", e2b_sandbox_metrics, 0},
    {HTTP_M_GET, "/sandboxes/{id}/logs", sandbox_logs_v1, 0},
    {HTTP_M_GET, "/v2/sandboxes/{id}/logs", sandbox_logs_v2, 0},
    {HTTP_M_PUT, "/sandboxes/{id}/network", sandbox_network, E2B_BODY_MAX},
    {HTTP_M_POST, "/sandboxes/{id}/snapshots", snapshot_create, E2B_BODY_MAX},
    {HTTP_M_POST, "/sandboxes/{id}/fork", sandbox_fork, E2B_BODY_MAX},
    {HTTP_M_POST, "/sandboxes/{id}/checkpoints", checkpoint_create, E2B_BODY_MAX},
    {HTTP_M_GET, "/sandboxes/{id}/checkpoints", checkpoint_list, 0},
    {HTTP_M_DELETE, "/sandboxes/{id}/checkpoints/{checkpoint}", checkpoint_delete, 0},
    {HTTP_M_POST, "/sandboxes/{id}/rewind", e2b_sandbox_rewind, E2B_BODY_MAX},
    {HTTP_M_GET, "/snapshots", snapshot_list, 0},

    {HTTP_M_GET, "/templates", templates_list, 0},
    {HTTP_M_GET, "/v2/templates", templates_list, 0},
    {HTTP_M_GET, "/templates/{id}", template_get, 0},
    {HTTP_M_DELETE, "/templates/{id}", template_delete, 0},
    {HTTP_M_GET, "/templates/aliases/{alias}", template_alias, 0},
    {HTTP_M_GET, "/templates/{id}/tags", template_tags, 0},
    {HTTP_M_POST, "/templates/tags", template_tags_add, E2B_BODY_MAX},
    {HTTP_M_DELETE, "/templates/tags", template_tags_remove, E2B_BODY_MAX},
    {HTTP_M_POST, "/templates", no_old_builds, 0},
    {HTTP_M_POST, "/v2/templates", build_create, E2B_BODY_MAX},
    {HTTP_M_POST, "/v3/templates", build_create, E2B_BODY_MAX},
    {HTTP_M_POST, "/templates/{id}", no_old_builds, 0},
    {HTTP_M_PATCH, "/templates/{id}", template_update, E2B_BODY_MAX},
    {HTTP_M_PATCH, "/v2/templates/{id}", template_update, E2B_BODY_MAX},
    {HTTP_M_GET, "/templates/{id}/files/{hash}", build_files, 0},
    {HTTP_M_POST, "/templates/{id}/builds/{build}", no_old_builds, 0},
    {HTTP_M_POST, "/v2/templates/{id}/builds/{build}", build_start, E2B_BODY_MAX},
    {HTTP_M_DELETE, "/templates/{id}/builds/{build}", build_cancel, 0},
    {HTTP_M_GET, "/templates/{id}/builds/{build}/status", build_status, 0},
    {HTTP_M_GET, "/templates/{id}/builds/{build}/logs", build_logs, 0},

    {HTTP_M_GET, "/volumes", volumes_list, 0},
    {HTTP_M_POST, "/volumes", volume_post, E2B_BODY_MAX},
    {HTTP_M_GET, "/volumes/{id}", volume_get, 0},
    {HTTP_M_DELETE, "/volumes/{id}", volume_remove, 0},

    {HTTP_M_GET, "/secrets", secrets_list, 0},
    {HTTP_M_POST, "/secrets", secret_create, 0},
    {HTTP_M_GET, "/secrets/{id}", secret_get, 0},
    {HTTP_M_POST, "/secrets/{id}", secret_update, 0},
    {HTTP_M_DELETE, "/secrets/{id}", secret_delete, 0},

    {HTTP_M_GET, "/events/sandboxes", e2b_events, 0},
    {HTTP_M_GET, "/events/sandboxes/{id}", e2b_sandbox_events, 0},
    {HTTP_M_GET, "/events/webhooks", webhooks_list, 0},
    {HTTP_M_POST, "/events/webhooks", webhook_create, 0},
    {HTTP_M_GET, "/events/webhooks/{id}", webhook_get, 0},
    {HTTP_M_PATCH, "/events/webhooks/{id}", webhook_update, 0},
    {HTTP_M_DELETE, "/events/webhooks/{id}", webhook_delete, 0},
};

/* Routes that another token opens. Whose key or token does not, gets 401. */
static const struct http_route account_routes[] = {{HTTP_M_GET, "/teams", teams_list, 0}};
static const struct http_route team_routes[] = {
    {HTTP_M_GET, "/teams/{id}/metrics", team_metrics, 0},
    {HTTP_M_GET, "/teams/{id}/metrics/max", team_metrics_max, 0},
};
static const struct http_route key_routes[] = {
    {HTTP_M_GET, "/api-keys", keys_list, 0},
    {HTTP_M_POST, "/api-keys", key_create, E2B_BODY_MAX},
    {HTTP_M_PATCH, "/api-keys/{id}", key_rename, E2B_BODY_MAX},
    {HTTP_M_DELETE, "/api-keys/{id}", key_delete, 0},
    {HTTP_M_POST, "/access-tokens", access_token_create, E2B_BODY_MAX},
    {HTTP_M_DELETE, "/access-tokens/{id}", access_token_delete, 0},
};
static const struct http_route admin_routes[] = {
    {HTTP_M_GET, "/nodes", nodes_list, 0},
    {HTTP_M_GET, "/nodes/{id}", node_get, 0},
    {HTTP_M_POST, "/nodes/{id}", node_change, E2B_BODY_MAX},
    {HTTP_M_GET, "/admin/sandboxes/running-counts", admin_running_counts, 0},
    {HTTP_M_POST, "/admin/teams/{id}/sandboxes/kill", admin_kill_all, E2B_BODY_MAX},
    {HTTP_M_POST, "/admin/teams/{id}/builds/cancel", admin_cancel_builds, E2B_BODY_MAX},
    {HTTP_M_GET, "/admin/teams/{id}/api-keys", admin_keys_list, 0},
    {HTTP_M_POST, "/admin/teams/{id}/api-keys", admin_key_create, E2B_BODY_MAX},
    {HTTP_M_DELETE, "/admin/teams/{id}/api-keys/{key}", admin_key_delete, 0},
};

/* The last one is for every path that no other has. */
static const struct area {
    const struct http_route *routes;
    size_t n;
    const struct store_tenant *(*auth)(struct http_req *req);
} areas[] = {
    {account_routes, ARRAY_SIZE(account_routes), auth_account},
    {team_routes, ARRAY_SIZE(team_routes), auth_team},
    {key_routes, ARRAY_SIZE(key_routes), auth_operator_for},
    {admin_routes, ARRAY_SIZE(admin_routes), auth_operator},
    {routes, ARRAY_SIZE(routes), auth_tenant},
};

static const struct area *area_of(struct http_req *req)
{
    const struct http_route *route;
    size_t i = 0;

    while (i + 1 < ARRAY_SIZE(areas) &&
           http_route_find(areas[i].routes, areas[i].n, req, &route, NULL) == HTTP_NO_PATH)
        i++;
    return &areas[i];
}

void e2b_request(struct http_req *req)
{
    if (req->method == HTTP_M_GET && strcmp(req->path, "/health") == 0) {
        if (http_query_has(req, "ready"))
            ready_answer(req);
        else
            reply_empty(req, 204);
        return;
    }
    /* Checks the key before it answers about the path: strangers must not learn which routes
     * exist. */
    const struct area *area = area_of(req);
    const struct store_tenant *tenant = area->auth(req);
    const struct http_route *route = tenant ? e2b_route(req, area->routes, area->n) : NULL;

    if (route)
        e2b_begin(req, tenant, route);
}
