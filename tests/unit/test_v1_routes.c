/* Contexts over HTTP: one by one, in lists, as paths, and what other servers have. */
#include "lib/ipc/ipc.h"
#include "tap.h"

#include "v1_rig.h"

#include <sys/mman.h>

#include "front/core/guard.h"

TAP_MAIN

#define OTHER_NODE "othernode00000000000"

/* ---- keys and routes ------------------------------------------------------------------------- */

TEST(everything_needs_a_key)
{
    static const char *const targets[] = {"/v1/contexts", "/v1/nowhere", "/v1/usage?from=x", "/v1/",
                                          "/v1/contexts/x"};

    for (size_t i = 0; i < ARRAY_SIZE(targets); i++) {
        EXPECT(ask(NULL, "GET", targets[i], NULL)->status == 401);
        EXPECT(
            ask("e2b_0000000000000000000000000000000000000000", "GET", targets[i], NULL)->status ==
            401);
    }
    EXPECT(ask(NULL, "PUT", "/v1/contexts", "{}")->status == 401);
}

TEST(unknown_paths_and_methods)
{
    struct answer *a = call_acme("GET", NULL, "/v1/nowhere");

    EXPECT(a->status == 404 && number_of(a->json, "code") == 404);
    EXPECT(call_acme("GET", NULL, "/v1/contexts/")->status == 404);
    EXPECT(call_acme("GET", NULL, "/v1/")->status == 404);
    a = call_acme("PATCH", NULL, "/v1/contexts");
    EXPECT(a->status == 405 && strstr(a->text, "Allow: GET, PUT"));
}

/* ---- get-or-create --------------------------------------------------------------------------- */

TEST(the_first_call_creates_the_others_find)
{
    struct answer *a = put("conv", "main");
    const json_t *c = part(a->json, "context"), *s = part(a->json, "sandbox");
    char id[ID_LEN + 1], sandbox_id[ID_LEN + 1];

    EXPECT(a->status == 201);
    EXPECT(json_is_true(part(a->json, "wasCreated")) && json_is_false(part(a->json, "replaced")));
    EXPECT(json_is_false(part(a->json, "keptLost")));
    snprintf(id, sizeof(id), "%s", field_of(c, "id"));
    snprintf(sandbox_id, sizeof(sandbox_id), "%s", field_of(c, "sandboxId"));
    EXPECT(id_valid(id) && id_valid(sandbox_id));
    EXPECT_STR(field_of(c, "tenantId"), server.acme_tenant.id);
    EXPECT_STR(field_of(c, "conversationId"), "conv");
    EXPECT_STR(field_of(c, "pathId"), "main");
    EXPECT_STR(field_of(c, "sandboxStatus"), "ready");
    EXPECT_STR(field_of(c, "templateId"), "code-interpreter-v1");
    EXPECT(json_is_null(part(c, "parentPathId")) && json_is_null(part(c, "terminatedAt")) &&
           json_is_null(part(c, "errorMessage")));
    EXPECT(number_of(c, "ttlSeconds") == 1800);
    EXPECT(strlen(field_of(c, "expiresAt")) == strlen("2026-11-15T12:00:00.123Z"));
    EXPECT(json_is_real(part(part(c, "resourceUsage"), "cpuSeconds")));
    EXPECT_STR(field_of(s, "sandboxID"), sandbox_id);
    EXPECT(strlen(field_of(s, "envdAccessToken")) == SPEC_TOKEN_LEN);

    a = put("conv", "main");
    EXPECT(a->status == 200 && json_is_false(part(a->json, "wasCreated")));
    EXPECT_STR(field_of(part(a->json, "context"), "id"), id);
    EXPECT_STR(field_of(part(a->json, "sandbox"), "sandboxID"), sandbox_id);
    EXPECT(orders_of(ORDER_CREATE) == 1);

    /* The same names of another tenant are another path. */
    a = ask(server.beta, "PUT", "/v1/contexts",
            "{\"conversationId\":\"conv\",\"pathId\":\"main\"}");
    EXPECT(a->status == 201 && strcmp(field_of(part(a->json, "context"), "id"), id) != 0);
    snprintf(id, sizeof(id), "%s", field_of(part(a->json, "context"), "id"));
    EXPECT(call_acme("GET", NULL, "/v1/contexts/%s", id)->status == 404);
    EXPECT(call_acme("DELETE", NULL, "/v1/contexts/%s", id)->status == 404);
    EXPECT(call_acme("POST", "{}", "/v1/contexts/%s/touch", id)->status == 404);
    char target[64];
    snprintf(target, sizeof(target), "/v1/contexts/%s", id);
    EXPECT(ask(server.beta, "DELETE", target, NULL)->status == 200);
    end_all();
}

TEST(a_sandbox_is_as_it_was_request_log_for)
{
    struct answer *a = call_acme("PUT",
                                 "{\"conversationId\":\"c\",\"pathId\":\"\\u00fc \\ud83d\\ude00\","
                                 "\"template\":\"base\",\"ttlSeconds\":60,\"metadata\":{\"k\":"
                                 "\"v\"},\"envs\":{\"S\":\"canary\"},\"network\":{"
                                 "\"allowPublicTraffic\":false}}",
                                 "/v1/contexts");
    const json_t *s = part(a->json, "sandbox");
    char id[ID_LEN + 1];

    EXPECT(a->status == 201);
    EXPECT(number_of(part(a->json, "context"), "ttlSeconds") == 60);
    EXPECT_STR(field_of(part(a->json, "context"), "templateId"), "base");
    EXPECT_STR(field_of(part(a->json, "context"), "pathId"), "\xc3\xbc \xf0\x9f\x98\x80");
    EXPECT_STR(field_of(s, "alias"), "base");
    EXPECT(strlen(field_of(s, "trafficAccessToken")) == SPEC_TOKEN_LEN);
    EXPECT(!strstr(a->text, "canary"));
    snprintf(id, sizeof(id), "%s", field_of(s, "sandboxID"));
    const struct sandbox *b = sandbox_find(&server.front, id);
    EXPECT_STR(field_of(b->spec.metadata, "k"), "v");
    EXPECT_STR(field_of(b->spec.envs, "S"), "canary");
    end_all();
}

#define NAMES "\"conversationId\":\"c\",\"pathId\":\"p\""
/* Of a path that never comes to be. */
#define BAD "\"conversationId\":\"bad\",\"pathId\":\"p\""

