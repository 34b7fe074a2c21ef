/* Data that accompany a request through the front: its place in a trace, and the facts for its log
 * line.
 *
 * Every request has an id (http.h). The id is in the answer's header X-Request-Id and, on routes
 * that are not E2B's, in the body of an error, "requestId". When a request that failed is over, one log line reports it. The fault
 * is `client` for 4xx and `infrastructure` for 5xx, unless the code that answered knows better. The
 * line has the path but not the query, since signatures and tokens come in queries.
 *
 * A request that was never begun here (a framing error, a test) has no such data: every function
 * accepts that. */
#pragma once

#include "front/core/front.h"
#include "lib/log/log.h"
#include "front/telemetry/trace.h"

struct request_log {
    uint64_t began_ns;
    struct trace_ref trace; /* the client's, or that of the span for this request */
    enum fault fault;       /* of a failure; FAULT_MAX_: the status decides */
    char tenant[ID_LEN + 1], sandbox_id[ID_LEN + 1]; /* "" while not known */
    bool data_plane;
    struct asking *asking; /* its tenant's open requests; NULL while not known */
};

/* front/main/dispatch.c calls this for each request that arrives. */
void request_log_begin(struct http_req *req);
struct request_log *request_log_of(const struct http_req *req); /* NULL if it was not begun */
/* The parent for what the request does; not set if the client sent no trace. */
const struct trace_ref *request_log_trace(const struct http_req *req);
void request_log_blame(struct http_req *req, enum fault fault);
/* Sets the tenant that asks and the sandbox that it asks for; NULL: unchanged. */
void request_log_about(struct http_req *req, const char *tenant, const char *sandbox_id);
/* Whether the tenant may have one more request open. Streams and uploads hold connections, and all
 * tenants share conns_max of them (lib/base/share.h). False: 429 was answered. */
bool request_log_has_room(struct http_req *req);
/* The request is over: a hook of the HTTP server. */
void request_log_over(struct http_req *req);
