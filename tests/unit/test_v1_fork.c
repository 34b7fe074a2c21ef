/* Over HTTP: branches with state, messages and the way back, codes side by side. */
#include "tap.h"

#include "v1_rig.h"

TAP_MAIN

/* ---- branches -------------------------------------------------------------------------------- */

TEST(a_branch_with_state_says_what_came_along)
{
    char id[ID_LEN + 1];

    make("tree", "a", id);
    struct answer *a = call_acme("POST",
                                 BRANCH ",\"inherit\":\"state\",\"waitMs\":10,\"envs\":{\"A\":"
                                        "\"b\"},\"network\":\"open\"}",
                                 "/v1/contexts/branch");
    EXPECT(a->status == 201 && json_is_true(part(a->json, "wasCreated")));
    EXPECT_STR(field_of(a->json, "inherited"), "state");
    const json_t *kernel = json_array_get(part(a->json, "kernels"), 0);
    EXPECT_STR(field_of(kernel, "contextId"), FORK_KERNEL);
    EXPECT_STR(field_of(kernel, "language"), "python");
    const struct sandbox *b =
        sandbox_find(&server.front, field_of(part(a->json, "context"), "sandboxId"));
    EXPECT(b && b->spec.allow_internet == 1);
    EXPECT_STR(b ? field_of(b->spec.envs, "A") : "", "b");
    fork_agents.cell_runs = true;
    a = call_acme("POST",
                  "{\"conversationId\":\"tree\",\"fromPathId\":\"a\",\"toPathId\":\"c\","
                  "\"inherit\":\"state\"}",
                  "/v1/contexts/branch");
    fork_agents.cell_runs = false;
    EXPECT(a->status == 409 && json_array_size(part(a->json, "inTheWay")) == 1);
    end_all();
}

/* ---- checkpoints ----------------------------------------------------------------------------- */

static struct answer *run_message(const char *path, const char *message)
{
    char body[512];

    snprintf(body, sizeof(body),
             "{\"conversationId\":\"talk\",\"pathId\":\"%s\",\"messageId\":\"%s\","
             "\"code\":\"said\"}",
             path, message);
    struct answer *a = call_acme("POST", body, "/v1/tools/run_code");
    EXPECT(a->status == 200);
    EXPECT_STR(field_of(a->json, "stdout"), "said");
    return a;
}

TEST(messages_and_the_way_back)
{
    char id[ID_LEN + 1], second[ID_LEN + 1];
    struct settings before = server.front.settings;

    make("talk", "main", id);
    server.front.settings.checkpoint_keep = 1;
    server.front.settings.checkpoint_max = 2;
    struct answer *a = run_message("main", "m1");
    EXPECT_STR(field_of(part(a->json, "checkpoint"), "messageId"), "m1");
    run_message("main", "m1");
    a = run_message("main", "m2");
    snprintf(second, sizeof(second), "%s", field_of(part(a->json, "checkpoint"), "checkpointId"));
    a = call_acme("GET", NULL, "/v1/contexts/%s/checkpoints", id);
    const json_t *list = part(a->json, "checkpoints");
    EXPECT(a->status == 200 && json_array_size(list) == 2);
    EXPECT_STR(field_of(json_array_get(list, 1), "checkpointId"), second);
    EXPECT_STR(field_of(json_array_get(list, 1), "parentId"),
               field_of(json_array_get(list, 0), "checkpointId"));
    EXPECT(json_is_true(part(json_array_get(list, 1), "current")));

    a = call_acme("POST", "{\"messageId\":\"m1\"}", "/v1/contexts/%s/rewind", id);
    EXPECT(a->status == 200);
    EXPECT_STR(field_of(part(a->json, "context"), "id"), id);
    EXPECT_STR(field_of(part(a->json, "checkpoint"), "messageId"), "m1");
    EXPECT(json_is_true(part(part(a->json, "checkpoint"), "current")));
    EXPECT(json_array_size(part(a->json, "kernels")) == 1);
    EXPECT(orders_of(ORDER_REWIND) == 1);

    run_message("main", "m3");
    run_message("main", "m4"); /* of m2 and m3 none stays */
    a = call_acme("POST", "{\"messageId\":\"m2\"}", "/v1/contexts/%s/rewind", id);
    EXPECT(a->status == 410 && json_array_size(part(a->json, "checkpoints")) == 2);
    a = call_acme("POST",
                  "{\"conversationId\":\"talk\",\"fromPathId\":\"main\",\"toPathId\":\"b\","
                  "\"inherit\":\"state\",\"atMessageId\":\"m2\"}",
                  "/v1/contexts/branch");
    EXPECT(a->status == 410 && json_array_size(part(a->json, "checkpoints")) == 2);
    EXPECT(call_acme("GET", NULL, "/v1/paths?conversationId=talk")->status == 200);
    server.front.settings = before;
    server.front.settings.checkpoints = false;
    a = run_message("main", "m5");
    EXPECT(strstr(field_of(part(a->json, "checkpoint"), "skipped"), "setting checkpoints"));
    server.front.settings = before;
    end_all();
    a = call_acme("GET", NULL, "/v1/contexts/%s/checkpoints", id);
    EXPECT(a->status == 200 && json_array_size(part(a->json, "checkpoints")) == 0);
    a = call_acme("POST", "{\"messageId\":\"m1\"}", "/v1/contexts/%s/rewind", id);
    EXPECT(a->status == 404 && strstr(message_of(a), "has ended"));
}

