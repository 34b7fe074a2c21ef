/* /mcp over HTTP: who may ask, sessions, versions, messages, the list of tools. With the real
 * manager, a store in memory, and a warden that only answers: what tools do is tests/e2e's. */
#include "tap.h"

#define SERVER_REQUEST dispatch_request
#include "front/main/dispatch.h"

#include "fork_agents.h"

#include "front/contexts/context.h"
#include "front/mcp/session.h"

TAP_MAIN

#define BOTH "Accept: application/json, text/event-stream\r\n"
#define META                                                                 \
    "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\"," \
    "\"io.modelcontextprotocol/clientCapabilities\":{}}"
#define PING "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}"
#define INITIALIZE(version)                                                                   \
    "{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"initialize\",\"params\":{"                \
    "\"protocolVersion\":\"" version "\",\"capabilities\":{},\"clientInfo\":{\"name\":\"t\"," \
    "\"version\":\"1\"}}}"

static struct ctx_store *store;
static bool started;

static void on_started(struct front *f)
{
    (void)f;
    started = true;
}

__attribute__((constructor)) static void contexts_begin(void)
{
    struct sg_error e;

    if (ctx_store_sqlite(server.front.loop, NULL, &store, &e) < 0 ||
        contexts_start(&server.front, store, on_started, &e) < 0)
        server_fail(e.message);
    for (uint64_t end = clock_ns() + SERVER_DEADLINE_NS; !started && clock_ns() < end;)
        server_turn(-1);
    if (!started)
        server_fail("contexts did not start");
}

/* headers: lines, each with its end. */
static struct answer *send_raw(const char *method, const char *target, const char *key,
                               const char *headers, const char *body)
{
    AUTO(strbuf_done) struct strbuf out = {0};
    int fd = client_connect();

    strbuf_init(&out, 32u << 20);
    strbuf_addf(&out, "%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n%s", method,
                target, headers);
    if (key)
        strbuf_addf(&out, "X-API-Key: %s\r\n", key);
    if (body)
        strbuf_addf(&out, "Content-Length: %zu\r\n", strlen(body));
    strbuf_addf(&out, "\r\n%s", body ? body : "");
    if (fd_write_all(fd, out.buf, out.len) < 0)
        server_fail("send a request");
    return client_receive(fd);
}

static struct answer *post(const char *headers, const char *body)
{
    return send_raw("POST", "/mcp", server.acme, headers, body);
}

static void session_headers(struct answer *a, char ret[256], const char *more)
{
    const char *at = strstr(a->text, "Mcp-Session-Id: ");
    char id[SESSION_LEN + 1] = "";

    EXPECT(at != NULL);
    if (at)
        snprintf(id, sizeof(id), "%s", at + strlen("Mcp-Session-Id: "));
    snprintf(ret, 256, BOTH "Mcp-Session-Id: %s\r\n%s", id, more);
}

static const json_t *part(const json_t *v, const char *a, const char *b)
{
    v = json_object_get(v, a);
    return b ? json_object_get(v, b) : v;
}

static long long code_of(const struct answer *a)
{
    return json_integer_value(part(a->json, "error", "code"));
}

static const char *text_of(const json_t *v)
{
    return json_is_string(v) ? json_string_value(v) : "";
}

/* ---- who may ask ----------------------------------------------------------------------------- */

TEST(needs_a_key)
{
    EXPECT(send_raw("POST", "/mcp", NULL, BOTH, INITIALIZE("2025-06-18"))->status == 401);
    EXPECT(send_raw("POST", "/mcp", "e2b_0000000000000000000000000000000000000000", BOTH,
                    INITIALIZE("2025-06-18"))
               ->status == 401);
    EXPECT(send_raw("GET", "/mcp", NULL, "", NULL)->status == 401);
    EXPECT(send_raw("DELETE", "/mcp", NULL, "", NULL)->status == 401);
}

TEST(a_bearer_is_a_key)
{
    char headers[256];

    snprintf(headers, sizeof(headers), BOTH "Authorization: Bearer %s\r\n", server.acme);
    EXPECT(send_raw("POST", "/mcp", NULL, headers, INITIALIZE("2025-06-18"))->status == 200);
}

