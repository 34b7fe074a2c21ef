#include <string.h>

#include "front/tools/tools.h"

static bool is_unavailable(int status)
{
    return status == 429 || status >= 500;
}

bool tool_unavailable(const struct tool_result *r)
{
    return is_unavailable(r->status);
}

bool result_put_refusal(struct json *j, int status, const struct sg_error *e, const char *request)
{
    jw_key(j, "code");
    jw_i64(j, status);
    jw_key(j, "message");
    jw_string(j, e->message);
    if (request) {
        jw_key(j, "requestId");
        jw_string(j, request);
    }
    if (!is_unavailable(status))
        return false;
    jw_key(j, "unavailable");
    jw_bool(j, true);
    return true;
}

void result_put_cut(struct json *j, bool out, bool err)
{
    jw_key(j, "truncated");
    jw_object_begin(j);
    jw_key(j, "stdout");
    jw_bool(j, out);
    jw_key(j, "stderr");
    jw_bool(j, err);
    jw_object_end(j);
}

void result_put_sanitised(struct json *j, const char *sanitised)
{
    if (!sanitised)
        return;
    jw_key(j, "sanitised");
    jw_raw(j, sanitised, strlen(sanitised));
}

static void put_text(struct json *j, const char *key, const struct strbuf *text)
{
    jw_key(j, key);
    jw_bytes(j, text->buf, text->len);
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
    jw_key(j, "sandboxId");
    jw_string(j, r->sandbox_id);
    jw_key(j, "contextId");
    jw_string(j, r->context);
    jw_key(j, "wasCreated");
    jw_bool(j, r->was_created);
    jw_key(j, "replaced");
    jw_bool(j, r->replaced);
    if (r->kept_lost) {
        jw_key(j, "keptLost");
        jw_bool(j, true);
    }
}

static void put_checkpoint(struct json *j, const struct tool_result *r)
{
    if (!r->message)
        return;
    jw_key(j, "checkpoint");
    jw_object_begin(j);
    jw_key(j, r->checkpoint ? "checkpointId" : "skipped");
    jw_string(j, r->checkpoint ? r->checkpoint : r->skipped);
    if (r->checkpoint) {
        jw_key(j, "messageId");
        jw_string(j, r->message);
    }
    jw_object_end(j);
}

static void put_outcome(struct json *j, const struct tool_result *r)
{
    jw_key(j, "success");
    jw_bool(j, r->success);
    put_text(j, "stdout", r->out);
    put_text(j, "stderr", r->err);
    jw_key(j, "exitCode");
    jw_i64(j, r->exit_code);
    jw_key(j, "executionTimeMs");
    jw_u64(j, r->ms);
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
            jw_key(j, "parseError");
            jw_string(j, r->parse_error);
        }
    }
    jw_object_end(j);
}
