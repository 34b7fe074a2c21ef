#include "front/main/dispatch.h"

#include <string.h>

#include "lib/text/parse.h"
#include "front/builds/upload.h"
#include "front/e2b/e2b.h"
#include "front/envd/envd.h"
#include "front/envd/files.h"
#include "front/forward/forward.h"
#include "front/core/request_log.h"
#include "front/core/sandbox.h"
#include "front/core/figures.h"
#include "front/core/operation.h"
#include "front/core/reply.h"
#include "front/core/workload.h"
#include "front/interpreter/interpreter.h"
#include "front/mcp/mcp.h"
#include "front/main/drain.h"
#include "front/main/stray.h"
#include "front/v1/v1.h"
#include "front/volumes/content.h"

#define PORT_MAX 65535u

/* A request that waits for its sandbox to wake up. */
struct arrival {
    struct http_req *req; /* NULL: the client has gone */
    struct sandbox *sandbox;
    unsigned port;
};

static int parse_port(const char *text, size_t len, unsigned *ret)
{
    char digits[8];
    uint64_t v;

    if (len == 0 || len >= sizeof(digits))
        return -EINVAL;
    memcpy(digits, text, len);
    digits[len] = '\0';
    if (parse_u64("port", digits, 1, PORT_MAX, &v, NULL) < 0)
        return -EINVAL;
    *ret = (unsigned)v;
    return 0;
}

/* The domain may be configured with a port, and a host may come with one. */
static bool same_domain(const char *host, const char *domain)
{
    size_t n = strcspn(domain, ":");

    return n > 0 && strncmp(host, domain, n) == 0 && (host[n] == '\0' || host[n] == ':');
}

bool dispatch_parse_host(const char *host, const char *domain, unsigned *ret_port,
                         char ret_id[ID_LEN + 1])
{
    const char *dot = strchr(host, '.'), *dash = strchr(host, '-');

    if (!dot || !dash || dash > dot || !same_domain(dot + 1, domain))
        return false;
    const char *id = dash + 1;
    /* Old clients append a suffix to the id: -xyz. */
    if ((size_t)(dot - id) < ID_LEN || (id[ID_LEN] != '.' && id[ID_LEN] != '-'))
        return false;
    memcpy(ret_id, id, ID_LEN);
    ret_id[ID_LEN] = '\0';
    return id_valid(ret_id) && parse_port(host, (size_t)(dash - host), ret_port) == 0;
}

static void answer(struct http_req *req, struct sandbox *b, unsigned port)
{
    if (drain_refuses(req, port))
        return;
    /* The interpreter's port may be closed to the public like any other port: then forward_request
     * refuses the client. */
    if (port == FRONT_ENVD_PORT)
        envd_request(b, req);
    else if (port == FRONT_INTERPRETER_PORT && forward_allows(b, port, req))
        interpreter_request(b, req);
    else
        forward_request(b, port, req);
}

static void on_awake(void *arg, struct sandbox *b, int r, const struct sg_error *e)
{
    struct arrival *a = arg;
    struct http_req *req = a->req;
    unsigned port = a->port;

    if (req) {
        req->owner = NULL;
        req->on_close = NULL;
        if (r < 0 && e->kind == SG_ERR_LIMIT) /* still paused: there is no room now */
            reply_sg_error(req, e);
        else if (r < 0)
            reply_gone(req, b);
        else
            answer(req, b, port);
    }
    sandbox_unref(a->sandbox);
    free(a);
}

static void on_client_gone(struct http_req *req)
{
    ((struct arrival *)req->owner)->req = NULL;
}

/* Wakes a paused sandbox only for a client who may use it. Any other client gets the refusal that a
 * running sandbox would give; /health refuses nobody, so it answers that the sandbox does not
 * run. */
static bool may_wake(struct http_req *req, struct sandbox *b, unsigned port)
{
    bool allowed = port == FRONT_ENVD_PORT
                       ? envd_allows(b, req)
                       : forward_allows(b, port, req) &&
                             (port != FRONT_INTERPRETER_PORT || interpreter_allows(b, req));

    if (allowed)
        return true;
    if (port == FRONT_ENVD_PORT && strcmp(req->path, "/health") == 0)
        reply_gone(req, b);
    else
        answer(req, b, port);
    return false;
}

