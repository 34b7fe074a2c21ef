#include "front/v1/v1.h"

#include "front/acp/agents.h"
#include "front/e2b/request.h"
#include "front/core/auth.h"
#include "front/tools/tools.h"
#include "front/v1/check.h"
#include "front/v1/handlers.h"

/* Each route is an operation in docs/openapi.yaml: the test of that file reads this table. */
static const struct http_route routes[] = {
    {HTTP_M_PUT, "/v1/contexts", v1_context_put, E2B_BODY_MAX},
    {HTTP_M_GET, "/v1/contexts", v1_contexts_list, 0},
    {HTTP_M_GET, "/v1/contexts/{id}", v1_context_get, 0},
    {HTTP_M_DELETE, "/v1/contexts/{id}", v1_context_end, 0},
    {HTTP_M_POST, "/v1/contexts/{id}/touch", v1_context_touch, E2B_BODY_MAX},
    {HTTP_M_GET, "/v1/contexts/{id}/checkpoints", v1_checkpoints, 0},
    {HTTP_M_POST, "/v1/contexts/{id}/rewind", v1_rewind, E2B_BODY_MAX},
    {HTTP_M_POST, "/v1/contexts/{id}/explore", v1_explore, 0},
    {HTTP_M_POST, "/v1/contexts/{id}/adopt", v1_adopt, E2B_BODY_MAX},
    {HTTP_M_POST, "/v1/contexts/branch", v1_branch, E2B_BODY_MAX},
    {HTTP_M_POST, "/v1/contexts/merge", v1_merge, E2B_BODY_MAX},
    {HTTP_M_POST, "/v1/contexts/cleanup", v1_cleanup, E2B_BODY_MAX},
    {HTTP_M_GET, "/v1/paths", v1_paths, 0},
    {HTTP_M_GET, "/v1/usage", v1_usage, 0},
    {HTTP_M_GET, "/v1/diff", v1_diff, 0},
    {HTTP_M_GET, "/v1/events", v1_events, 0},
    {HTTP_M_GET, "/v1/audit", v1_audit, 0},
    {HTTP_M_POST, "/v1/sandboxes/{id}/links", v1_link_post, E2B_BODY_MAX},
    {HTTP_M_POST, "/v1/agents", v1_agent_post, AGENT_BODY_MAX},
    {HTTP_M_GET, "/v1/agents", v1_agents_list, 0},
    {HTTP_M_GET, "/v1/agents/{id}", v1_agent_get, 0},
    {HTTP_M_DELETE, "/v1/agents/{id}", v1_agent_end, 0},
    {HTTP_M_POST, "/v1/agents/{id}/timeout", v1_agent_timeout, E2B_BODY_MAX},
    {HTTP_M_GET, "/v1/agents/{id}/logs", v1_agent_logs, 0},
    {HTTP_M_GET, "/v1/agents/{id}/acp", v1_agent_acp, 0},
    {HTTP_M_GET, "/v1/tools", tools_list, 0},
    {HTTP_M_POST, "/v1/tools/run_code", tools_run_code, 0},
    {HTTP_M_POST, "/v1/tools/run_analysis", tools_run_analysis, 0},
    {HTTP_M_POST, "/v1/execute", execute_once, ONCE_BODY_MAX},
};

void v1_request(struct http_req *req)
{
    const struct store_tenant *tenant = auth_tenant(req);
    const struct http_route *route = tenant ? e2b_route(req, routes, ARRAY_SIZE(routes)) : NULL;
    struct sg_error e;

    if (route && check_query_tenant(req, tenant, &e) < 0)
        reply_sg_error(req, &e);
    else if (route)
        e2b_begin(req, tenant, route);
}