TEST(bad_bodies)
{
    static const struct {
        const char *body;
        int status;
        const char *says;
    } bad[] = {
        {"", 400, "'conversationId' is required"},
        {"{", 400, "not valid JSON"},
        {"[]", 400, "must be a JSON object"},
        {"{" BAD ",\"pathId\":\"p\"}", 400, "not valid JSON"},
        {"{\"pathId\":\"p\"}", 400, "'conversationId' is required"},
        {"{\"conversationId\":null,\"pathId\":\"p\"}", 400, "'conversationId' is required"},
        {"{\"conversationId\":\"c\"}", 400, "'pathId' is required"},
        {"{\"conversationId\":\"\",\"pathId\":\"p\"}", 400, "conversationId"},
        {"{\"conversationId\":\"c\",\"pathId\":\"\"}", 400, "pathId"},
        {"{\"conversationId\":7,\"pathId\":\"p\"}", 400, "'conversationId' must be a string"},
        {"{\"conversationId\":\"a\\nb\",\"pathId\":\"p\"}", 400, "conversationId"},
        {"{\"conversationId\":\"a\\u0000b\",\"pathId\":\"p\"}", 400, "not valid JSON"},
        {"{\"conversationId\":\"a\\u007f\",\"pathId\":\"p\"}", 400, "conversationId"},
        {"{\"conversationId\":\"a\\u0085\",\"pathId\":\"p\"}", 400, "conversationId"},
        {"{" BAD ",\"ttlSeconds\":-1}", 400, "'ttlSeconds' must be from 1 to 86400"},
        {"{" BAD ",\"ttlSeconds\":0}", 400, "'ttlSeconds' must be from 1 to 86400"},
        {"{" BAD ",\"ttlSeconds\":31536000}", 400, "'ttlSeconds' must be from 1 to 86400"},
        {"{" BAD ",\"ttlSeconds\":99999999999}", 400, "'ttlSeconds'"},
        {"{" BAD ",\"ttlSeconds\":1.5}", 400, "'ttlSeconds' must be a whole number"},
        {"{" BAD ",\"ttlSeconds\":\"60\"}", 400, "'ttlSeconds' must be a whole number"},
        {"{" BAD ",\"ttl\":60}", 400, "unknown field 'ttl'"},
        {"{" BAD ",\"tenantId\":\"another\"}", 403, "'tenantId'"},
        {"{" BAD ",\"tenantId\":7}", 400, "'tenantId' must be a string"},
        {"{" BAD ",\"template\":\"nowhere\"}", 404, "nowhere"},
        {"{" BAD ",\"template\":\"a b!\"}", 400, "template"},
        {"{" BAD ",\"template\":\"\"}", 400, "template"},
        {"{" BAD ",\"template\":{}}", 400, "'template' must be a string"},
        {"{" BAD ",\"metadata\":[]}", 400, "'metadata'"},
        {"{" BAD ",\"metadata\":{\"a\":1}}", 400, "'metadata'"},
        {"{" BAD ",\"envs\":{\"a\":1}}", 400, "env"},
        {"{" BAD ",\"envs\":{\"a=b\":\"c\"}}", 400, "a=b"},
        {"{" BAD ",\"network\":7}", 400, "'network'"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        expect_refusal("PUT", "/v1/contexts", bad[i].body, bad[i].status, bad[i].says);
    EXPECT(orders_of(ORDER_CREATE) == 0);
    /* Nothing of it is in the store either. */
    struct answer *a = call_acme("GET", NULL, "/v1/contexts?status=all&conversationId=bad");
    EXPECT(json_array_size(part(a->json, "contexts")) == 0);
}

TEST(long_ids)
{
    char name[10240 + 1], body[10240 + 256];

    memset(name, 'x', 10240);
    for (size_t len = 10240; len >= 256; len = len == 10240 ? 257 : len - 1) {
        snprintf(body, sizeof(body), "{\"conversationId\":\"c\",\"pathId\":\"%.*s\"}", (int)len,
                 name);
        if (len > 256)
            expect_refusal("PUT", "/v1/contexts", body, 400, "'pathId' has more than 256 bytes");
    }
    EXPECT(call_acme("PUT", body, "/v1/contexts")->status == 201);
    end_all();
}

TEST(mistakes_are_told_for_a_path_that_is_there_too)
{
    char id[ID_LEN + 1];

    make("c", "p", id);
    expect_refusal("PUT", "/v1/contexts", "{" NAMES ",\"template\":\"nowhere\"}", 404, "nowhere");
    expect_refusal("PUT", "/v1/contexts", "{" NAMES ",\"envs\":[]}", 400, "env");
    end_all();
}

TEST(the_own_tenant_may_be_named)
{
    char body[256];

    snprintf(body, sizeof(body), "{" NAMES ",\"tenantId\":\"%s\"}", server.acme_tenant.id);
    EXPECT(call_acme("PUT", body, "/v1/contexts")->status == 201);
    EXPECT(call_acme("GET", NULL, "/v1/contexts?tenantId=%s", server.acme_tenant.id)->status ==
           200);
    expect_refusal("GET", "/v1/contexts?tenantId=another", NULL, 403, "'tenantId'");
    expect_refusal("GET", "/v1/usage?tenantId=", NULL, 403, "'tenantId'");
    expect_refusal("GET", "/v1/usage?tenantId=%00", NULL, 403, "'tenantId'");
    end_all();
}

TEST(a_lost_sandbox_is_replaced_by_one_of_the_same_template)
{
    struct answer *a =
        call_acme("PUT", "{" NAMES ",\"template\":\"base\",\"ttlSeconds\":60}", "/v1/contexts");
    char id[ID_LEN + 1], sandbox_id[ID_LEN + 1];

    EXPECT(a->status == 201);
    snprintf(id, sizeof(id), "%s", field_of(part(a->json, "context"), "id"));
    snprintf(sandbox_id, sizeof(sandbox_id), "%s", field_of(part(a->json, "context"), "sandboxId"));
    EXPECT(call_acme("DELETE", NULL, "/sandboxes/%s", sandbox_id)->status == 204);
    a = put("c", "p");
    EXPECT(a->status == 201 && json_is_true(part(a->json, "replaced")));
    EXPECT(json_is_true(part(a->json, "wasCreated")));
    EXPECT_STR(field_of(part(a->json, "context"), "id"), id);
    EXPECT_STR(field_of(part(a->json, "sandbox"), "alias"), "base");
    EXPECT(strcmp(field_of(part(a->json, "context"), "sandboxId"), sandbox_id) != 0);
    end_all();
}

TEST(no_room_is_503_with_a_time_to_try_again)
{
    server.fail[ORDER_CREATE] = -EAGAIN;
    struct answer *a = put("c", "p");
    server.fail[ORDER_CREATE] = 0;

    EXPECT(a->status == 503 && strstr(a->text, "Retry-After: 1\r\n"));
    a = call_acme("GET", NULL, "/v1/contexts?status=error&conversationId=c&pathId=p");
    const json_t *c = json_array_get(part(a->json, "contexts"), 0);
    EXPECT_STR(field_of(c, "sandboxStatus"), "error");
    EXPECT(json_is_null(part(c, "sandboxId")) && json_is_string(part(c, "terminatedAt")));
    EXPECT(json_string_length(part(c, "errorMessage")) > 0);
    EXPECT(put("c", "p")->status == 201);
    end_all();
}

TEST(limits_are_named)
{
    char id[ID_LEN + 1];

    server.front.settings.conversation_contexts = 1;
    make("c", "p", id);
    expect_refusal("PUT", "/v1/contexts", "{\"conversationId\":\"c\",\"pathId\":\"q\"}", 429,
                   "1 sandboxes of contexts at a time for one conversation");
    server.front.settings.tenant_contexts = 1;
    expect_refusal("PUT", "/v1/contexts", "{\"conversationId\":\"d\",\"pathId\":\"q\"}", 429,
                   "1 sandboxes of contexts at a time for this tenant");
    EXPECT(put("c", "p")->status == 200);
    server.front.settings.tenant_contexts = server.front.settings.conversation_contexts = 1000;
    end_all();
}

TEST(a_client_that_leaves_loses_nothing)
{
    int fd = client_connect();

    server.silent = true;
    client_send(fd, server.acme, "PUT", "/v1/contexts", "{" NAMES "}");
    for (uint64_t end = clock_ns() + SERVER_DEADLINE_NS;
         orders_of(ORDER_CREATE) == 0 && clock_ns() < end;)
        server_turn(-1);
    close(fd);
    for (int i = 0; i < 5; i++)
        server_turn(-1);
    server.silent = false;
    const struct order *o = last_order(ORDER_CREATE);
    EXPECT(o != NULL);
    if (o)
        warden_answer(o);
    EXPECT(put("c", "p")->status == 200);
    EXPECT(orders_of(ORDER_CREATE) == 1);
    end_all();
}

/* ---- one, by its id -------------------------------------------------------------------------- */

TEST(get_touch_end)
{
    char id[ID_LEN + 1], expires[64];

    make("c", "p", id);
    struct answer *a = call_acme("GET", NULL, "/v1/contexts/%s", id);
    EXPECT(a->status == 200);
    EXPECT_STR(field_of(a->json, "id"), id);
    snprintf(expires, sizeof(expires), "%s", field_of(a->json, "expiresAt"));
    a = call_acme("POST", "{\"ttlSeconds\":7200}", "/v1/contexts/%s/touch", id);
    EXPECT(a->status == 200 && number_of(a->json, "ttlSeconds") == 7200);
    EXPECT(strcmp(field_of(a->json, "expiresAt"), expires) > 0);
    a = call_acme("POST", NULL, "/v1/contexts/%s/touch", id);
    EXPECT(a->status == 200 && number_of(a->json, "ttlSeconds") == 7200);
    EXPECT(call_acme("POST", "{\"ttlSeconds\":0}", "/v1/contexts/%s/touch", id)->status == 400);
    EXPECT(call_acme("POST", "{\"ttl\":1}", "/v1/contexts/%s/touch", id)->status == 400);
    EXPECT(call_acme("POST", "{\"tenantId\":\"x\"}", "/v1/contexts/%s/touch", id)->status == 403);

    a = call_acme("DELETE", NULL, "/v1/contexts/%s", id);
    EXPECT(a->status == 200);
    EXPECT_STR(field_of(a->json, "sandboxStatus"), "terminated");
    EXPECT(json_is_string(part(a->json, "terminatedAt")));
    EXPECT(orders_of(ORDER_KILL) == 1);
    EXPECT(call_acme("DELETE", NULL, "/v1/contexts/%s", id)->status == 200);
    EXPECT(call_acme("GET", NULL, "/v1/contexts/%s", id)->status == 200);
    EXPECT(call_acme("POST", "{}", "/v1/contexts/%s/touch", id)->status == 404);
    a = put("c", "p");
    EXPECT(a->status == 201 && strcmp(field_of(part(a->json, "context"), "id"), id) != 0);
    end_all();
}

TEST(ids_that_name_nothing)
{
    static const char *const ids[] = {"abcdefghij0123456789", "x",
                                      "ABCDEFGHIJ0123456789", "abcdefghij01234567890",
                                      "%27%20or%201",         "branch"};

    for (size_t i = 0; i < ARRAY_SIZE(ids); i++) {
        EXPECT(call_acme("GET", NULL, "/v1/contexts/%s", ids[i])->status == 404);
        EXPECT(call_acme("DELETE", NULL, "/v1/contexts/%s", ids[i])->status == 404);
        EXPECT(call_acme("POST", "{}", "/v1/contexts/%s/touch", ids[i])->status == 404);
    }
    expect_refusal("GET", "/v1/contexts/abcdefghij0123456789", NULL, 404,
                   "Context \"abcdefghij0123456789\" doesn't exist or you don't have access to it");
}

/* ---- lists ----------------------------------------------------------------------------------- */

static size_t listed(const char *query)
{
    struct answer *a = call_acme("GET", NULL, "/v1/contexts%s", query);

    if (a->status != 200)
        printf("# %s: %s\n", query, a->body);
    EXPECT(a->status == 200);
    return json_array_size(part(a->json, "contexts"));
}

TEST(lists_are_filtered)
{
    char id[ID_LEN + 1], query[128];
    struct answer *a;

    make("list 1", "a", id);
    make("list 1", "b", id);
    make("list 2", "a", id);
    EXPECT(listed("") == 3);
    EXPECT(listed("?conversationId=list+1") == 2);
    EXPECT(listed("?conversationId=list%201&pathId=b") == 1);
    EXPECT(listed("?conversationId=none") == 0);
    a = call_acme("GET", NULL, "/v1/contexts/%s", id);
    snprintf(query, sizeof(query), "?sandboxId=%s", field_of(a->json, "sandboxId"));
    EXPECT(listed(query) == 1);
    EXPECT(call_acme("DELETE", NULL, "/v1/contexts/%s", id)->status == 200);
    EXPECT(listed("") == 2);
    EXPECT(listed("?status=ready,creating") == 2);
    EXPECT(listed("?status=creating") == 0);
    EXPECT(listed("?status=terminated&conversationId=list+2") == 1);
    EXPECT(listed("?status=all&conversationId=list+2") == 1);
    EXPECT(json_array_size(part(ask(server.beta, "GET", "/v1/contexts", NULL)->json, "contexts")) ==
           0);
    end_all();
}

TEST(a_sandbox_without_a_path_is_no_context)
{
    char id[ID_LEN + 1];

    make_sandbox("{}", id);
    EXPECT(listed("?status=all") == listed("?status=terminated,error"));
    EXPECT(call_acme("GET", NULL, "/v1/contexts/%s", id)->status == 404);
    clean_up();
}

TEST(lists_have_pages)
{
    char id[ID_LEN + 1], path[16], query[256] = "?conversationId=pages&limit=2";
    size_t seen = 0, pages = 0;

    for (int i = 0; i < 5; i++) {
        snprintf(path, sizeof(path), "p%d", i);
        make("pages", path, id);
    }
    for (; query[0] && pages < 5; pages++) {
        struct answer *a = call_acme("GET", NULL, "/v1/contexts%s", query);
        const json_t *rows = part(a->json, "contexts");

        EXPECT(a->status == 200 && json_array_size(rows) > 0);
        seen += json_array_size(rows);
        if (pages == 0) /* the newest */
            EXPECT_STR(field_of(json_array_get(rows, 0), "pathId"), "p4");
        if (json_is_null(part(a->json, "nextCursor")))
            query[0] = '\0';
        else
            snprintf(query, sizeof(query), "?conversationId=pages&limit=2&cursor=%s",
                     field_of(a->json, "nextCursor"));
    }
    EXPECT(pages == 3 && seen == 5);
    end_all();
}

TEST(bad_queries)
{
    static const struct {
        const char *query, *says;
    } bad[] = {
        {"limit=0", "limit"},
        {"limit=201", "limit"},
        {"limit=-1", "limit"},
        {"limit=x", "limit"},
        {"limit=", "limit"},
        {"status=running", "status \"running\""},
        {"status=", "status"},
        {"status=ready,", "status"},
        {"cursor=", "cursor"},
        {"cursor=x", "cursor"},
        {"cursor=%00", "cursor"},
        {"sandboxId=", "sandboxId"},
        {"sandboxId=SANDBOX", "sandboxId"},
        {"conversationId=", "conversationId"},
        {"conversationId=%00", "conversationId"},
        {"conversationId=%ff", "conversationId"},
        {"conversationId=a%0ab", "conversationId"},
        {"pathId=", "pathId"},
    };
    char target[128];

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        snprintf(target, sizeof(target), "/v1/contexts?%s", bad[i].query);
        expect_refusal("GET", target, NULL, 400, bad[i].says);
    }
    expect_refusal("GET", "/v1/paths", NULL, 400, "'conversationId' is required");
    expect_refusal("GET", "/v1/paths?conversationId=", NULL, 400, "conversationId");
}

/* ---- branch, merge, cleanup, paths ----------------------------------------------------------- */

TEST(a_branch_is_lazy)
{
    struct answer *a = call_acme("POST", BRANCH "}", "/v1/contexts/branch");
    char id[ID_LEN + 1];

    EXPECT(a->status == 201);
    EXPECT(json_is_null(part(a->json, "context")) && json_is_null(part(a->json, "sandbox")));
    EXPECT(json_is_false(part(a->json, "wasCreated")));
    EXPECT_STR(field_of(a->json, "conversationId"), "tree");
    EXPECT_STR(field_of(a->json, "pathId"), "b");
    EXPECT_STR(field_of(a->json, "parentPathId"), "a");
    EXPECT_STR(field_of(a->json, "inherited"), "none");
    /* A parent without a context has no files. */
    a = call_acme("POST", BRANCH ",\"inherit\":\"files\"}", "/v1/contexts/branch");
    EXPECT(a->status == 201);
    EXPECT_STR(field_of(a->json, "inherited"), "none");
    EXPECT(orders_of(ORDER_CREATE) == 0);
    make("tree", "b", id);
    a = call_acme("GET", NULL, "/v1/contexts/%s", id);
    EXPECT_STR(field_of(a->json, "parentPathId"), "a");
    a = call_acme("POST", BRANCH "}", "/v1/contexts/branch");
    EXPECT(a->status == 409 && strstr(message_of(a), "'b' already has a context"));
    end_all();
}

TEST(a_branch_with_files_is_made_at_once)
{
    char id[ID_LEN + 1];

    make("tree", "a", id);
    struct answer *a = call_acme(
        "POST", BRANCH ",\"inherit\":\"files\",\"ttlSeconds\":90,\"metadata\":{\"k\":\"v\"}}",
        "/v1/contexts/branch");
    EXPECT(a->status == 201 && json_is_true(part(a->json, "wasCreated")));
    EXPECT_STR(field_of(a->json, "inherited"), "files");
    EXPECT_STR(field_of(part(a->json, "context"), "pathId"), "b");
    EXPECT_STR(field_of(part(a->json, "context"), "parentPathId"), "a");
    EXPECT(number_of(part(a->json, "context"), "ttlSeconds") == 90);
    EXPECT(strlen(field_of(part(a->json, "sandbox"), "envdAccessToken")) == SPEC_TOKEN_LEN);
    EXPECT(!part(a->json, "kernels"));
    const struct order *o = last_order(ORDER_CHECKPOINT);
    EXPECT(o != NULL);
    if (o)
        EXPECT_STR(last_order(ORDER_CREATE)->snapshot, o->snapshot);
    end_all();
}

TEST(bad_branches)
{
    static const struct {
        const char *more;
        int status;
        const char *says;
    } bad[] = {
        {",\"atMessageId\":\"m\"}", 400, "'atMessageId' goes with"},
        {",\"inherit\":\"files\",\"atMessageId\":\"m\"}", 400, "'atMessageId' goes with"},
        {",\"inherit\":\"files\",\"checkpointId\":\"m\"}", 400, "'checkpointId' goes with"},
        {",\"inherit\":\"state\",\"checkpointId\":\"m\"}", 400, "'checkpointId' has 20"},
        {",\"inherit\":\"state\",\"atMessageId\":\"\"}", 400, "atMessageId"},
        {",\"inherit\":\"state\",\"atMessageId\":\"m\",\"checkpointId\":"
         "\"abcdefghij0123456789\"}",
         400, "give one"},
        {",\"inherit\":\"state\",\"atMessageId\":\"m\"}", 404, "has no sandbox now"},
        {",\"inherit\":\"state\",\"waitMs\":600001}", 400, "'waitMs' must be from 0 to 600000"},
        {",\"inherit\":\"replay\",\"waitMs\":-1}", 400, "'waitMs' must be"},
        {",\"waitMs\":1}", 400, "'waitMs' goes with"},
        {",\"inherit\":\"all\"}", 400, "'inherit' must be"},
        {",\"inherit\":\"\"}", 400, "'inherit' must be"},
        {",\"inherit\":true}", 400, "'inherit' must be a string"},
        {",\"template\":\"base\"}", 400, "unknown field 'template'"},
        {",\"metadata\":{}}", 400, "'metadata' goes with"},
        {",\"ttlSeconds\":5}", 400, "'ttlSeconds' goes with"},
        {",\"inherit\":\"files\",\"ttlSeconds\":0}", 400, "'ttlSeconds' must be from"},
        {",\"inherit\":\"files\",\"metadata\":7}", 400, "'metadata'"},
        {",\"tenantId\":\"x\"}", 403, "'tenantId'"},
        {",\"x\":1}", 400, "unknown field 'x'"},
    };
    char body[512];

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        snprintf(body, sizeof(body), "%s%s", BRANCH, bad[i].more);
        expect_refusal("POST", "/v1/contexts/branch", body, bad[i].status, bad[i].says);
    }
    expect_refusal("POST", "/v1/contexts/branch",
                   "{\"conversationId\":\"t\",\"fromPathId\":\"a\",\"toPathId\":\"a\"}", 400,
                   "'fromPathId' and 'toPathId' are the same path");
    expect_refusal("POST", "/v1/contexts/branch", "{\"conversationId\":\"t\",\"toPathId\":\"a\"}",
                   400, "'fromPathId' is required");
    expect_refusal("POST", "/v1/contexts/branch", "", 400, "'conversationId' is required");
    EXPECT(orders_of(ORDER_CREATE) == 0);
}

