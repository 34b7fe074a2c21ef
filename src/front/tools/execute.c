/* POST /v1/execute runs, without a context, code, or one file, or one of several files. */
#include <assert.h>

#include "front/tools/routes.h"
#include "front/tools/outlet.h"
#include "front/tools/tools.h"

#define ANSWER_MAX (12 * ONCE_OUTPUT_MAX + 64u * 1024) /* JSON may write a byte as six */
#define MIB        (1024u * 1024)

const char once_description[] =
    "Runs a program once, in a new sandbox without network that is ended afterwards, and returns "
    "what it printed and how it ended. Nothing is kept from one call to the next.";

static const char schema[] =
    "{\"type\":\"object\",\"properties\":{"
    "\"code\":{\"type\":\"string\",\"minLength\":1,\"description\":\"The program.\"},"
    "\"file\":{\"type\":\"string\",\"description\":\"Instead of code: the path of the program, one "
    "of files.\"},"
    "\"files\":{\"type\":\"array\",\"maxItems\":64,\"items\":{\"type\":\"object\",\"properties\":{"
    "\"path\":{\"type\":\"string\"},\"content\":{\"type\":\"string\"}},"
    "\"required\":[\"path\",\"content\"],\"additionalProperties\":false},"
    "\"description\":\"Files beside the program.\"},"
    "\"language\":{\"type\":\"string\",\"enum\":[" LANGUAGES_JSON
    "],\"description\":\"Of the program. Without it: what the suffix of file says, "
    "or python.\"},"
    "\"stdin\":{\"type\":\"string\",\"description\":\"What the program reads from standard "
    "input.\"},"
    "\"timeoutSeconds\":{\"type\":\"number\",\"minimum\":1,\"maximum\":300,\"default\":30},"
    "\"envs\":{\"type\":\"object\",\"additionalProperties\":{\"type\":\"string\"}},"
    "\"limits\":{\"type\":\"object\",\"properties\":{\"memoryMb\":{\"type\":\"number\"},"
    "\"cpus\":{\"type\":\"number\"},\"outputBytes\":{\"type\":\"number\"}},"
    "\"additionalProperties\":false},"
    "\"sessionId\":{\"type\":\"string\",\"description\":\"Comes back in the answer.\"}},"
    "\"additionalProperties\":false}";

json_t *once_schema(void)
{
    json_t *v = json_loads(schema, JSON_REJECT_DUPLICATES, NULL);

    assert(v);
    return v;
}

/* ---- the answer ------------------------------------------------------------------------------ */

static const char *outcome_text(enum once_outcome o)
{
    static const char *const texts[] = {"success", "timeout", "execution_error", "setup_error"};
    _Static_assert(ARRAY_SIZE(texts) == ONCE_MAX_, "a text for each outcome");

    return texts[o];
}

static void put_refusal(struct json *j, const struct once_result *r, const char *request)
{
    if (!result_put_refusal(j, r->status, &r->refusal, request))
        return;
    jw_string(jw_key(j, "status"), outcome_text(r->outcome));
    jw_string(jw_key(j, "errorMessage"), r->refusal.message);
}

static void put_usage(struct json *j, const struct once_result *r)
{
    jw_object_begin(jw_key(j, "resourceUsage"));
    jw_fixed(jw_key(j, "cpuSeconds"), r->cpu_us / 1000, 3);
    jw_fixed(jw_key(j, "memoryMb"), r->memory_bytes * 10 / MIB, 1);
    jw_u64(jw_key(j, "diskBytes"), r->disk_bytes);
    jw_object_end(j);
}

static void put_outcome(struct json *j, const struct once_result *r)
{
    jw_string(jw_key(j, "status"), outcome_text(r->outcome));
    jw_bytes(jw_key(j, "stdout"), r->out->buf, r->out->len);
    jw_bytes(jw_key(j, "stderr"), r->err->buf, r->err->len);
    jw_key(j, "exitCode");
    if (r->outcome == ONCE_SETUP_ERROR)
        jw_null(j);
    else
        jw_i64(j, r->exit_code);
    jw_fixed(jw_key(j, "duration"), r->ms, 3);
    jw_string(jw_key(j, "errorMessage"), r->message);
    jw_string(jw_key(j, "sessionId"), r->session);
    jw_string(jw_key(j, "sandboxId"), r->sandbox_id);
    result_put_cut(j, r->out_cut, r->err_cut);
    result_put_sanitised(j, r->sanitised);
    put_usage(j, r);
}

void once_result_json(struct json *j, const struct once_result *r, const char *request)
{
    jw_object_begin(j);
    if (r->status != 200)
        put_refusal(j, r, request);
    else
        put_outcome(j, r);
    jw_object_end(j);
}

/* ---- the request ----------------------------------------------------------------------------- */

struct once_http {
    struct http_req *req;
    struct once *once; /* NULL when the program is over */
    struct outlet outlet;
};

static void on_gone(void *work)
{
    struct once_http *h = work;

    if (h->once)
        once_cancel(h->once);
    outlet_done(&h->outlet);
    free(h);
}

static void on_writable(struct http_req *req)
{
    struct once_http *h = e2b_of(req)->work;

    outlet_pump(&h->outlet);
}

static void on_done(void *arg, const struct once_result *r)
{
    AUTO(strbuf_done) struct strbuf body = strbuf_upto(ANSWER_MAX);
    struct once_http *h = arg;
    struct json j = {.out = &body};

    h->once = NULL;
    once_result_json(&j, r, h->req->id);
    if (r->status != 200)
        http_failed(h->req, r->status, r->refusal.message);
    if (r->status == 503)
        http_add_header(h->req, "Retry-After", "1");
    http_start(h->req, r->status, "application/json", (int64_t)body.len);
    outlet_write(&h->outlet, body.buf, body.len);
    outlet_finish(&h->outlet);
}

void execute_once(struct http_req *req)
{
    struct e2b_req *q = e2b_of(req);
    struct sanitise_level sanitise = take_own_fields(q, NULL);

    if (!e2b_read(q))
        return;
    struct once_http *h = NEW(struct once_http, .req = req);
    outlet_init(&h->outlet, req, ANSWER_MAX);
    q->work = h;
    q->on_gone = on_gone;
    req->on_writable = on_writable;
    h->once = once_begin(q->front, &q->tenant, q->body, &sanitise, on_done, h);
}