TEST(pages_of_others_may_not)
{
    static const char *const bad[] = {"http://evil.example", "null",
                                      "http://localhost.evil.example",
                                      "http://evil.example@localhost", "https://127.0.0.1.nip.io"};
    char headers[256];

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        snprintf(headers, sizeof(headers), BOTH "Origin: %s\r\n", bad[i]);
        EXPECT(post(headers, INITIALIZE("2025-06-18"))->status == 403);
    }
    struct answer *a = post(BOTH "Origin: http://localhost:6274\r\n", INITIALIZE("2025-06-18"));
    EXPECT(a->status == 200);
    EXPECT(strstr(a->text, "Access-Control-Allow-Origin: http://localhost:6274\r\n") != NULL);
    a = send_raw("OPTIONS", "/mcp", NULL, "Origin: http://localhost:6274\r\n", NULL);
    EXPECT(a->status == 204 && strstr(a->text, "Access-Control-Allow-Headers: ") != NULL);
    EXPECT(send_raw("OPTIONS", "/mcp", NULL, "Origin: http://evil.example\r\n", NULL)->status ==
           403);
}

TEST(other_methods_are_refused)
{
    struct answer *a = send_raw("GET", "/mcp", server.acme, "Accept: text/event-stream\r\n", NULL);

    EXPECT(a->status == 405 && strstr(a->text, "Allow: POST, DELETE, OPTIONS\r\n") != NULL);
    EXPECT(send_raw("PUT", "/mcp", server.acme, "", "{}")->status == 405);
    EXPECT(send_raw("POST", "/mcp/", server.acme, BOTH, PING)->status == 404);
}

TEST(media_types)
{
    EXPECT(post("Accept: text/html\r\n", INITIALIZE("2025-06-18"))->status == 406);
    EXPECT(post(BOTH "Content-Type: text/plain\r\n", INITIALIZE("2025-06-18"))->status == 415);
    EXPECT(post("Accept: */*\r\nContent-Type: application/json; charset=utf-8\r\n",
                INITIALIZE("2025-06-18"))
               ->status == 200);
    struct answer *a = post("Accept: text/event-stream;q=0.9\r\n", INITIALIZE("2025-06-18"));
    EXPECT(a->status == 200 && strstr(a->text, "Content-Type: text/event-stream\r\n") != NULL);
    EXPECT(strstr(a->body, "event: message\ndata: {\"jsonrpc\":\"2.0\"") != NULL);
}

/* ---- sessions and versions ------------------------------------------------------------------- */