TEST(bad_rewinds)
{
    static const struct {
        const char *body;
        int status;
        const char *says;
    } bad[] = {
        {"{}", 400, "give one of"},
        {"{\"messageId\":\"m\",\"checkpointId\":\"abcdefghij0123456789\"}", 400, "give one of"},
        {"{\"messageId\":\"\"}", 400, "messageId"},
        {"{\"messageId\":7}", 400, "'messageId' must be a string"},
        {"{\"checkpointId\":\"x\"}", 400, "'checkpointId' has 20"},
        {"{\"messageId\":\"m\",\"force\":true}", 400, "unknown field 'force'"},
        {"{\"messageId\":\"m\",\"tenantId\":\"x\"}", 403, "'tenantId'"},
        {"{\"messageId\":\"m\"}", 404, "there is no checkpoint of message 'm'"},
        {"{\"checkpointId\":\"abcdefghij0123456789\"}", 404, "there is no checkpoint"},
    };
    char id[ID_LEN + 1], target[128];

    make("talk", "main", id);
    snprintf(target, sizeof(target), "/v1/contexts/%s/rewind", id);
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        expect_refusal("POST", target, bad[i].body, bad[i].status, bad[i].says);
    expect_refusal("POST", "/v1/contexts/x/rewind", "{\"messageId\":\"m\"}", 404, "\"x\"");
    expect_refusal("POST", "/v1/contexts/abcdefghij0123456789/rewind", "{\"messageId\":\"m\"}", 404,
                   "has ended, or never existed");
    expect_refusal("GET", "/v1/contexts/abcdefghij0123456789/checkpoints", NULL, 404,
                   "doesn't exist");
    EXPECT(orders_of(ORDER_REWIND) == 0);
    end_all();
}

