#include "front/core/reply.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lib/text/json.h"
#include "lib/text/json_check.h"
#include "front/core/request_log.h"
#include "front/core/ended_logs.h"

#define JSON_BODY_DEPTH  32
#define JSON_BODY_VALUES (512u * 1024)
#define ERROR_MAX        4096
#define LOCATION_MAX     (16u * 1024)

void reply_json(struct http_req *req, int status, const struct strbuf *json)
{
    if (json->truncated)
        reply_error(req, 500, "the answer is too large");
    else
        http_reply(req, status, "application/json", json->buf, json->len);
}

void reply_empty(struct http_req *req, int status)
{
    http_reply(req, status, NULL, NULL, 0);
}

/* Whether the request is for a route of ours: E2B's clients compare whole bodies. */
static bool is_ours(const struct http_req *req)
{
    const struct request_log *log = request_log_of(req);

    return !(log && log->data_plane) &&
           (strncmp(req->path, "/v1/", strlen("/v1/")) == 0 || strcmp(req->path, "/mcp") == 0);
}

void reply_put_fault(struct http_req *req, struct json *j, int status, const char *message)
{
    if (is_ours(req))
        jw_string(jw_key(j, "requestId"), req->id);
    http_failed(req, status, message);
}

void reply_error(struct http_req *req, int status, const char *fmt, ...)
{
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(ERROR_MAX);
    char message[1024];
    struct json j = {.out = &out};
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(message, sizeof(message), fmt, ap);
    va_end(ap);
    jw_object_begin(&j);
    jw_i64(jw_key(&j, "code"), status);
    jw_bytes(jw_key(&j, "message"), message, strlen(message));
    reply_put_fault(req, &j, status, message);
    jw_object_end(&j);
    http_reply(req, status, "application/json", out.buf, out.len);
}

int status_of_error(const struct sg_error *e)
{
    switch (e->kind) {
    case SG_ERR_INVALID:
        return 400;
    case SG_ERR_NOT_FOUND:
        return 404;
    case SG_ERR_DENIED:
        return 403;
    case SG_ERR_UNSUPPORTED:
        return 501;
    case SG_ERR_LIMIT:
        return e->code == -EDQUOT ? 429 : e->code == -ENOSPC ? 507 : 503;
    case SG_ERR_GONE:
        return e->code == -EALREADY || e->code == -EBUSY || e->code == -EOWNERDEAD ? 409 : 404;
    case SG_ERR_NONE:
    case SG_ERR_INTERNAL:
    case SG_ERR_MAX_:
        break;
    }
    return e->code == -EALREADY || e->code == -EBUSY ? 409 : 500;
}

int status_of_call(int status)
{
    /* 429: the sandbox has used up its processes, memory or descriptors. */
    static const struct {
        int error, status;
    } statuses[] = {{EINVAL, 400}, {ENAMETOOLONG, 400}, {ENOTDIR, 400}, {EISDIR, 400},
                    {ELOOP, 400},  {EEXIST, 400},       {EUSERS, 401},  {EACCES, 403},
                    {EPERM, 403},  {EROFS, 403},        {ENOENT, 404},  {ESRCH, 404},
                    {E2BIG, 413},  {EAGAIN, 429},       {ENOMEM, 429},  {EMFILE, 429},
                    {ENFILE, 429}, {EOPNOTSUPP, 501},   {ENOSPC, 507},  {EDQUOT, 507}};

    for (size_t i = 0; i < ARRAY_SIZE(statuses); i++)
        if (statuses[i].error == status)
            return statuses[i].status;
    return 409;
}

void reply_sg_error(struct http_req *req, const struct sg_error *e)
{
    int status = status_of_error(e);

    /* The reason why a sandbox was lost is for its user too, so it is not hidden. */
    if (status == 500 && e->code != -ESHUTDOWN) {
        http_failed(req, status, e->message);
        reply_error(req, status, "Internal error: the server's log has the reason");
        return;
    }
    /* A place, memory or the database is missing now, and may be there in a moment. */
    if (status == 503)
        http_add_header(req, "Retry-After", "1");
    reply_error(req, status, "%s", e->message);
}

void reply_no_sandbox(struct http_req *req, const char *tenant, const char *id)
{
    const struct sandbox_end *end = ended_logs_end(tenant, id);

    if (end && sandbox_end_is_news(end)) {
        request_log_about(req, NULL, id);
        request_log_blame(req, end_kind(end->why)->fault);
        reply_error(req, 404, "Sandbox \"%.64s\" doesn't exist any more: it has ended: %s", id,
                    sandbox_end_text(end));
        return;
    }
    reply_error(req, 404, "Sandbox \"%.64s\" doesn't exist or you don't have access to it", id);
}

void reply_add_location(struct http_req *req, const char *url)
{
    AUTO(strbuf_done) struct strbuf location = strbuf_upto(LOCATION_MAX);
    size_t len = strlen(url);

    while (len > 0 && url[len - 1] == '/')
        len--;
    strbuf_add(&location, url, len);
    /* Path and query, not the request's target: that may be a whole URL. */
    strbuf_addstr(&location, req->path);
    if (req->query[0])
        strbuf_addf(&location, "?%s", req->query);
    http_add_header(req, "Location", location.buf);
}

