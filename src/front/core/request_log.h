/* What goes along with a request through the front: its place in a trace, and what the log says of
 * it when it is over.
 *
 * Every request has an id (http.h), which is in its answer, X-Request-Id, and in the body of an
 * error, "requestId". When a request is over one line of the log tells of it if it failed: `client`
 * is to blame for 4xx, `infrastructure` for 5xx, unless whoever answered knows better. The path is
 * in it and the query is not, in which signatures and tokens come.
 *
 * One that was not begun (a framing error, a test) has none: every function takes that. */
#pragma once

#include "front/core/front.h"
#include "lib/log/log.h"
#include "front/telemetry/trace.h"

struct request_log {
    uint64_t began_ns;
    struct trace_ref trace; /* the client's, or of the span that stands for this request */
    enum fault fault;       /* of a failure; FAULT_MAX_: as its status says */
    char tenant[ID_LEN + 1], sandbox_id[ID_LEN + 1]; /* "" while not known */
    bool data_plane;
    struct asking *asking; /* with the others of its tenant; NULL while that is not known */
};

/* front/main/dispatch.c, for each request that has come. */
void request_log_begin(struct http_req *req);
struct request_log *request_log_of(const struct http_req *req); /* NULL if it was not begun */
/* Where what it asks for hangs in a trace; not set if the client said nothing. */
const struct trace_ref *request_log_trace(const struct http_req *req);
void request_log_blame(struct http_req *req, enum fault fault);
/* Who asks, and for which sandbox; NULL: as it was. */
void request_log_about(struct http_req *req, const char *tenant, const char *sandbox_id);
/* Whether the tenant may have this one open too: streams and uploads hold connections, of which
 * there are conns_max for all (lib/base/share.h). False: it was answered, 429. */
bool request_log_has_room(struct http_req *req);
/* It is over: hook of the HTTP server. */
void request_log_over(struct http_req *req);