TEST(a_merge_ends_its_source)
{
    static const char merge[] =
        "{\"conversationId\":\"m\",\"sourcePathId\":\"b\",\"targetPathId\":\"a\"}";
    char source[ID_LEN + 1], target[ID_LEN + 1];

    make("m", "a", target);
    make("m", "b", source);
    struct answer *a = call_acme("POST", merge, "/v1/contexts/merge");
    EXPECT(a->status == 200);
    EXPECT_STR(field_of(a->json, "sourcePathId"), "b");
    EXPECT_STR(field_of(a->json, "targetPathId"), "a");
    EXPECT_STR(field_of(part(a->json, "terminated"), "id"), source);
    EXPECT_STR(field_of(part(a->json, "terminated"), "sandboxStatus"), "terminated");
    EXPECT(orders_of(ORDER_KILL) == 1);
    a = call_acme("GET", NULL, "/v1/contexts/%s", target);
    EXPECT_STR(field_of(a->json, "sandboxStatus"), "ready");
    a = call_acme("POST", merge, "/v1/contexts/merge");
    EXPECT(a->status == 200 && json_is_null(part(a->json, "terminated")));

    expect_refusal("POST", "/v1/contexts/merge",
                   "{\"conversationId\":\"m\",\"sourcePathId\":\"a\",\"targetPathId\":\"a\"}", 400,
                   "'sourcePathId' and 'targetPathId' are the same path");
    expect_refusal("POST", "/v1/contexts/merge",
                   "{\"conversationId\":\"m\",\"sourcePathId\":\"a\",\"targetPathId\":\"b\","
                   "\"into\":1}",
                   400, "unknown field 'into'");
    expect_refusal("POST", "/v1/contexts/merge", "{\"conversationId\":\"m\"}", 400,
                   "'sourcePathId' is required");
    end_all();
}

