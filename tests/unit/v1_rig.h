/* Contexts over HTTP, with the real manager, a store in memory, a warden that only answers, and
 * agents that hold their cells and run them. */
#pragma once

#define SERVER_REQUEST dispatch_request
#include "front/main/dispatch.h"

#include "fork_agents.h"

#include "front/contexts/context.h"

static struct ctx_store *store;
static bool started;

static inline void on_started(struct front *f)
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
    server.front.settings.tenant_contexts = server.front.settings.conversation_contexts = 1000;
    fork_agents_start();
}

static inline const json_t *part(const json_t *object, const char *name)
{
    return json_object_get(object, name);
}

static inline long long number_of(const json_t *object, const char *name)
{
    return json_integer_value(part(object, name));
}

static inline struct answer *put(const char *conversation, const char *path)
{
    char body[1024];

    snprintf(body, sizeof(body), "{\"conversationId\":\"%s\",\"pathId\":\"%s\"}", conversation,
             path);
    return call_acme("PUT", body, "/v1/contexts");
}

/* Makes one, and copies its id. */
static inline void make(const char *conversation, const char *path, char id[ID_LEN + 1])
{
    struct answer *a = put(conversation, path);

    if (a->status != 201)
        printf("# %s\n", a->body);
    EXPECT(a->status == 201);
    snprintf(id, ID_LEN + 1, "%s", field_of(part(a->json, "context"), "id"));
}

static inline void end_all(void)
{
    json_t *all = json_incref(call_acme("GET", NULL, "/v1/contexts?limit=200")->json), *v;
    size_t i;

    json_array_foreach(json_object_get(all, "contexts"), i, v)
        EXPECT(call_acme("DELETE", NULL, "/v1/contexts/%s", field_of(v, "id"))->status == 200);
    json_decref(all);
    clean_up();
}

static inline size_t orders_of(enum order_op op)
{
    size_t n = 0;

    for (size_t i = 0; i < server.n_orders; i++)
        n += server.orders[i].op == (uint32_t)op;
    return n;
}

static inline void expect_refusal(const char *method, const char *target, const char *body,
                                  int status, const char *says)
{
    struct answer *a = ask(server.acme, method, target, body);

    if (a->status != status || !strstr(message_of(a), says))
        printf("# %s %s %.200s: %d %s\n", method, target, body ? body : "", a->status, a->body);
    EXPECT(a->status == status && number_of(a->json, "code") == status);
    EXPECT(strstr(message_of(a), says));
}

#define BRANCH "{\"conversationId\":\"tree\",\"fromPathId\":\"a\",\"toPathId\":\"b\""