TEST(initialize_settles_a_version)
{
    static const struct {
        const char *body, *version;
    } cases[] = {
        {INITIALIZE("2024-11-05"), "2024-11-05"}, {INITIALIZE("2025-03-26"), "2025-03-26"},
        {INITIALIZE("2025-06-18"), "2025-06-18"}, {INITIALIZE("2025-11-25"), "2025-11-25"},
        {INITIALIZE("2026-07-28"), "2025-11-25"}, {INITIALIZE("1.0"), "2025-11-25"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct answer *a = post(BOTH, cases[i].body);
        EXPECT(a->status == 200);
        EXPECT_STR(text_of(part(a->json, "result", "protocolVersion")), cases[i].version);
        EXPECT_STR(text_of(part(a->json, "id", NULL)), "a");
        EXPECT(json_is_object(part(part(a->json, "result", "capabilities"), "tools", NULL)));
        EXPECT_STR(text_of(part(part(a->json, "result", "serverInfo"), "name", NULL)), "sandglass");
    }
    EXPECT(code_of(post(BOTH, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\"}")) ==
           -32602);
}

TEST(a_session_is_its_tenants)
{
    char headers[256], bent[256];

    session_headers(post(BOTH, INITIALIZE("2025-06-18")), headers, "");
    EXPECT(post(headers, PING)->status == 200);
    EXPECT(send_raw("POST", "/mcp", server.beta, headers, PING)->status == 404);
    EXPECT(send_raw("DELETE", "/mcp", server.beta, headers, NULL)->status == 404);
    EXPECT(post(BOTH, PING)->status == 400);
    snprintf(bent, sizeof(bent), "%s", headers);
    char *digit = strstr(bent, "Id: ") + 4;
    *digit = *digit == 'a' ? 'b' : 'a';
    EXPECT(post(bent, PING)->status == 404);
    EXPECT(post(BOTH "Mcp-Session-Id: x\r\n", PING)->status == 404);
    EXPECT(post(headers, PING)->status == 200);
}

TEST(a_session_that_was_ended)
{
    char headers[256];

    session_headers(post(BOTH, INITIALIZE("2025-06-18")), headers, "");
    EXPECT(send_raw("DELETE", "/mcp", server.acme, headers, NULL)->status == 204);
    EXPECT(post(headers, PING)->status == 404);
    EXPECT(send_raw("DELETE", "/mcp", server.acme, headers, NULL)->status == 404);
    EXPECT(send_raw("DELETE", "/mcp", server.acme, "", NULL)->status == 400);
}

TEST(versions_of_requests)
{
    char headers[256];

    session_headers(post(BOTH, INITIALIZE("2025-06-18")), headers,
                    "MCP-Protocol-Version: 2025-06-18\r\n");
    EXPECT(post(headers, PING)->status == 200);
    session_headers(post(BOTH, INITIALIZE("2025-06-18")), headers,
                    "MCP-Protocol-Version: 1999-01-01\r\n");
    struct answer *a = post(headers, PING);
    EXPECT(a->status == 400 && code_of(a) == -32022);
    EXPECT(json_array_size(part(part(a->json, "error", "data"), "supported", NULL)) == 5);
}

/* ---- messages -------------------------------------------------------------------------------- */

TEST(what_is_no_message)
{
    static const struct {
        const char *body;
        int status, code;
    } cases[] = {
        {"{", 400, -32700},
        {"", 400, -32700},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"id\":2,\"method\":\"ping\"}", 400, -32700},
        {"7", 400, -32700},
        {"\"x\"", 400, -32700},
        {"[]", 400, -32600},
        {"{}", 400, -32600},
        {"{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"ping\"}", 400, -32600},
        {"{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}", 400, -32600},
        {"{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"ping\"}", 400, -32600},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":7}", 400, -32600},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":[]}", 400, -32600},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"resources/list\"}", 200, -32601},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\",\"params\":{\"cursor\":\"x\"}}",
         200, -32602},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\"}", 200, -32602},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"rm\"}}",
         200, -32602},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":"
         "\"run_code\",\"arguments\":[]}}",
         200, -32602},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":"
         "\"run_code\",\"arguments\":{\"code\":\"1\"},\"_meta\":{\"sandglass/messageId\":7}}}",
         200, -32602},
    };
    char headers[256];

    session_headers(post(BOTH, INITIALIZE("2025-06-18")), headers, "");
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct answer *a = post(headers, cases[i].body);
        if (a->status != cases[i].status || code_of(a) != cases[i].code)
            printf("# %s: %d %s\n", cases[i].body, a->status, a->body);
        EXPECT(a->status == cases[i].status && code_of(a) == cases[i].code);
    }
}

TEST(notifications_and_responses_get_no_answer)
{
    static const char *const bodies[] = {
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}",
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":7}}",
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\"}",
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/whatever\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":4,\"result\":{}}",
    };
    char headers[256];

    session_headers(post(BOTH, INITIALIZE("2025-06-18")), headers, "");
    for (size_t i = 0; i < ARRAY_SIZE(bodies); i++) {
        struct answer *a = post(headers, bodies[i]);
        EXPECT(a->status == 202 && a->body[0] == '\0');
    }
}

TEST(several_messages_at_once)
{
    static const char batch[] =
        "[" PING
        ",{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"},{\"jsonrpc\":\"2.0\",\"id\":"
        "\"two\",\"method\":\"nothing\"},3]";
    char headers[256];

    session_headers(post(BOTH, INITIALIZE("2025-03-26")), headers, "");
    struct answer *a = post(headers, batch);
    EXPECT(a->status == 200 && json_array_size(a->json) == 3);
    EXPECT(json_is_object(part(json_array_get(a->json, 0), "result", NULL)));
    EXPECT_STR(text_of(part(json_array_get(a->json, 1), "id", NULL)), "two");
    EXPECT(json_integer_value(part(json_array_get(a->json, 2), "error", "code")) == -32600);
    a = post(headers, "[{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}]");
    EXPECT(a->status == 202);
    session_headers(post(BOTH, INITIALIZE("2025-03-26")), headers,
                    "MCP-Protocol-Version: 2025-06-18\r\n");
    EXPECT(post(headers, batch)->status == 400);
}

TEST(too_much)
{
    char headers[256];

    session_headers(post(BOTH, INITIALIZE("2025-06-18")), headers, "Content-Length: 9000000\r\n");
    EXPECT(post(headers, NULL)->status == 413);
}