TEST(paths_of_a_conversation)
{
    char id[ID_LEN + 1];

    make("walk", "root", id);
    EXPECT(call_acme("POST",
                     "{\"conversationId\":\"walk\",\"fromPathId\":\"root\",\"toPathId\":\"leaf\"}",
                     "/v1/contexts/branch")
               ->status == 201);
    EXPECT(call_acme("POST",
                     "{\"conversationId\":\"walk\",\"sourcePathId\":\"leaf\",\"targetPathId\":"
                     "\"root\"}",
                     "/v1/contexts/merge")
               ->status == 200);
    struct answer *a = call_acme("GET", NULL, "/v1/paths?conversationId=walk");
    const json_t *paths = part(a->json, "paths"), *root = json_array_get(paths, 0),
                 *leaf = json_array_get(paths, 1);
    EXPECT(a->status == 200 && json_array_size(paths) == 2);
    EXPECT_STR(field_of(root, "pathId"), "root");
    EXPECT_STR(field_of(root, "contextId"), id);
    EXPECT_STR(field_of(root, "sandboxStatus"), "ready");
    EXPECT(json_is_null(part(root, "parentPathId")) && json_is_null(part(root, "mergedInto")));
    EXPECT_STR(field_of(leaf, "pathId"), "leaf");
    EXPECT_STR(field_of(leaf, "parentPathId"), "root");
    EXPECT_STR(field_of(leaf, "mergedInto"), "root");
    EXPECT(json_is_null(part(leaf, "contextId")) && json_is_null(part(leaf, "sandboxStatus")));
    a = call_acme("GET", NULL, "/v1/paths?conversationId=unknown");
    EXPECT(a->status == 200 && json_array_size(part(a->json, "paths")) == 0);
    end_all();
}

