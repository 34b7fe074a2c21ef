#include <string.h>
#include <strings.h>

#include "lib/json/values.h"
#include "lib/text/json.h"
#include "front/contexts/context.h"
#include "front/core/auth.h"
#include "front/core/reply.h"
#include "front/mcp/call.h"
#include "front/mcp/mcp.h"
#include "front/mcp/methods.h"
#include "front/mcp/origin.h"

#define BODY_MAX  (8u * 1024 * 1024)
#define BATCH_MAX 32
#define ALLOWED   "POST, DELETE, OPTIONS"

/* ---- web pages ------------------------------------------------------------------------------- */

/* Checks the Origin header. False: the request has been refused. */
static bool admit_origin(struct http_req *req)
{
    const char *origin = http_header_get(req, "origin");

    if (!origin)
        return true;
    if (!origin_allowed(&front_of(req)->settings, origin))
        return exchange_refuse(
            req, 403, MESSAGE_INVALID_REQUEST,
            "Pages of this origin are not allowed: it is neither this machine nor a "
            "name of the server");
    http_add_header(req, "Access-Control-Allow-Origin", origin);
    http_add_header(req, "Access-Control-Expose-Headers", "Mcp-Session-Id");
    http_add_header(req, "Vary", "Origin");
    return true;
}

static void preflight(struct http_req *req)
{
    http_add_header(req, "Access-Control-Allow-Methods", ALLOWED);
    http_add_header(req, "Access-Control-Allow-Headers", "*, Authorization");
    http_add_header(req, "Access-Control-Max-Age", "7200");
    reply_empty(req, 204);
}

/* ---- checks of a POST ------------------------------------------------------------------------ */

/* Whether a list of media types has this one, or, if `any`, the one that stands for all. */
static bool accepts(const char *list, const char *type, bool any)
{
    size_t len = strlen(type);

    for (const char *p = list; *p; p += strcspn(p, ","), p += *p == ',') {
        p += strspn(p, " \t");
        size_t n = strcspn(p, ",; \t");
        if ((n == len && strncasecmp(p, type, len) == 0) ||
            (any && n == 3 && strncmp(p, "*/*", 3) == 0))
            return true;
    }
    return false;
}

static bool read_accept(struct exchange *x)
{
    const char *accept = http_header_get(x->http, "accept");

    x->may_stream = accept && accepts(accept, "text/event-stream", false);
    x->may_json = !accept || accepts(accept, "application/json", true);
    if (x->may_stream || x->may_json)
        return true;
    return exchange_refuse(x->http, 406, MESSAGE_INVALID_REQUEST,
                           "Accept must have application/json, text/event-stream, or both");
}

static bool read_version(struct exchange *x)
{
    const char *text = http_header_get(x->http, "mcp-protocol-version");
    AUTO(strbuf_done) struct strbuf data = strbuf_upto(1024), out = strbuf_upto(2048);

    x->version = MCP_2025_03_26; /* this version had no such header */
    if (!text || version_read(text, &x->version))
        return true;
    version_error_data(&data, text);
    message_error(&out, json_object_get(x->body, "id"), MESSAGE_BAD_VERSION,
                  "Unsupported protocol version", data.buf);
    http_failed(x->http, 400, "Unsupported protocol version");
    http_reply(x->http, 400, "application/json", out.buf, out.len);
    return false;
}

static bool is_initialize(const json_t *body)
{
    return strcmp(jr_text(body, "method"), "initialize") == 0;
}

/* Reads the session, in versions that have sessions. `initialize` has none yet. */
static bool read_session(struct exchange *x)
{
    const char *id = http_header_get(x->http, "mcp-session-id");

    if (!version_has_sessions(x->version) || is_initialize(x->body))
        return true;
    if (!id)
        return exchange_refuse(x->http, 400, MESSAGE_INVALID_REQUEST,
                               "Mcp-Session-Id is missing: begin with initialize");
    if (!mcp_session_valid(x->front, x->tenant.id, id))
        return exchange_refuse(x->http, 404, MESSAGE_INVALID_REQUEST,
                               "There is no such session: begin with initialize");
    memcpy(x->session, id, sizeof(x->session));
    return true;
}

static const char *configured(struct http_req *req, const char *header, const char *parameter)
{
    const char *v = http_header_get(req, header);

    return v ? v : http_query_get(req, parameter);
}

static bool read_place(struct exchange *x)
{
    struct sg_error e;

    x->conversation = configured(x->http, "sandglass-conversation-id", "conversationId");
    x->path = configured(x->http, "sandglass-path-id", "pathId");
    if ((!x->conversation || context_name_check("conversationId", x->conversation, &e) == 0) &&
        (!x->path || context_name_check("pathId", x->path, &e) == 0))
        return true;
    return exchange_refuse(x->http, 400, MESSAGE_INVALID_PARAMS, "%s", e.message);
}

/* ---- messages -------------------------------------------------------------------------------- */