TEST(names_that_no_path_can_have)
{
    char headers[256];

    session_headers(post(BOTH, INITIALIZE("2025-06-18")), headers, "");
    EXPECT(send_raw("POST", "/mcp?conversationId=a&pathId=b", server.acme, headers, PING)->status ==
           200);
    EXPECT(send_raw("POST", "/mcp?conversationId=", server.acme, headers, PING)->status == 400);
    EXPECT(send_raw("POST", "/mcp?pathId=%01", server.acme, headers, PING)->status == 400);
}

/* ---- tools ----------------------------------------------------------------------------------- */

#define LIST "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}"

static const json_t *tool_of(const struct answer *a, const char *name)
{
    const json_t *tools = part(a->json, "result", "tools");

    for (size_t i = 0; i < json_array_size(tools); i++)
        if (strcmp(text_of(part(json_array_get(tools, i), "name", NULL)), name) == 0)
            return json_array_get(tools, i);
    return NULL;
}

static bool has_property(const struct answer *a, const char *tool, const char *name)
{
    return json_object_get(part(tool_of(a, tool), "inputSchema", "properties"), name) != NULL;
}

TEST(the_list_of_tools)
{
    static const char *const names[] = {"run_code",    "run_analysis", "execute_code",
                                        "read_file",   "write_file",   "list_files",
                                        "end_context", "list_contexts"};
    char headers[256];

    session_headers(post(BOTH, INITIALIZE("2025-06-18")), headers, "");
    struct answer *a = post(headers, LIST);
    EXPECT(json_array_size(part(a->json, "result", "tools")) == ARRAY_SIZE(names));
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        const json_t *tool = tool_of(a, names[i]);
        EXPECT(tool != NULL);
        EXPECT(text_of(part(tool, "description", NULL))[0] != '\0');
        EXPECT_STR(text_of(part(tool, "inputSchema", "type")), "object");
        const json_t *required = part(tool, "inputSchema", "required");
        for (size_t k = 0; k < json_array_size(required); k++)
            EXPECT(strcmp(text_of(json_array_get(required, k)), "conversationId") != 0 &&
                   strcmp(text_of(json_array_get(required, k)), "pathId") != 0);
    }
    EXPECT(has_property(a, "run_code", "conversationId") && has_property(a, "run_code", "pathId"));
    EXPECT(has_property(a, "run_code", "messageId"));
    a = send_raw("POST", "/mcp?conversationId=a", server.acme, headers, LIST);
    EXPECT(!has_property(a, "run_code", "conversationId") && has_property(a, "run_code", "pathId"));
    size_t len = strlen(headers);
    snprintf(headers + len, sizeof(headers) - len, "Sandglass-Path-Id: main\r\n");
    a = send_raw("POST", "/mcp?conversationId=a", server.acme, headers, LIST);
    EXPECT(!has_property(a, "read_file", "conversationId") &&
           !has_property(a, "read_file", "pathId"));
    EXPECT(!has_property(a, "run_code", "messageId"));
}

static struct answer *call_tool(const char *headers, const char *name, const char *arguments)
{
    AUTO(free_p) char *body = NULL;

    if (asprintf(
            &body,
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"%s\","
            "\"arguments\":%s}}",
            name, arguments) < 0)
        abort();
    return post(headers, body);
}

static const char *said(const struct answer *a)
{
    const json_t *content = part(a->json, "result", "content");

    return text_of(part(json_array_get(content, 0), "text", NULL));
}

static bool failed(const struct answer *a)
{
    return json_is_true(part(a->json, "result", "isError"));
}