TEST(cleanup)
{
    char id[ID_LEN + 1];

    make("x", "a", id);
    make("x", "b", id);
    make("y", "a", id);
    struct answer *a = call_acme("POST", "{\"conversationId\":\"x\"}", "/v1/contexts/cleanup");
    EXPECT(a->status == 200 && number_of(a->json, "terminated") == 2);
    EXPECT(listed("") == 1);
    a = call_acme("POST", NULL, "/v1/contexts/cleanup");
    EXPECT(a->status == 200 && number_of(a->json, "terminated") == 0);
    /* One whose sandbox is in use does not expire, and the agents of this test never finish. */
    a = call_acme("GET", NULL, "/v1/contexts/%s", id);
    char sandbox_id[ID_LEN + 1];
    snprintf(sandbox_id, sizeof(sandbox_id), "%s", field_of(a->json, "sandboxId"));
    EXPECT(call_acme("DELETE", NULL, "/sandboxes/%s", sandbox_id)->status == 204);
    EXPECT(call_acme("POST", "{\"ttlSeconds\":1}", "/v1/contexts/%s/touch", id)->status == 200);
    long long ended = 0;
    for (uint64_t end = clock_ns() + SERVER_DEADLINE_NS; ended == 0 && clock_ns() < end;) {
        usleep(50000);
        ended = number_of(call_acme("POST", "{}", "/v1/contexts/cleanup")->json, "terminated");
    }
    EXPECT(ended == 1 && listed("") == 0);
    expect_refusal("POST", "/v1/contexts/cleanup", "{\"conversation\":\"x\"}", 400,
                   "unknown field 'conversation'");
    expect_refusal("POST", "/v1/contexts/cleanup", "{\"conversationId\":\"\"}", 400,
                   "conversationId");
    clean_up();
}

