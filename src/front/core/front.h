/* The front: the one process, without privilege, that speaks HTTP. This header has what its parts
 * share.
 *
 *   main/         its start and end, and which part a request belongs to
 *   e2b/          the control plane of E2B's API
 *   envd/         port 49983 of a sandbox
 *   interpreter/  port 49999 of a sandbox
 *   forward/      every other port of a sandbox
 *   v1/           execution contexts over HTTP
 *   tools/        tools for language models
 *   mcp/          the same tools for clients of MCP
 *   acp/          hosted agents
 *   contexts/     which sandbox a path of a conversation has
 *   builds/       templates are built
 *   store/        what outlives the server
 *   telemetry/    traces and figures
 *   backup/       backups of a server
 *   core/         the ground of all these: sandboxes (sandbox.h), calls to agents (call.h), orders
 *                 (warden.h), keys (auth.h)
 */
#pragma once

#include <jansson.h>
#include <uv.h>

#include "lib/base/err.h"
#include "lib/base/map.h"
#include "lib/http/http.h"
#include "lib/settings/settings.h"

struct store;
struct warden;
struct sandbox;
struct contexts;
struct checkpoints;
struct agents;
struct builds;
struct guard_link;
struct output_filter_patterns;

struct front {
    uv_loop_t *loop;
    struct settings settings;
    char url[256]; /* its address for programs on this machine; "" if not known */
    struct http_server *http;
    struct store *store;
    struct commits commits; /* of the store (front/store/sync.h) */
    struct warden *warden;
    struct guard_link *guard;                /* front/core/guard.h; NULL until there was one */
    struct output_filter_patterns *patterns; /* front/core/output_filter.h */
    struct map sandboxes;
    struct contexts *contexts;
    struct checkpoints *checkpoints; /* front/core/checkpoint.h; NULL until there was one */
    struct agents *agents;           /* front/acp/agents.h; NULL until there was one */
    struct builds *builds;           /* front/builds/build.h; NULL until the store is open */
    void (*on_sandbox_ended)(struct sandbox *b); /* it is out of the table; NULL: no handler */
    /* Called when a secret of the tenant gets another value or other hosts, or is deleted. NULL: no
     * handler. */
    void (*on_secret_changed)(struct front *f, const char *tenant, const char *name);
    bool draining;
    uint64_t creates,
        creates_failed; /* sandboxes that were to be made; failed: not the client's fault */
};

/* The front of a request: the server's argument. */
static inline struct front *front_of(const struct http_req *req)
{
    return http_server_arg(req->server);
}

#define FRONT_ENVD_VERSION "0.6.13" /* high enough for every feature that the SDKs check it for */
#define FRONT_ENVD_PORT    49983

#define FRONT_INTERPRETER_PORT 49999