/* Mistakes in arguments are for the model to correct. */
TEST(arguments_that_are_wrong)
{
    static const struct {
        const char *tool, *arguments, *message;
    } cases[] = {
        {"run_code", "{}", "code"},
        {"run_code", "{\"code\":\"1\",\"language\":\"cobol\"}", "language"},
        {"run_code", "{\"code\":\"1\",\"nonsense\":1}", "nonsense"},
        {"run_code", "{\"code\":\"1\",\"messageId\":\"\"}", "messageId"},
        {"run_analysis", "{\"analysisType\":\"x\",\"parameters\":{}}", "analysisType"},
        {"read_file", "{}", "path"},
        {"read_file", "{\"path\":7}", "path"},
        {"read_file", "{\"path\":\"a\",\"offset\":-1}", "offset"},
        {"read_file", "{\"path\":\"a\",\"length\":99999999}", "length"},
        {"read_file", "{\"path\":\"a\",\"mode\":1}", "mode"},
        {"write_file", "{\"path\":\"a\"}", "content"},
        {"write_file", "{\"path\":\"a\",\"content\":\"*\",\"encoding\":\"base64\"}", "base64"},
        {"write_file", "{\"path\":\"a\",\"content\":\"a\",\"encoding\":\"latin1\"}", "encoding"},
        {"list_files", "{\"depth\":0}", "depth"},
        {"list_files", "{\"pathId\":\"\"}", "pathId"},
        {"list_files", "{\"conversationId\":5}", "conversationId"},
        {"end_context", "{\"contextId\":\"no\"}", "contextId"},
        {"list_contexts", "{\"allConversations\":1}", "allConversations"},
    };
    char headers[256];

    session_headers(post(BOTH, INITIALIZE("2025-06-18")), headers, "");
    clean_up();
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct answer *a = call_tool(headers, cases[i].tool, cases[i].arguments);
        if (!failed(a) || !strstr(said(a), cases[i].message))
            printf("# %s %s: %s\n", cases[i].tool, cases[i].arguments, a->body);
        EXPECT(a->status == 200 && failed(a) && strstr(said(a), cases[i].message));
    }
    EXPECT(server.n_orders == 0);
}

/* The client says which message a call belongs to, and the model does not know. */
TEST(a_call_of_a_message_leaves_a_checkpoint)
{
    char headers[256];

    fork_agents_start();
    session_headers(post(BOTH, INITIALIZE("2025-06-18")), headers, "");
    struct answer *a =
        post(headers, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{"
                      "\"name\":\"run_code\",\"arguments\":{\"code\":\"1\"},"
                      "\"_meta\":{\"sandglass/messageId\":\"m1\"}}}");
    const json_t *left = part(part(a->json, "result", "structuredContent"), "checkpoint", NULL);
    EXPECT_STR(text_of(part(left, "messageId", NULL)), "m1");
    EXPECT(id_valid(text_of(part(left, "checkpointId", NULL))));
    a = call_tool(headers, "end_context", "{}");
    EXPECT(!failed(a));
    clean_up();
    uv_prepare_stop(&fork_agents.prepare);
}

TEST(contexts_of_a_path_without_one)
{
    char headers[256];

    session_headers(post(BOTH, INITIALIZE("2025-06-18")), headers, "");
    struct answer *a = call_tool(headers, "list_contexts", "{}");
    EXPECT(!failed(a) && json_array_size(part(part(a->json, "result", "structuredContent"),
                                              "contexts", NULL)) == 0);
    a = call_tool(headers, "end_context", "{}");
    EXPECT(failed(a) && strstr(said(a), "no sandbox"));
    a = call_tool(headers, "end_context", "{\"contextId\":\"aaaaaaaaaaaaaaaaaaaa\"}");
    EXPECT(failed(a));
}

/* A server that is full says that the tool is unavailable; the conversation goes on. */
TEST(tools_that_are_unavailable)
{
    static const struct {
        const char *tool, *arguments;
    } cases[] = {
        {"run_code", "{\"code\":\"1\"}"},
        {"read_file", "{\"path\":\"a\"}"},
        {"write_file", "{\"path\":\"a\",\"content\":\"a\"}"},
        {"list_files", "{}"},
    };
    char headers[256];

    server.front.settings.tenant_contexts = 0;
    session_headers(post(BOTH, INITIALIZE("2025-06-18")), headers, "");
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct answer *a = call_tool(headers, cases[i].tool, cases[i].arguments);
        if (!strstr(said(a), "is unavailable now: "))
            printf("# %s: %s\n", cases[i].tool, a->body);
        EXPECT(failed(a) && strstr(said(a), "is unavailable now: "));
    }
    server.front.settings.tenant_contexts = 10;
}

/* The agent of this sandbox never answers: who leaves takes the call along, and the end of the
 * session takes the sandbox. */