/* ---- usage ----------------------------------------------------------------------------------- */

TEST(usage)
{
    char id[ID_LEN + 1];

    make("u", "a", id);
    struct answer *a = call_acme("GET", NULL, "/v1/usage");
    EXPECT(a->status == 200);
    EXPECT(number_of(part(a->json, "active"), "contexts") == 1);
    EXPECT(number_of(part(a->json, "active"), "sandboxes") == 1);
    EXPECT(number_of(part(a->json, "limits"), "executionSeconds") == 60);
    EXPECT(number_of(part(a->json, "limits"), "executionMaxSeconds") == 600);
    EXPECT(number_of(part(a->json, "limits"), "codeBytes") == 102400);
    EXPECT(json_is_array(part(a->json, "days")));
    EXPECT(json_is_real(part(part(a->json, "total"), "memoryGibSeconds")));
    a = call_acme("GET", NULL, "/v1/usage?from=2024-01-01&to=2024-02-01");
    EXPECT(a->status == 200 && json_array_size(part(a->json, "days")) == 0);
    EXPECT_STR(field_of(a->json, "from"), "2024-01-01");
    EXPECT_STR(field_of(a->json, "to"), "2024-02-01");
    EXPECT(strstr(a->body, "\"cpuSeconds\":0.000"));
    EXPECT(json_is_null(part(a->json, "prices")) && !part(part(a->json, "total"), "cost"));
    expect_refusal("GET", "/v1/usage?by=week", NULL, 400, "use day, conversation or tenant");
    expect_refusal("GET", "/v1/usage?conversationId=", NULL, 400, "conversationId");
    expect_refusal("GET", "/v1/usage?from=2024-02-30", NULL, 400, "from");
    expect_refusal("GET", "/v1/usage?to=", NULL, 400, "to");
    expect_refusal("GET", "/v1/usage?from=2020-01-01&to=2024-01-01", NULL, 400, "400 days");
    end_all();
}

static void on_added(void *arg, const struct ctx_reply *reply)
{
    EXPECT(reply->r == 0);
    *(bool *)arg = true;
}

TEST(usage_by_conversation_with_prices)
{
    char id[ID_LEN + 1];
    bool added = false;
    struct ctx_usage_add adds[2] = {
        {.usage = {.cpu_us = 7200000000, .egress_up = 1ull << 29, .egress_down = 1ull << 29}},
        {.usage = {.executions = 3, .sandboxes = 1}}};

    make("priced", "a", id);
    json_t *row = json_incref(call_acme("GET", NULL, "/v1/contexts/%s", id)->json);
    for (int i = 0; i < 2; i++)
        snprintf(adds[i].tenant, sizeof(adds[i].tenant), "%s", field_of(row, "tenantId"));
    snprintf(adds[0].context, sizeof(adds[0].context), "%s", id);
    json_decref(row);
    store->ops->usage_add(store, adds, 2, on_added, &added);
    while (!added)
        server_turn(-1);
    snprintf(server.front.settings.prices, sizeof(server.front.settings.prices), "%s",
             "cpu=0.05/h,egress=0.09/G,execution=0.0001,currency=EUR");
    struct answer *a = call_acme("GET", NULL, "/v1/usage?by=conversation&conversationId=priced");
    const json_t *one = json_array_get(part(a->json, "conversations"), 0);
    const json_t *cost = part(one, "cost");
    EXPECT(a->status == 200 && json_array_size(part(a->json, "conversations")) == 1);
    EXPECT(!part(a->json, "days") && json_is_null(part(a->json, "nextCursor")));
    EXPECT_STR(field_of(one, "conversationId"), "priced");
    EXPECT(number_of(one, "egressBytes") == 1 << 30);
    EXPECT(number_of(one, "egressBytesOut") == 1 << 29);
    EXPECT_STR(field_of(cost, "amount"), "0.19");
    EXPECT_STR(field_of(cost, "currency"), "EUR");
    EXPECT_STR(field_of(part(cost, "parts"), "cpu"), "0.1");
    EXPECT_STR(field_of(part(cost, "parts"), "egress"), "0.09");
    EXPECT_STR(field_of(part(cost, "parts"), "sandbox"), "0");
    EXPECT_STR(field_of(part(part(a->json, "total"), "cost"), "amount"), "0.19");
    EXPECT_STR(field_of(part(part(a->json, "prices"), "cpu"), "per"), "hour");
    EXPECT(!part(part(a->json, "prices"), "memory"));
    a = call_acme("GET", NULL, "/v1/usage?by=conversation");
    EXPECT(json_is_null(part(json_array_get(part(a->json, "conversations"), 0), "conversationId")));
    EXPECT_STR(field_of(part(part(a->json, "total"), "cost"), "amount"), "0.1903");
    a = call_acme("GET", NULL, "/v1/usage?by=tenant");
    EXPECT(a->status == 200 && !part(a->json, "days") && !part(a->json, "conversations"));
    EXPECT_STR(field_of(part(part(a->json, "total"), "cost"), "amount"), "0.1903");
    a = call_acme("GET", NULL, "/v1/usage?conversationId=priced");
    EXPECT_STR(field_of(part(part(a->json, "total"), "cost"), "amount"), "0.19");
    server.front.settings.prices[0] = '\0';
    end_all();
}

/* ---- other servers --------------------------------------------------------------------------- */

static int store_r;
static bool store_answered;

static void on_store(void *arg, const struct ctx_reply *reply)
{
    (void)arg;
    store_r = reply->r;
    store_answered = true;
}

static int store_wait(void)
{
    for (uint64_t end = clock_ns() + SERVER_DEADLINE_NS; !store_answered && clock_ns() < end;)
        server_turn(-1);
    EXPECT(store_answered);
    store_answered = false;
    return store_r;
}

