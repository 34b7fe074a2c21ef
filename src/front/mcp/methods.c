#include "front/mcp/methods.h"

#include <string.h>

#include "lib/text/json.h"
#include "front/mcp/call.h"
#include "front/mcp/catalogue.h"
#include "lib/log/log.h"

#define LIST_FRESH_MS 300000 /* how long clients may keep a list of tools */

static const char instructions[] =
    "Runs code in a sandbox of its own for each path of a conversation. Variables, files and "
    "processes stay from one call of run_code to the next. Files that the code writes can be read "
    "with read_file. The sandbox ends when it is not used for a while.";

struct method {
    const char *name;
    enum mcp_version first, last;
    void (*fn)(struct exchange *x, const struct message *m);
};

static void answer(struct exchange *x, const struct message *m, const struct strbuf *result)
{
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(MESSAGE_MAX);

    message_result(&out, m->id, result);
    exchange_answer(x, &out);
}

static void put_abilities(struct json *j)
{
    jw_object_begin(jw_key(j, "capabilities"));
    jw_object_begin(jw_key(j, "tools"));
    jw_object_end(j);
    jw_object_end(j);
}

/* Ends a result that clients may keep for a while, and answers with it. */
static void answer_cacheable(struct exchange *x, const struct message *m, struct json *j)
{
    if (!version_has_sessions(x->version)) {
        jw_u64(jw_key(j, "ttlMs"), LIST_FRESH_MS);
        jw_string(jw_key(j, "cacheScope"), "private");
    }
    result_common(j, x->version);
    jw_object_end(j);
    answer(x, m, j->out);
}

static void initialize(struct exchange *x, const struct message *m)
{
    const json_t *wanted = json_object_get(m->params, "protocolVersion");
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(MESSAGE_MAX);
    struct sg_error e = {0};
    char id[SESSION_LEN + 1];
    struct json j = {.out = &out};

    if (!json_is_string(wanted)) {
        exchange_error(x, m->id, MESSAGE_INVALID_PARAMS, "protocolVersion must be a string", NULL);
        return;
    }
    if (mcp_session_new(x->front, x->tenant.id, id, &e) < 0) {
        log_line(LEVEL_ERROR, "no session of MCP can be made: %s", e.message);
        exchange_error(x, m->id, MESSAGE_INTERNAL, "The server cannot make a session now", NULL);
        return;
    }
    http_add_header(x->http, "Mcp-Session-Id", id);
    jw_object_begin(&j);
    jw_string(jw_key(&j, "protocolVersion"),
              version_text(version_settle(json_string_value(wanted))));
    put_abilities(&j);
    jw_key(&j, "serverInfo");
    result_server_info(&j);
    jw_string(jw_key(&j, "instructions"), instructions);
    jw_object_end(&j);
    answer(x, m, &out);
}

static void discover(struct exchange *x, const struct message *m)
{
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(MESSAGE_MAX);
    struct json j = {.out = &out};

    jw_object_begin(&j);
    jw_array_begin(jw_key(&j, "supportedVersions"));
    for (int v = MCP_VERSION_MAX_ - 1; v >= 0; v--)
        jw_string(&j, version_text((enum mcp_version)v));
    jw_array_end(&j);
    put_abilities(&j);
    jw_string(jw_key(&j, "instructions"), instructions);
    answer_cacheable(x, m, &j);
}

static void ping(struct exchange *x, const struct message *m)
{
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(16);

    strbuf_addstr(&out, "{}");
    answer(x, m, &out);
}

static void tools_list_method(struct exchange *x, const struct message *m)
{
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(MESSAGE_MAX);
    struct json j = {.out = &out};

    if (json_object_get(m->params, "cursor")) {
        exchange_error(x, m->id, MESSAGE_INVALID_PARAMS, "There is one page: no cursor was given",
                       NULL);
        return;
    }
    jw_object_begin(&j);
    jw_key(&j, "tools");
    catalogue_write(&j, x->conversation != NULL, x->path != NULL);
    answer_cacheable(x, m, &j);
}

static const struct method methods[] = {
    {"initialize", MCP_2024_11_05, MCP_VERSION_SESSIONS, initialize},
    {"ping", MCP_2024_11_05, MCP_VERSION_SESSIONS, ping},
    {"server/discover", MCP_2026_07_28, MCP_2026_07_28, discover},
    {"tools/list", MCP_2024_11_05, MCP_2026_07_28, tools_list_method},
    {"tools/call", MCP_2024_11_05, MCP_2026_07_28, mcp_call_begin},
};

void method_request(struct exchange *x, const struct message *m)
{
    char text[160];

    x->open++;
    if (!version_has_sessions(x->version)) {
        struct sg_error e;
        int code = version_check_request(x->http, m, &e);
        if (code != 0) {
            x->error_status = 400;
            exchange_error(x, m->id, code, e.message, NULL);
            return;
        }
    }
    for (size_t i = 0; i < ARRAY_SIZE(methods); i++)
        if (strcmp(methods[i].name, m->method) == 0 && x->version >= methods[i].first &&
            x->version <= methods[i].last) {
            methods[i].fn(x, m);
            return;
        }
    if (!version_has_sessions(x->version))
        x->error_status = 404;
    snprintf(text, sizeof(text), "Method not found: %.100s", m->method);
    exchange_error(x, m->id, MESSAGE_NO_METHOD, text, NULL);
}

/* Ignores notifications that we do not know. */
void method_notification(struct exchange *x, const struct message *m)
{
    if (strcmp(m->method, "notifications/cancelled") == 0 && x->session[0])
        calls_cancel(x, json_object_get(m->params, "requestId"));
}