void reply_elsewhere(struct http_req *req, const char *url)
{
    reply_add_location(req, url);
    reply_error(req, 307, "this path is on another server: %s", url);
}

/* Answers "not found": E2B's clients go by the status, people by the message. */
static void put_not_found(struct http_req *req, const char *id, const struct sandbox_end *end)
{
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(ERROR_MAX);
    bool news = end && sandbox_end_is_news(end);
    char message[64 + SANDBOX_END_DETAIL];
    struct json j = {.out = &out};

    snprintf(message, sizeof(message), "The sandbox was not found%s%s",
             news ? ": it has ended: " : "", news ? sandbox_end_text(end) : "");
    jw_object_begin(&j);
    jw_bytes(jw_key(&j, "sandboxId"), id, strnlen(id, 64));
    jw_string(jw_key(&j, "message"), message);
    jw_i64(jw_key(&j, "code"), 502);
    if (news) {
        jw_string(jw_key(&j, "reason"), end_kind(end->why)->word);
        jw_string(jw_key(&j, "detail"), sandbox_end_text(end));
        jw_string(jw_key(&j, "layer"), fault_name(end_kind(end->why)->fault));
    }
    reply_put_fault(req, &j, 502, message);
    jw_object_end(&j);
    request_log_about(req, NULL, id_valid(id) ? id : NULL);
    request_log_blame(req, news ? end_kind(end->why)->fault : FAULT_SANDBOX);
    http_reply(req, 502, "application/json", out.buf, out.len);
}

void reply_gone(struct http_req *req, const struct sandbox *b)
{
    put_not_found(req, b->id, &b->end);
}

void reply_unknown(struct http_req *req, const char *id)
{
    put_not_found(req, id, ended_logs_end(NULL, id));
}

/* Pages of any origin may ask: access needs a token in a header that no browser adds by itself.
 * Authorization is listed because "*" does not cover it. */
void reply_add_cors(struct http_req *req)
{
    http_add_header(req, "Access-Control-Allow-Origin", "*");
    http_add_header(req, "Access-Control-Expose-Headers",
                    "Grpc-Status, Grpc-Message, Grpc-Status-Details-Bin, Location, Cache-Control, "
                    "X-Content-Type-Options, X-Request-Id");
}

void reply_preflight(struct http_req *req)
{
    http_add_header(req, "Access-Control-Allow-Methods", "GET, HEAD, POST, PUT, PATCH, DELETE");
    http_add_header(req, "Access-Control-Allow-Headers", "*, Authorization");
    http_add_header(req, "Access-Control-Max-Age", "7200");
    reply_empty(req, 204);
}

/* jansson would accept 2,048 levels; honest requests have only a few. */
int body_weight_check(const char *body, size_t len, struct sg_error *e)
{
    struct json_weight w = json_weigh(body, len);

    if (w.depth > JSON_BODY_DEPTH)
        return err_invalid(e, "nested more than %d levels deep", JSON_BODY_DEPTH);
    if (w.values > JSON_BODY_VALUES)
        return err_set(e, SG_ERR_INVALID, -E2BIG,
                       "more than %u values, of which an object or array counts as %d",
                       JSON_BODY_VALUES, JSON_WEIGHT_NESTED);
    return 0;
}

/* Parses a body; a long one on a thread. */
static void *make_json(const void *schema UNUSED, const char *body, size_t len)
{
    struct json_made *m = xcalloc(1, sizeof(*m));

    m->empty = len == 0;
    if (m->empty)
        m->value = json_object();
    else if (body_weight_check(body, len, &m->heavy) == 0)
        m->value = json_loadb(body, len, JSON_REJECT_DUPLICATES, &m->wrong);
    return m;
}

static void drop_json(void *made)
{
    json_decref(((struct json_made *)made)->value);
    free(made);
}

const struct http_make json_make = {make_json, drop_json};

json_t *request_json(struct http_req *req, void *made)
{
    AUTO(free_p) struct json_made *m = made;

    if (m->heavy.kind != SG_ERR_NONE) {
        reply_error(req, m->heavy.code == -E2BIG ? 413 : 400, "Error when parsing request: %s",
                    m->heavy.message);
        return NULL;
    }
    if (!m->value) {
        /* jansson's message contains a piece of the body, so it is not logged. */
        http_failed(req, 400, "the body is not valid JSON");
        reply_error(req, 400, "Error when parsing request: not valid JSON at byte %d%s%s",
                    m->wrong.position, req->body_secret ? "" : ": ",
                    req->body_secret ? "" : m->wrong.text);
        return NULL;
    }
    if (!json_is_object(m->value)) {
        json_decref(m->value);
        reply_error(req, 400, "Error when parsing request: the body must be a JSON object");
        return NULL;
    }
    return m->value;
}