/* As if another server had made it. */
static void make_elsewhere(const char *conversation, const char *path, const char *id)
{
    struct ctx_claim claim = {.tenant = server.acme_tenant.id,
                              .conversation = conversation,
                              .path = path,
                              .id = id,
                              .node = OTHER_NODE,
                              .template_id = "base",
                              .default_ttl_ms = 60000,
                              .lease_ms = 60000,
                              .limits = {1000, 1000}};

    store->ops->seen(store, OTHER_NODE, "https://other.example:8443/", on_store, NULL);
    EXPECT(store_wait() == 0);
    store->ops->claim(store, &claim, on_store, NULL);
    EXPECT(store_wait() == 0);
    store->ops->settle(store, server.acme_tenant.id, id, OTHER_NODE, "sandbox0000000000000", NULL,
                       NULL, on_store, NULL);
    EXPECT(store_wait() == 0);
}

static void expect_redirect(const struct answer *a, const char *target)
{
    char location[256];

    snprintf(location, sizeof(location), "\r\nLocation: https://other.example:8443%s\r\n", target);
    if (a->status != 307 || !strstr(a->text, location))
        printf("# %s\n", a->text);
    EXPECT(a->status == 307 && strstr(a->text, location));
    EXPECT(number_of(a->json, "code") == 307);
}

TEST(what_another_server_has_is_request_log_there)
{
    static const char id[] = "ctxelsewhere00000000", merge[] =
                                                         "{\"conversationId\":\"far\","
                                                         "\"sourcePathId\":\"a\",\"targetPathId\":"
                                                         "\"b\"}";

    make_elsewhere("far", "a", id);
    expect_redirect(
        call_acme("PUT", "{\"conversationId\":\"far\",\"pathId\":\"a\"}", "/v1/contexts?x=%%20y"),
        "/v1/contexts?x=%20y");
    expect_redirect(call_acme("POST", "{}", "/v1/contexts/%s/touch", id),
                    "/v1/contexts/ctxelsewhere00000000/touch");
    expect_redirect(call_acme("DELETE", NULL, "/v1/contexts/%s", id),
                    "/v1/contexts/ctxelsewhere00000000");
    expect_redirect(call_acme("DELETE", NULL, "http://localhost/v1/contexts/%s", id),
                    "/v1/contexts/ctxelsewhere00000000");
    expect_redirect(call_acme("GET", NULL, "/v1/contexts/%s/checkpoints", id),
                    "/v1/contexts/ctxelsewhere00000000/checkpoints");
    expect_redirect(call_acme("POST", "{\"messageId\":\"m\"}", "/v1/contexts/%s/rewind", id),
                    "/v1/contexts/ctxelsewhere00000000/rewind");
    expect_redirect(call_acme("POST", "{\"codes\":[\"1\"]}", "/v1/contexts/%s/explore", id),
                    "/v1/contexts/ctxelsewhere00000000/explore");
    expect_redirect(call_acme("POST", "{\"candidateId\":\"abcdefghij0123456789\"}",
                              "/v1/contexts/%s/adopt", id),
                    "/v1/contexts/ctxelsewhere00000000/adopt");
    expect_redirect(call_acme("POST", merge, "/v1/contexts/merge"), "/v1/contexts/merge");
    expect_redirect(call_acme("POST",
                              "{\"conversationId\":\"far\",\"fromPathId\":\"a\",\"toPathId\":"
                              "\"c\",\"inherit\":\"files\"}",
                              "/v1/contexts/branch"),
                    "/v1/contexts/branch");
    /* What is only read is read here. */
    EXPECT(call_acme("GET", NULL, "/v1/contexts/%s", id)->status == 200);
    EXPECT(listed("?conversationId=far") == 1);
    store->ops->terminate(store, server.acme_tenant.id, id, on_store, NULL);
    EXPECT(store_wait() == 0);
    clean_up();
}

/* ---- the record ------------------------------------------------------------------------------ */

/* What the guard was asked, and the answer to a request that it answers so. */
static struct {
    struct ask ask;
    char payload[4096];
} asked;

static struct answer *ask_with_guard(const char *target, int code, const char *text)
{
    struct ask a = {.magic = GUARD_MAGIC, .what = ASK_AUDIT, .code = code};
    int pair[2], memory = memfd_create("answer", MFD_CLOEXEC), fd = client_connect();
    uint64_t deadline = clock_ns() + SERVER_DEADLINE_NS;
    ssize_t n;

