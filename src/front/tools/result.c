#include <string.h>

#include "front/core/output_filter.h"
#include "front/tools/tools.h"

#define SANITISED_MAX 8192

bool tool_unavailable(int status)
{
    return status == 429 || status >= 500;
}

size_t text_cut(const char *text, size_t len, size_t max)
{
    if (len <= max)
        return len;
    while (max > 0 && ((unsigned char)text[max] & 0xc0) == 0x80)
        max--;
    return max;
}

const char *result_sanitised(const struct output_filter *o, struct strbuf *ret)
{
    struct json j = {.out = ret};

    if (!output_filter_found(o))
        return NULL;
    strbuf_init(ret, SANITISED_MAX);
    output_filter_put_counts(o, &j);
    return ret->buf;
}

bool result_put_refusal(struct json *j, int status, const struct sg_error *e, const char *request)
{
    jw_i64(jw_key(j, "code"), status);
    jw_string(jw_key(j, "message"), e->message);
    if (request)
        jw_string(jw_key(j, "requestId"), request);
    if (!tool_unavailable(status))
        return false;
    jw_bool(jw_key(j, "unavailable"), true);
    return true;
}

void result_put_cut(struct json *j, bool out, bool err)
{
    jw_object_begin(jw_key(j, "truncated"));
    jw_bool(jw_key(j, "stdout"), out);
    jw_bool(jw_key(j, "stderr"), err);
    jw_object_end(j);
}

void result_put_sanitised(struct json *j, const char *sanitised)
{
    if (!sanitised)
        return;
    jw_raw(jw_key(j, "sanitised"), sanitised, strlen(sanitised));
}

static void put_text(struct json *j, const char *key, const struct strbuf *text)
{
    jw_bytes(jw_key(j, key), text->buf, text->len);
}

/* Writes text that is JSON already; NULL: writes null. */
static void put_json(struct json *j, const char *key, const char *json)
{
    jw_key(j, key);
    if (json)
        jw_raw(j, json, strlen(json));
    else
        jw_null(j);
}

static void put_place(struct json *j, const struct tool_result *r)
{
    jw_string(jw_key(j, "sandboxId"), r->sandbox_id);
    jw_string(jw_key(j, "contextId"), r->context);
    jw_bool(jw_key(j, "wasCreated"), r->was_created);
    jw_bool(jw_key(j, "replaced"), r->replaced);
    if (r->kept_lost)
        jw_bool(jw_key(j, "keptLost"), true);
}

static void put_checkpoint(struct json *j, const struct tool_result *r)
{
    if (!r->message)
        return;
    jw_object_begin(jw_key(j, "checkpoint"));
    jw_string(jw_key(j, r->checkpoint ? "checkpointId" : "skipped"),
              r->checkpoint ? r->checkpoint : r->skipped);
    if (r->checkpoint)
        jw_string(jw_key(j, "messageId"), r->message);
    jw_object_end(j);
}

static void put_outcome(struct json *j, const struct tool_result *r)
{
    jw_bool(jw_key(j, "success"), r->success);
    put_text(j, "stdout", r->out);
    put_text(j, "stderr", r->err);
    jw_i64(jw_key(j, "exitCode"), r->exit_code);
    jw_u64(jw_key(j, "executionTimeMs"), r->ms);
    put_place(j, r);
    put_checkpoint(j, r);
    put_json(j, "results", r->results);
    put_json(j, "error", r->error);
    result_put_cut(j, r->out_cut, r->err_cut);
    result_put_sanitised(j, r->sanitised);
}

void tool_result_json(struct json *j, enum tool t, const struct tool_result *r, const char *request)
{
    jw_object_begin(j);
    if (r->status != 200) {
        result_put_refusal(j, r->status, &r->refusal, request);
    } else {
        put_outcome(j, r);
        if (t == TOOL_RUN_ANALYSIS) {
            put_json(j, "result", r->result);
            put_json(j, "parsedOutput", r->parsed);
            jw_string(jw_key(j, "parseError"), r->parse_error);
        }
    }
    jw_object_end(j);
}