static void to_sandbox(struct http_req *req, const char *id, unsigned port)
{
    struct sandbox *b = sandbox_find(front_of(req), id);

    request_log_of(req)->data_plane = true;
    request_log_about(req, b ? b->spec.tenant : NULL, id);
    if (!b) {
        reply_unknown(req, id);
        return;
    }
    if (!request_log_has_room(req))
        return;
    if (b->state == SANDBOX_RUNNING && b->busy != BUSY_PAUSING) {
        answer(req, b, port);
        return;
    }
    if (!may_wake(req, b, port))
        return;
    struct arrival *a = NEW(struct arrival, .req = req, .sandbox = sandbox_ref(b), .port = port);
    req->owner = a;
    req->on_close = on_client_gone;
    sandbox_wake(b, on_awake, a);
}

/* A signed address names no sandbox, and old SDKs do not either: the sandbox is found by the signature
 * or by the token. */
static void by_token(struct http_req *req)
{
    struct front *f = front_of(req);
    struct sandbox *b = http_header_get(req, "x-access-token") ? envd_sandbox_by_token(f, req)
                                                               : files_sandbox_by_signature(f, req);

    if (b)
        to_sandbox(req, b->id, FRONT_ENVD_PORT);
    else if (strcmp(req->path, "/health") == 0)
        reply_error(req, 502, "The sandbox was not found");
    else
        reply_error(req, 401, "invalid signature");
}

/* Paths of a sandbox's own API that are asked for without its name. The server's own /health asks for
 * no token. */
static bool is_by_token(const struct http_req *req)
{
    return strcmp(req->path, "/files") == 0 ||
           (strcmp(req->path, "/health") == 0 && http_header_get(req, "x-access-token"));
}

/* Requests about the server's own state are answered even when it has no descriptor left, and by
 * whatever name it is asked. */
static bool is_about_server(const struct http_req *req)
{
    return strcmp(req->path, "/metrics") == 0 || strcmp(req->path, "/health") == 0;
}

static void route(struct http_req *req)
{
    const char *named = http_header_get(req, "e2b-sandbox-id");
    const char *port_text = http_header_get(req, "e2b-sandbox-port");
    unsigned host_port = 0, port = FRONT_ENVD_PORT;
    char host_id[ID_LEN + 1], id[ID_LEN + 1];
    bool by_host =
        dispatch_parse_host(req->host, front_of(req)->settings.domain, &host_port, host_id);

    if (named) {
        size_t len = strcspn(named, "-");
        memset(id, 0, sizeof(id));
        memcpy(id, named, len < ID_LEN ? len : ID_LEN);
        if (port_text && parse_port(port_text, strlen(port_text), &port) < 0) {
            reply_error(req, 400, "E2b-Sandbox-Port must be between 1 and 65535");
            return;
        }
        if (by_host && (strcmp(id, host_id) != 0 || (port_text && port != host_port))) {
            reply_error(req, 400, "Host and E2b-Sandbox-Id name different sandboxes or ports");
            return;
        }
        if (len != ID_LEN || !id_valid(id)) {
            reply_unknown(req, named);
            return;
        }
        to_sandbox(req, id, by_host ? host_port : port);
    } else if (by_host) {
        to_sandbox(req, host_id, host_port);
    } else if (is_by_token(req)) {
        by_token(req);
    } else if (!is_about_server(req) && stray_refused(req)) {
        return;
    } else if (strncmp(req->path, "/v1/", strlen("/v1/")) == 0) {
        v1_request(req);
    } else if (strcmp(req->path, "/mcp") == 0) {
        mcp_request(req);
    } else if (strncmp(req->path, UPLOAD_PREFIX, strlen(UPLOAD_PREFIX)) == 0) {
        upload_request(req);
    } else if (strncmp(req->path, WORKLOAD_PREFIX, strlen(WORKLOAD_PREFIX)) == 0) {
        workload_request(req);
    } else if (strcmp(req->path, "/metrics") == 0) {
        metrics_answer(req);
    } else if (drain_refuses(req, 0)) {
        return;
    } else if (strncmp(req->path, VOLUME_CONTENT, strlen(VOLUME_CONTENT)) == 0) {
        volume_content_request(req);
    } else {
        e2b_request(req);
    }
}

void dispatch_request(struct http_req *req)
{
    request_log_begin(req);
    dispatch_around(req, true);
    if (req->scarce && !is_about_server(req)) {
        http_add_header(req, "Retry-After", "1");
        reply_error(req, 503,
                    "the server has no descriptor left for more connections: close some, or raise "
                    "its limit "
                    "(LimitNOFILE= of the service)");
    } else {
        route(req);
    }
    dispatch_around(req, false);
}

void dispatch_around(struct http_req *req, bool in)
{
    static struct trace_ref outside;

    operation_request(in ? req->id : NULL, NULL);
    if (in)
        outside = operation_enter(request_log_trace(req));
    else
        operation_leave(&outside);
}
