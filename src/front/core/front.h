/* The front: everything that speaks HTTP, in one unprivileged process. This is what its parts
 * share.
 *
 *   server/   main, and which part a request belongs to
 *   e2b/      the control plane          envd/     port 49983 of a sandbox
 *   forward/  every other port           interpreter/  port 49999
 *   front/    what those stand on: sandboxes (sandbox.h), calls to agents (call.h), orders
 * (warden.h), keys (auth.h) */
#pragma once

#include <jansson.h>
#include <uv.h>

#include "lib/base/err.h"
#include "lib/http/http.h"
#include "lib/settings/settings.h"

struct store;
struct warden;
struct sandboxes;
struct sandbox;
struct contexts;
struct checkpoints;
struct agents;
struct guard_link;
struct output_filter_patterns;

struct front {
    uv_loop_t *loop;
    struct settings settings;
    char url[256]; /* where it is reached from this machine; "" if that is not known */
    struct http_server *http;
    struct store *store;
    struct warden *warden;
    struct guard_link *guard; /* front/core/guard.h; NULL until there was one */
    struct output_filter_patterns
        *patterns; /* front/core/output filter.h: what is taken out of what is said */
    struct sandboxes *sandboxes;
    struct contexts *contexts;
    struct checkpoints *checkpoints; /* front/core/checkpoint.h; NULL until there was one */
    struct agents *agents;           /* front/acp/agents.h; NULL until there was one */
    void (*on_sandbox_ended)(struct sandbox *b); /* it is out of the table; NULL if nobody asks */
    /* A secret of the tenant has another value or other hosts, or is gone; NULL if nobody asks. */
    void (*on_secret_changed)(struct front *f, const char *tenant, const char *name);
    bool draining;
};

/* The front of a request: the server's argument. */
static inline struct front *front_of(const struct http_req *req)
{
    return http_server_arg(req->server);
}

#define FRONT_ENVD_VERSION "0.6.13" /* unlocks every feature that the SDKs ask a version for */
#define FRONT_ENVD_PORT    49983

#define FRONT_INTERPRETER_PORT 49999