static void take_message(struct exchange *x, const json_t *v)
{
    struct message m;
    struct sg_error e;

    if (message_read(v, &m, &e) < 0) {
        x->open++;
        x->error_status = 400;
        exchange_error(x, NULL, MESSAGE_INVALID_REQUEST, e.message, NULL);
    } else if (m.kind == MESSAGE_REQUEST) {
        method_request(x, &m);
    } else if (m.kind == MESSAGE_NOTIFICATION) {
        method_notification(x, &m);
    }
}

/* The message number i of a body; NULL: it has no more. */
static const json_t *message_at(const json_t *body, size_t i)
{
    return json_is_array(body) ? json_array_get(body, i) : i == 0 ? body : NULL;
}

/* Whether the body has anything to answer: a request, or something that is no message. */
static bool wants_answer(const json_t *body)
{
    struct message m;
    const json_t *v;

    for (size_t i = 0; (v = message_at(body, i)); i++)
        if (message_read(v, &m, NULL) < 0 || m.kind == MESSAGE_REQUEST)
            return true;
    return false;
}

static void take_body(struct exchange *x)
{
    bool wanted = wants_answer(x->body);
    const json_t *v;

    x->batch = json_is_array(x->body);
    if (wanted)
        exchange_begin(x);
    for (size_t i = 0; (v = message_at(x->body, i)); i++)
        take_message(x, v);
    if (wanted)
        exchange_end(x);
    else
        reply_empty(x->http, 202);
}

static bool check_batch(struct exchange *x)
{
    if (!json_is_array(x->body))
        return true;
    if (x->version != MCP_2025_03_26)
        return exchange_refuse(x->http, 400, MESSAGE_INVALID_REQUEST,
                               "Only version 2025-03-26 allows several messages at once");
    if (json_array_size(x->body) == 0 || json_array_size(x->body) > BATCH_MAX)
        return exchange_refuse(x->http, 400, MESSAGE_INVALID_REQUEST,
                               "Give 1 to %d messages at once", BATCH_MAX);
    return true;
}

static void on_body(struct http_req *req, void *made)
{
    AUTO(free_p) struct json_made *m = made;
    struct exchange *x = req->owner;

    if (m->heavy.kind != SG_ERR_NONE) {
        exchange_refuse(req, m->heavy.code == -E2BIG ? 413 : 400, MESSAGE_INVALID_REQUEST,
                        "The message is too large: %s", m->heavy.message);
        return;
    }
    x->body = m->value;
    if (!x->body || m->empty) {
        exchange_refuse(req, 400, MESSAGE_PARSE_ERROR, "Parse error at byte %d: %s",
                        m->wrong.position, m->empty ? "there is none" : m->wrong.text);
        json_decref(steal_ptr(&x->body));
        return;
    }
    if (read_version(x) && check_batch(x) && read_session(x) && read_place(x))
        take_body(x);
    /* The calls have taken what they need from the body by now. */
    json_decref(steal_ptr(&x->body));
}

static void post(struct http_req *req, const struct store_tenant *tenant)
{
    const char *type = http_header_get(req, "content-type");
    struct exchange *x = exchange_new(req, tenant);

    if (type && !accepts(type, "application/json", false)) {
        exchange_refuse(req, 415, MESSAGE_INVALID_REQUEST, "Content-Type must be application/json");
        return;
    }
    if (read_accept(x))
        http_body_make(req, BODY_MAX, &json_make, NULL, on_body);
}

/* ---- the end of a session -------------------------------------------------------------------- */

/* Sandboxes that are left expire. */
static void on_cleaned(void *arg UNUSED, int r UNUSED, const struct sg_error *e UNUSED,
                       size_t n UNUSED)
{
}

/* Ends a session: its calls, and the sandboxes of its own conversation, whose name nobody else
 * knows. */
static void end_session(struct http_req *req, const struct store_tenant *tenant)
{
    const char *id = http_header_get(req, "mcp-session-id");

    if (!id) {
        exchange_refuse(req, 400, MESSAGE_INVALID_REQUEST, "Mcp-Session-Id is missing");
        return;
    }
    if (!mcp_session_valid(front_of(req), tenant->id, id)) {
        exchange_refuse(req, 404, MESSAGE_INVALID_REQUEST, "There is no such session");
        return;
    }
    mcp_session_end(id);
    calls_end(id);
    context_cleanup(front_of(req), tenant->id, id, on_cleaned, NULL);
    reply_empty(req, 204);
}

void mcp_request(struct http_req *req)
{
    if (!admit_origin(req))
        return;
    if (req->method == HTTP_M_OPTIONS) {
        preflight(req);
        return;
    }
    const struct store_tenant *tenant = auth_tenant(req);
    if (!tenant)
        return;
    if (req->method == HTTP_M_POST) {
        post(req, tenant);
    } else if (req->method == HTTP_M_DELETE) {
        end_session(req, tenant);
    } else {
        http_add_header(req, "Allow", ALLOWED);
        exchange_refuse(req, 405, MESSAGE_INVALID_REQUEST, "Messages are sent with POST");
    }
}