TEST(codes_run_side_by_side_and_one_is_adopted)
{
    char id[ID_LEN + 1], candidate[2][ID_LEN + 1];

    make("best", "main", id);
    struct answer *a = call_acme("POST", "{\"codes\":[\"one\",\"two\"],\"keepSeconds\":30}",
                                 "/v1/contexts/%s/explore", id);
    const json_t *results = part(a->json, "results");
    if (a->status != 200)
        printf("# %s\n", a->body);
    EXPECT(a->status == 200 && json_array_size(results) == 2);
    EXPECT(id_valid(field_of(a->json, "explorationId")));
    EXPECT(strlen(field_of(a->json, "keptUntil")) == strlen("2026-11-15T12:00:00.123Z"));
    for (size_t i = 0; i < 2; i++) {
        const json_t *r = json_array_get(results, i);
        EXPECT_STR(field_of(r, "stdout"), i == 0 ? "one" : "two");
        EXPECT(number_of(r, "index") == (long long)i && json_is_true(part(r, "success")));
        EXPECT_STR(field_of(r, "contextId"), id);
        snprintf(candidate[i], sizeof(candidate[i]), "%s", field_of(r, "candidateId"));
        EXPECT_STR(field_of(r, "sandboxId"), candidate[i]);
    }
    char body[128];
    snprintf(body, sizeof(body), "{\"candidateId\":\"%s\"}", candidate[0]);
    EXPECT(ask(server.beta, "POST", "/v1/contexts/abcdefghij0123456789/adopt", body)->status ==
           404);
    a = call_acme("POST", body, "/v1/contexts/%s/adopt", id);
    EXPECT(a->status == 200);
    EXPECT_STR(field_of(part(a->json, "context"), "sandboxId"), candidate[0]);
    EXPECT(!sandbox_find(&server.front, candidate[1]));
    EXPECT(call_acme("POST", body, "/v1/contexts/%s/adopt", id)->status == 404);
    a = put("best", "main");
    EXPECT(a->status == 200 && json_is_false(part(a->json, "replaced")));
    EXPECT_STR(field_of(part(a->json, "sandbox"), "sandboxID"), candidate[0]);

    a = call_acme("POST", "{\"codes\":[\"one\"],\"keepSeconds\":0}", "/v1/contexts/%s/explore", id);
    EXPECT(a->status == 200 && json_is_null(part(a->json, "keptUntil")));
    EXPECT(!part(json_array_get(part(a->json, "results"), 0), "candidateId"));
    EXPECT(sandboxes_count(&server.front, server.acme_tenant.id) == 1);
    server.front.settings.tenant_sandboxes = 3;
    a = call_acme("POST", "{\"codes\":[\"a\",\"b\",\"c\"]}", "/v1/contexts/%s/explore", id);
    server.front.settings.tenant_sandboxes = 1000;
    EXPECT(a->status == 429 && strstr(message_of(a), "the limit is 3"));
    fork_agents.cell_runs = true;
    a = call_acme("POST", "{\"codes\":[\"a\"]}", "/v1/contexts/%s/explore", id);
    fork_agents.cell_runs = false;
    EXPECT(a->status == 409 && json_array_size(part(a->json, "inTheWay")) == 1);
    EXPECT(sandboxes_count(&server.front, server.acme_tenant.id) == 1);
    end_all();
}

TEST(bad_explorations)
{
    static const struct {
        const char *body;
        int status;
        const char *says;
    } bad[] = {
        {"{}", 400, "'codes' must have 1 to 64 entries"},
        {"{\"codes\":[]}", 400, "'codes' must have 1 to 64 entries"},
        {"{\"codes\":\"x\"}", 400, "'codes'"},
        {"{\"codes\":[\"\"]}", 400, "codes[0]"},
        {"{\"codes\":[\"1\",7]}", 400, "codes[1]"},
        {"{\"codes\":[\"1\"],\"language\":\"cobol\"}", 400, "unknown language"},
        {"{\"codes\":[\"1\"],\"timeoutMs\":0}", 400, "'timeoutMs' must be from 1"},
        {"{\"codes\":[\"1\"],\"timeoutMs\":99999999}", 400, "'timeoutMs' must be from 1"},
        {"{\"codes\":[\"1\"],\"keepSeconds\":-1}", 400, "'keepSeconds' must be from 0"},
        {"{\"codes\":[\"1\"],\"waitMs\":\"1\"}", 400, "'waitMs'"},
        {"{\"codes\":[\"1\"],\"count\":1}", 400, "unknown field 'count'"},
        {"{\"codes\":[\"1\"],\"tenantId\":\"x\"}", 403, "tenantId"},
        {"{\"codes\":[\"1\"]}", 404, "has ended, or never existed"},
    };
    AUTO(strbuf_done) struct strbuf body = {0};

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        expect_refusal("POST", "/v1/contexts/abcdefghij0123456789/explore", bad[i].body,
                       bad[i].status, bad[i].says);
    strbuf_init(&body, 1024);
    for (int i = 0; i < 65; i++)
        strbuf_addf(&body, "%s\"1\"", i ? "," : "{\"codes\":[");
    strbuf_addstr(&body, "]}");
    expect_refusal("POST", "/v1/contexts/abcdefghij0123456789/explore", body.buf, 400, "codes");
    expect_refusal("POST", "/v1/contexts/abcdefghij0123456789/adopt", "{}", 400, "'candidateId'");
    expect_refusal("POST", "/v1/contexts/abcdefghij0123456789/adopt",
                   "{\"candidateId\":\"abcdefghij0123456789\"}", 404, "has ended");
}
