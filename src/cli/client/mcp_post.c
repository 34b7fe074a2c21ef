#include "cli/client/mcp_post.h"

#include <string.h>

#include "lib/text/base64.h"
#include "lib/command/ui.h"
#include "cli/client/jr.h"
#include "cli/client/mcp_bridge.h"
#include "cli/client/web.h"

#define META_VERSION "io.modelcontextprotocol/protocolVersion"
#define NAME_MAX_    512

/* ---- messages -------------------------------------------------------------------------------- */

bool mcp_post_is(const struct mcp_post *p, const json_t *id)
{
    return json_is_object(p->message) && json_equal(json_object_get(p->message, "id"), id);
}

/* ---- headers --------------------------------------------------------------------------------- */

/* Adds the header Mcp-Name. The protocol wants base64 for a name with blanks, control or non-ASCII
 * characters. */
static void add_name_header(struct curl_slist **headers, const char *name)
{
    AUTO(strbuf_done) struct strbuf text = strbuf_upto(NAME_MAX_);

    for (const char *p = name; *p; p++)
        if (*p <= ' ' || *p > '~') {
            strbuf_addstr(&text, "=?base64?");
            base64_encode(&text, name, strlen(name));
            strbuf_addstr(&text, "?=");
            break;
        }
    if (!text.truncated)
        web_add_header(headers, "Mcp-Name", text.len ? text.buf : name);
}

/* From version 2026-07-28 on, each message tells its version itself, and there is no session. */
static void add_headers(struct mcp_post *p, const struct mcp_bridge *b)
{
    const json_t *params = json_object_get(p->message, "params");
    const char *version = jr_text(json_object_get(params, "_meta"), META_VERSION),
               *method = jr_text(p->message, "method"), *name = jr_text(params, "name");

    web_add_header(&p->headers, "Content-Type", "application/json");
    web_add_header(&p->headers, "Accept", "application/json, text/event-stream");
    if (b->client->settings.api_key)
        web_add_header(&p->headers, "X-API-Key", b->client->settings.api_key);
    if (*version && strlen(version) < MCP_VERSION_MAX && !strpbrk(version, "\r\n")) {
        web_add_header(&p->headers, "MCP-Protocol-Version", version);
        if (!strpbrk(method, "\r\n"))
            web_add_header(&p->headers, "Mcp-Method", method);
        if (*name)
            add_name_header(&p->headers, name);
        return;
    }
    if (p->initialize)
        return;
    if (b->session[0])
        web_add_header(&p->headers, "Mcp-Session-Id", b->session);
    if (b->version[0])
        web_add_header(&p->headers, "MCP-Protocol-Version", b->version);
}

/* ---- the answer ------------------------------------------------------------------------------ */

/* Counts the answer. The answer to initialize also sets the version of the session. */
static void note_answer(struct mcp_post *p, const json_t *message)
{
    const json_t *result = json_object_get(message, "result");

    if (!result && !json_object_get(message, "error"))
        return;
    p->answered++;
    if (p->initialize && result)
        snprintf(p->bridge->version, sizeof(p->bridge->version), "%s",
                 jr_text(result, "protocolVersion"));
}

static void pass_on(struct mcp_post *p, const char *text, size_t len)
{
    json_t *message = json_loadb(text, len, 0, NULL);

    if (json_is_object(message))
        note_answer(p, message);
    for (size_t i = 0; i < json_array_size(message); i++)
        note_answer(p, json_array_get(message, i));
    if (message)
        mcp_bridge_say(p->bridge, text, len);
    json_decref(message);
}

static void on_event(void *arg, const char *data, size_t len)
{
    pass_on(arg, data, len);
}

static size_t take_header(char *data, size_t size, size_t n, void *arg)
{
    struct mcp_post *p = arg;

    if (p->initialize)
        web_take_header(data, size * n, "mcp-session-id:", p->bridge->session, MCP_SESSION_MAX);
    return size * n;
}

static size_t take_bytes(char *data, size_t size, size_t n, void *arg)
{
    struct mcp_post *p = arg;
    size_t len = size * n;
    const char *type = NULL;
    long status = 0;

    if (spout_waiting(&p->bridge->out) > MCP_OUTPUT_HIGH) {
        p->held = true;
        return CURL_WRITEFUNC_PAUSE;
    }
    curl_easy_getinfo(p->easy, CURLINFO_CONTENT_TYPE, &type);
    curl_easy_getinfo(p->easy, CURLINFO_RESPONSE_CODE, &status);
    p->is_stream = status == 200 && type && strncasecmp(type, "text/event-stream", 17) == 0;
    if (p->is_stream)
        return mcp_events_feed(&p->events, data, len, on_event, p) < 0 ? 0 : len;
    strbuf_add(&p->answer, data, len);
    return p->answer.truncated ? 0 : len;
}