    if (memory < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        server_fail("a guard");
    memset(&asked, 0, sizeof(asked));
    guard_set_socket(&server.front, pair[0]);
    client_send(fd, server.acme, "GET", target, NULL);
    do {
        server_turn(pair[1]);
        n = recv(pair[1], &asked, sizeof(asked) - 1, MSG_DONTWAIT);
    } while (n < 0 && clock_ns() < deadline);
    a.seq = asked.ask.seq;
    EXPECT(n > 0 && asked.ask.what == ASK_AUDIT);
    EXPECT(fd_write_all(memory, text, strlen(text)) == 0);
    EXPECT(ipc_send(pair[1], &a, sizeof(a), &memory, code < 0 ? 0 : 1) == 0);
    struct answer *answer = client_receive(fd);
    close(memory);
    close(pair[1]);
    guard_set_socket(&server.front, -1);
    return answer;
}

#define LIST(text) (server.list = (text), server.list_len = sizeof(text) - 1)

TEST(differences)
{
    char id[ID_LEN + 1];

    make_sandbox("{\"templateID\":\"base\"}", id);
    LIST("m.Af 3 /a b\nc\0Dd 0 /\xff\0Ml 0 /run/e2b/x\0Mo 0 /z\0");
    struct answer *a = call_acme("GET", NULL, "/v1/diff?of=%s&cursor=L3g=", id);
    const json_t *changes = part(a->json, "changes"), *first = json_array_get(changes, 0);
    EXPECT(a->status == 200 && json_array_size(changes) == 3);
    EXPECT_STR(field_of(first, "path"), "/a b\nc");
    EXPECT_STR(field_of(first, "change"), "added");
    EXPECT_STR(field_of(first, "type"), "file");
    EXPECT(number_of(first, "size") == 3);
    EXPECT_STR(field_of(json_array_get(changes, 1), "path"), "/\xef\xbf\xbd");
    EXPECT_STR(field_of(json_array_get(changes, 1), "change"), "removed");
    EXPECT_STR(field_of(json_array_get(changes, 2), "type"), "other");
    EXPECT(json_is_true(part(a->json, "complete")));
    EXPECT_STR(field_of(a->json, "nextCursor"), "L3o=");
    EXPECT_STR(last_order(ORDER_DIFF)->id, id);
    EXPECT_STR(last_order(ORDER_DIFF)->against, "");
    LIST(".l");
    a = call_acme("GET", NULL, "/v1/diff?of=%s", id);
    EXPECT(a->status == 200 && json_is_false(part(a->json, "complete")));
    EXPECT_STR(field_of(a->json, "nextCursor"), "(null)");
    a = ask(server.beta, "GET", "/v1/diff?of=aaaaaaaaaaaaaaaaaaaa", NULL);
    EXPECT(a->status == 404);
    EXPECT_STR(message_of(a), "There is no sandbox, snapshot or template \"aaaaaaaaaaaaaaaaaaaa\"");
    a = call_acme("GET", NULL, "/v1/diff?of=%s&against=gone", id);
    EXPECT(a->status == 404);
    EXPECT_STR(message_of(a), "There is no snapshot or template \"gone\"");
    clean_up();
}

/* Files workers are for all tenants. */
TEST(a_tenant_has_a_few_differences_looked_for_at_a_time)
{
    char id[ID_LEN + 1], target[64];
    int fds[4];
    size_t n = server.n_orders;

    make_sandbox("{\"templateID\":\"base\"}", id);
    snprintf(target, sizeof(target), "/v1/diff?of=%s", id);
    server.silent = true;
    for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
        client_send(fds[i] = client_connect(), server.acme, "GET", target, NULL);
    while (server.n_orders < n + 1 + ARRAY_SIZE(fds))
        server_turn(-1);
    struct answer *a = call_acme("GET", NULL, "/v1/diff?of=%s", id);
    EXPECT(a->status == 429 && strstr(message_of(a), "4 comparisons"));
    server.silent = false;
    LIST(".l");
    for (size_t i = n; i < server.n_orders; i++)
        if (server.orders[i].op == ORDER_DIFF)
            warden_answer(&server.orders[i]);
    for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
        EXPECT(client_receive(fds[i])->status >= 200);
    EXPECT(call_acme("GET", NULL, "/v1/diff?of=%s", id)->status == 200);
    clean_up();
}

/* The list comes from a process that has read what sandboxes wrote. */
TEST(lists_of_differences_that_are_none)
{
    static const struct {
        const char *text;
        size_t len;
    } bad[] = {
#define TEXT(t) {t, sizeof(t) - 1}
        TEXT("x"),
        TEXT("..A"),
        TEXT("..Af 3 /a"),
        TEXT("..Xf 3 /a\0"),
        TEXT("..A\0 3 /a\0"),
        TEXT("..Ax 3 /a\0"),
        TEXT("..Af x /a\0"),
        TEXT("..Af -1 /a\0"),
        TEXT("..Af 3 a\0"),
        TEXT("..Af 3\0 /a\0"),
        TEXT("..Af  /a\0"),
        TEXT("..\0\0\0\0\0\0\0\0"),
        TEXT("..Af 99999999999999999999999999999 /a\0")};
    char id[ID_LEN + 1];

    make_sandbox("{\"templateID\":\"base\"}", id);
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        server.list = bad[i].text;
        server.list_len = bad[i].len;
        struct answer *a = call_acme("GET", NULL, "/v1/diff?of=%s", id);
        if (a->status != 500)
            printf("# %zu: %s\n", i, a->body);
        EXPECT(a->status == 500);
    }
    server.list_len = 0;
    server.fail[ORDER_DIFF] = -EAGAIN;
    EXPECT(call_acme("GET", NULL, "/v1/diff?of=%s", id)->status >= 429);
    server.fail[ORDER_DIFF] = 0;
    clean_up();
}

TEST(the_record_is_the_tenants_own)
{
    struct answer *a =
        ask_with_guard("/v1/audit?kind=dns&verdict=deny&name=*.a.test&limit=7&cursor=99"
                       "&sandboxId=abcdefghij0123456789&from=2026-01-01T00:00:00Z"
                       "&to=2026-01-01T00:00:01.5Z",
                       0, "{\"records\":[{\"seq\":9,\"rule\":\"],\\\"next\\\":1}\"}],\"next\":9}");

    EXPECT(a->status == 200);
    EXPECT(json_array_size(part(a->json, "records")) == 1);
    EXPECT(number_of(json_array_get(part(a->json, "records"), 0), "seq") == 9);
    EXPECT_STR(field_of(a->json, "nextCursor"), "9");
    EXPECT_STR(asked.ask.tenant, server.acme_tenant.id);
    EXPECT_STR(asked.payload,
               "{\"sandbox\":\"abcdefghij0123456789\",\"kind\":\"dns\",\"verdict\":"
               "\"deny\",\"name\":\"*.a.test\",\"from\":1767225600000,\"to\":1767225601500,"
               "\"limit\":7,\"before\":99}");
    a = ask_with_guard("/v1/audit", 0, "{\"records\":[],\"next\":null}");
    EXPECT(a->status == 200 && json_array_size(part(a->json, "records")) == 0);
    EXPECT(json_is_null(part(a->json, "nextCursor")));
    EXPECT_STR(asked.payload, "{\"limit\":100}");
}

TEST(the_record_without_a_guard)
{
    struct answer *a = call_acme("GET", NULL, "/v1/audit");

    EXPECT(a->status == 503 && strstr(a->text, "Retry-After: 1"));
    EXPECT(ask_with_guard("/v1/audit", -EAGAIN, "")->status == 503);
    EXPECT(ask_with_guard("/v1/audit", -EIO, "")->status == 500);
    /* And with one that talks nonsense. */
    static const char *const nonsense[] = {"",
                                           "{}",
                                           "{\"records\":[]}",
                                           "{\"records\":[],\"next\":x}",
                                           "{\"records\":[],\"next\":1",
                                           ",",
                                           "],\"next\":null}"};
    for (size_t i = 0; i < ARRAY_SIZE(nonsense); i++)
        EXPECT(ask_with_guard("/v1/audit", 0, nonsense[i])->status == 500);
}

TEST(bad_questions_about_the_record)
{
    static const char *const bad[] = {
        "kind=x",   "kind=head",  "verdict=x", "name=",       "name=a%22",
        "limit=0",  "limit=1001", "limit=",    "from=x",      "to=2026-01-01",
        "cursor=x", "cursor=0",   "cursor=-1", "sandboxId=x", "tenantId=x"};

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct answer *a = call_acme("GET", NULL, "/v1/audit?%s", bad[i]);
        if (a->status != (strstr(bad[i], "tenantId") ? 403 : 400))
            printf("# %s: %d %s\n", bad[i], a->status, a->body);
        EXPECT(a->status == (strstr(bad[i], "tenantId") ? 403 : 400));
    }
}
