#include "front/e2b/request.h"

#include "front/core/request_log.h"

static void drop_if_over(struct e2b_req *q)
{
    if (q->http || q->waiting > 0)
        return;
    json_decref(q->body);
    free(q);
}

static void on_close(struct http_req *req)
{
    struct e2b_req *q = e2b_of(req);

    if (q->on_gone)
        q->on_gone(q->work);
    q->http = NULL;
    drop_if_over(q);
}

static void on_body(struct http_req *req, void *made)
{
    struct e2b_req *q = e2b_of(req);

    q->in.object = q->body = request_json(req, made);
    if (q->body)
        q->handler(req);
}

void e2b_with_body(struct http_req *req, size_t max, void (*handler)(struct http_req *req))
{
    e2b_of(req)->handler = handler;
    http_body_make(req, max, &json_make, NULL, on_body);
}

void e2b_begin(struct http_req *req, const struct store_tenant *tenant,
               const struct http_route *route)
{
    struct e2b_req *q = NEW(struct e2b_req, .http = req, .front = front_of(req), .tenant = *tenant);

    q->in = request_fields(NULL, &q->wrong);
    req->owner = q;
    req->on_close = on_close;
    if (route->body_max > 0)
        e2b_with_body(req, route->body_max, route->handler);
    else
        route->handler(req);
}

bool e2b_read(struct e2b_req *q)
{
    bool right = q->in.r == 0;

    if (!right)
        reply_sg_error(q->http, &q->wrong); /* q may be gone */
    return right;
}

const struct http_route *e2b_route(struct http_req *req, const struct http_route *routes, size_t n)
{
    AUTO(strbuf_done) struct strbuf allow = strbuf_upto(256);
    const struct http_route *route = NULL;

    switch (http_route_find(routes, n, req, &route, &allow)) {
    case HTTP_FOUND:
        return route;
    case HTTP_NO_METHOD:
        http_add_header(req, "Allow", allow.buf);
        reply_error(req, 405, "method %s is not allowed here; allowed: %s", req->method_name,
                    allow.buf);
        break;
    case HTTP_NO_PATH:
        reply_error(req, 404, "no such route: %.200s", req->path);
        break;
    }
    return NULL;
}

void e2b_wait(struct e2b_req *q)
{
    q->waiting++;
}

bool e2b_back(struct e2b_req *q)
{
    bool client_there = q->http != NULL;

    q->waiting--;
    drop_if_over(q);
    return client_there;
}

struct json *reply_begin(struct reply *r, size_t max)
{
    strbuf_init(&r->text, max);
    jw_init(&r->json, &r->text);
    jw_object_begin(&r->json);
    return &r->json;
}

void reply_send(struct e2b_req *q, int status, struct reply *r)
{
    jw_object_end(&r->json);
    reply_json(q->http, status, &r->text);
    strbuf_done(&r->text);
}

int e2b_short_id(const char *id, char ret[ID_LEN + 1])
{
    size_t len = strcspn(id, "-");

    if (len == 0 || strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789") < len)
        return -EINVAL;
    /* An id that is too long names no sandbox, and "" gives the answer that says so. */
    snprintf(ret, ID_LEN + 1, "%.*s", (int)(len <= ID_LEN ? len : 0), id);
    return 0;
}

struct sandbox *e2b_sandbox(struct e2b_req *q)
{
    const char *id = q->http->params[0];
    struct sandbox *b = NULL;

    if (e2b_short_id(id, q->id) < 0) {
        reply_error(q->http, 400, "Invalid sandbox ID");
        return NULL;
    }
    request_log_about(q->http, NULL, q->id);
    if (q->id[0])
        b = sandbox_get(q->front, q->tenant.id, q->id);
    if (!b)
        reply_no_sandbox(q->http, q->tenant.id, q->id[0] ? q->id : id);
    return b;
}

void e2b_failed(struct e2b_req *q, const struct sg_error *e)
{
    if (e->kind == SG_ERR_NOT_FOUND && q->id[0])
        reply_no_sandbox(q->http, q->tenant.id, q->id);
    else
        reply_sg_error(q->http, e);
}

bool e2b_done(struct e2b_req *q, int r, const struct sg_error *e)
{
    if (!e2b_back(q))
        return false;
    if (r < 0)
        e2b_failed(q, e);
    return r >= 0;
}

void e2b_done_empty(void *arg, struct sandbox *b UNUSED, int r, const struct sg_error *e)
{
    struct e2b_req *q = arg;

    if (e2b_done(q, r, e))
        reply_empty(q->http, 204);
}

uint32_t e2b_sandbox_limit(const struct e2b_req *q)
{
    return q->tenant.max_sandboxes ? q->tenant.max_sandboxes : q->front->settings.tenant_sandboxes;
}
