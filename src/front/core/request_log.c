#include "front/core/request_log.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/share.h"
#include "front/core/reply.h"
#include "front/telemetry/figures.h"

static const char *const status_classes[] = {"none", "1xx", "2xx", "3xx", "4xx", "5xx"};

void request_log_begin(struct http_req *req)
{
    struct request_log *a = http_req_alloc(req, sizeof(*a));
    const char *traceparent = http_header_get(req, "traceparent");

    a->began_ns = clock_ns();
    a->fault = FAULT_MAX_;
    if (traceparent)
        trace_parse(traceparent, &a->trace);
    req->note = a;
}

struct request_log *request_log_of(const struct http_req *req)
{
    return req->note;
}

const struct trace_ref *request_log_trace(const struct http_req *req)
{
    static const struct trace_ref none;
    const struct request_log *a = request_log_of(req);

    return a ? &a->trace : &none;
}

void request_log_blame(struct http_req *req, enum fault fault)
{
    struct request_log *a = request_log_of(req);

    if (a)
        a->fault = fault;
}

/* Counts the requests of a tenant that are not over. */
struct asking {
    struct list link;
    char tenant[ID_LEN + 1];
    size_t n;
};
static struct list all_asking;

static struct asking *asking_begin(const char *tenant)
{
    struct asking *a =
        LIST_FIND(struct asking, at, &all_asking, link, strcmp(at->tenant, tenant) == 0);

    if (!a) {
        a = xcalloc(1, sizeof(*a));
        snprintf(a->tenant, sizeof(a->tenant), "%s", tenant);
        list_push(&all_asking, &a->link);
    }
    a->n++;
    return a;
}

static void asking_end(struct asking *a)
{
    if (!a || --a->n > 0)
        return;
    list_remove(&a->link);
    free(a);
}

bool request_log_has_room(struct http_req *req)
{
    const struct request_log *a = request_log_of(req);
    const struct http_server *s = front_of(req)->http;

    if (!a || !a->asking ||
        share_has_room(a->asking->n - 1, http_server_connections(s), http_server_conns_max(s)))
        return true;
    http_add_header(req, "Retry-After", "1");
    reply_error(req, 429, "Too many open requests of this tenant: end some first");
    return false;
}

void request_log_about(struct http_req *req, const char *tenant, const char *sandbox_id)
{
    struct request_log *a = request_log_of(req);

    if (a && tenant)
        snprintf(a->tenant, sizeof(a->tenant), "%s", tenant);
    if (a && tenant && !a->asking)
        a->asking = asking_begin(tenant);
    if (tenant)
        req->party = work_party_of(tenant);
    if (a && sandbox_id)
        snprintf(a->sandbox_id, sizeof(a->sandbox_id), "%s", sandbox_id);
}

static void count(const struct http_req *req, const struct request_log *a)
{
    unsigned class = req->status > 0 ? (unsigned)req->status / 100 : 0;

    figure_add(FIG_REQUESTS, status_classes[class < ARRAY_SIZE(status_classes) ? class : 0], 1);
    if (a && req->answered_ns)
        figure_observe(FIG_REQUEST_SECONDS, a->data_plane ? "data" : "control",
                       req->answered_ns - a->began_ns);
}

/* Only the id of the trace: the id of the span is the client's own. */
static const char *trace_text(const struct request_log *a, char *buf, size_t cap)
{
    if (!a || !a->trace.set)
        return NULL;
    for (size_t i = 0; i < sizeof(a->trace.trace); i++)
        snprintf(buf + 2 * i, cap - 2 * i, "%02x", a->trace.trace[i]);
    return buf;
}

/* A route that is not there, and a full disk of the client's own sandbox, are nothing that the operator
 * could mend. */
static enum fault fault_of_status(int status)
{
    return status >= 500 && status != 501 && status != 507 ? FAULT_INFRASTRUCTURE : FAULT_CLIENT;
}

/* Logs a request that failed. A client that left before it had an answer is logged only at level
 * debug. */
static void tell(const struct http_req *req, const struct request_log *a)
{
    char trace[2 * sizeof(a->trace.trace) + 1];
    int status = req->fault > req->status ? req->fault : req->status;
    enum fault fault = a && a->fault != FAULT_MAX_ ? a->fault : fault_of_status(status);
    enum settings_level level = status == 0                                      ? LEVEL_DEBUG
                                : status >= 500 && fault == FAULT_INFRASTRUCTURE ? LEVEL_ERROR
                                                                                 : LEVEL_INFO;
    struct log_about about = {.fault = fault,
                              .request = req->id,
                              .trace = trace_text(a, trace, sizeof(trace)),
                              .tenant = a ? a->tenant : NULL,
                              .sandbox_id = a ? a->sandbox_id : NULL,
                              .method = req->method_name,
                              .path = req->path,
                              .peer = req->peer,
                              .status = status,
                              .ns = a ? clock_ns() - a->began_ns : 0};

    if (a && req->answered_ns)
        about.ns = req->answered_ns - a->began_ns;
    log_with(level, &about, "%s",
             req->fault    ? req->fault_text
             : status == 0 ? "the client closed the connection before the answer"
                           : http_status_text(status));
}

void request_log_over(struct http_req *req)
{
    struct request_log *a = request_log_of(req);

    if (a)
        asking_end(steal_ptr(&a->asking));
    count(req, a);
    if (req->status == 0 || req->status >= 400 || req->fault >= 400)
        tell(req, a);
}