void mcp_post_go_on(struct mcp_post *p)
{
    if (!p->held)
        return;
    p->held = false;
    curl_easy_pause(p->easy, CURLPAUSE_CONT);
}

/* ---- the end --------------------------------------------------------------------------------- */

void mcp_post_drop(struct mcp_post *p)
{
    list_remove(&p->link);
    p->bridge->n_posts--;
    if (p->initialize)
        p->bridge->initializing = false;
    curl_multi_remove_handle(p->bridge->watch.multi, p->easy);
    curl_easy_cleanup(p->easy);
    web_headers_done(&p->headers);
    mcp_events_done(&p->events);
    strbuf_done(&p->answer);
    json_decref(p->message);
    free(p->body);
    free(p);
}

/* Answers with the server's refusal, in the server's own words if it has some. */
static void refused(struct mcp_post *p, long status)
{
    json_t *answer = json_loadb(p->answer.buf, p->answer.len, 0, NULL);
    json_t *error = json_object_get(answer, "error"), *id = json_object_get(p->message, "id");
    char why[512];

    if (error && id && strcmp(jr_text(answer, "jsonrpc"), "2.0") == 0) {
        json_object_set(answer, "id", id);
        AUTO(free_p) char *text = json_dumps(answer, JSON_COMPACT);
        if (text)
            mcp_bridge_say(p->bridge, text, strlen(text));
    } else {
        const char *message = jr_text(error ? error : answer, "message");
        snprintf(why, sizeof(why), "the server answered %ld%s%.400s", status, *message ? ": " : "",
                 message);
        ui_error("%s", why);
        mcp_bridge_fail(p->bridge, p->message, why);
    }
    json_decref(answer);
}

static void done(struct repl_transfer *t, CURLcode code)
{
    struct mcp_post *p = CONTAINER_OF(t, struct mcp_post, transfer);
    struct sg_error e = {0};
    long status = 0;

    curl_easy_getinfo(p->easy, CURLINFO_RESPONSE_CODE, &status);
    if (code != CURLE_OK) {
        web_result(p->easy, code, p->bridge->url.buf, &e);
        ui_error("%s", e.message);
        if (p->answered == 0)
            mcp_bridge_fail(p->bridge, p->message, e.message);
    } else if (p->is_stream) {
        if (p->answered == 0)
            mcp_bridge_fail(p->bridge, p->message, "the server ended its answer without a result");
    } else if (status == 200) {
        pass_on(p, p->answer.buf, p->answer.len);
        if (p->answered == 0)
            mcp_bridge_fail(p->bridge, p->message, "the server's answer cannot be read");
    } else if (status != 202) {
        refused(p, status);
    }
    mcp_post_drop(p);
}

/* ---- beginning ------------------------------------------------------------------------------- */

void mcp_post_begin(struct mcp_bridge *b, json_t *message)
{
    struct mcp_post *p =
        NEW(struct mcp_post, .transfer.done = done, .bridge = b, .easy = curl_easy_init(),
            .message = message, .body = json_dumps(message, JSON_COMPACT),
            .initialize = strcmp(jr_text(message, "method"), "initialize") == 0);

    if (!p->easy || !p->body)
        abort();
    list_push(&b->posts, &p->link);
    b->n_posts++;
    b->initializing |= p->initialize;
    mcp_events_init(&p->events);
    strbuf_init(&p->answer, MCP_EVENT_MAX);
    add_headers(p, b);
    struct strbuf body = {.buf = p->body, .len = strlen(p->body)};
    struct web_request q = {
        .method = "POST", .url = b->url.buf, .headers = p->headers, .body = &body};
    web_prepare(p->easy, &q);
    curl_easy_setopt(p->easy, CURLOPT_WRITEFUNCTION, take_bytes);
    curl_easy_setopt(p->easy, CURLOPT_WRITEDATA, p);
    curl_easy_setopt(p->easy, CURLOPT_HEADERFUNCTION, take_header);
    curl_easy_setopt(p->easy, CURLOPT_HEADERDATA, p);
    repl_watch_add(&b->watch, p->easy, &p->transfer);
}