TEST(who_leaves_gives_up)
{
    static const char body[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\","
                               "\"params\":{\"name\":\"list_files\"}}";
    AUTO(strbuf_done) struct strbuf out = {0};
    char headers[256];

    session_headers(post(BOTH, INITIALIZE("2025-06-18")), headers, "");
    clean_up();
    strbuf_init(&out, 4096);
    strbuf_addf(&out,
                "POST /mcp HTTP/1.1\r\nHost: localhost\r\nX-API-Key: %s\r\n%sContent-Length: "
                "%zu\r\n\r\n%s",
                server.acme, headers, strlen(body), body);
    int fd = client_connect();
    EXPECT(fd_write_all(fd, out.buf, out.len) == 0);
    for (uint64_t end = clock_ns() + SERVER_DEADLINE_NS;
         !last_order(ORDER_CREATE) && clock_ns() < end;)
        server_turn(fd);
    EXPECT(last_order(ORDER_CREATE) != NULL);
    close(fd);
    EXPECT(post(headers, PING)->status == 200);
    EXPECT(json_array_size(part(
               part(call_tool(headers, "list_contexts", "{}")->json, "result", "structuredContent"),
               "contexts", NULL)) == 1);
    EXPECT(send_raw("DELETE", "/mcp", server.acme, headers, NULL)->status == 204);
    for (uint64_t end = clock_ns() + SERVER_DEADLINE_NS;
         !last_order(ORDER_KILL) && clock_ns() < end;)
        server_turn(-1);
    EXPECT(last_order(ORDER_KILL) != NULL);
}

/* Sandboxes that have no context are not this protocol's. */
TEST(sandboxes_without_a_context)
{
    char headers[256], id[ID_LEN + 1];

    make_sandbox("{\"templateID\":\"base\"}", id);
    session_headers(post(BOTH, INITIALIZE("2025-06-18")), headers, "");
    struct answer *a = call_tool(headers, "list_contexts", "{\"allConversations\":true}");
    EXPECT(!strstr(a->body, id));
    clean_up();
}

/* ---- without sessions ------------------------------------------------------------------------ */

#define MODERN(method) BOTH "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: " method "\r\n"
#define DISCOVER \
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"server/discover\",\"params\":{" META "}}"

TEST(discover)
{
    struct answer *a = post(MODERN("server/discover"), DISCOVER);
    const json_t *result = part(a->json, "result", NULL);

    EXPECT(a->status == 200);
    EXPECT_STR(text_of(part(result, "resultType", NULL)), "complete");
    EXPECT_STR(text_of(json_array_get(part(result, "supportedVersions", NULL), 0)), "2026-07-28");
    EXPECT(json_is_integer(part(result, "ttlMs", NULL)));
    EXPECT(json_is_object(part(result, "_meta", "io.modelcontextprotocol/serverInfo")));
    EXPECT(strstr(a->text, "Mcp-Session-Id") == NULL);
}

TEST(headers_must_agree_with_the_body)
{
    struct answer *a = post(MODERN("tools/list"), DISCOVER);

    EXPECT(a->status == 400 && code_of(a) == -32020);
    a = post(BOTH "MCP-Protocol-Version: 2026-07-28\r\n", DISCOVER);
    EXPECT(a->status == 400 && code_of(a) == -32020);
    a = post(MODERN("server/discover"),
             "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"server/discover\"}");
    EXPECT(a->status == 400 && code_of(a) == -32602);
    a = post(MODERN("tools/call") "Mcp-Name: read_file\r\n",
             "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{" META
             ",\"name\":\"run_code\"}}");
    EXPECT(a->status == 400 && code_of(a) == -32020);
    a = post(MODERN("tools/call") "Mcp-Name: =?base64?bGlzdF9jb250ZXh0cw==?=\r\n",
             "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{" META
             ",\"name\":\"list_contexts\",\"arguments\":{\"conversationId\":\"c\"}}}");
    EXPECT(a->status == 200 && !failed(a));
    EXPECT_STR(text_of(part(a->json, "result", "resultType")), "complete");
}

TEST(what_has_gone_with_sessions)
{
    struct answer *a = post(MODERN("ping"), "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\","
                                            "\"params\":{" META "}}");

    EXPECT(a->status == 404 && code_of(a) == -32601);
    /* There is no conversation to fall back to. */
    a = post(MODERN("tools/call") "Mcp-Name: run_code\r\n",
             "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{" META
             ",\"name\":\"run_code\",\"arguments\":{\"code\":\"1\"}}}");
    EXPECT(a->status == 200 && failed(a) && strstr(said(a), "conversationId"));
}
