/* E2B's routes of secrets, with a guard that only has a key. */
#include "tap.h"

#include "e2b_server.h"

#include <pthread.h>

#include "front/core/guard.h"
#include "front/store/secrets.h"
#include "lib/vault/vault.h"

TAP_MAIN

/* ---- the guard ------------------------------------------------------------------------------- */

static struct {
    int sock;
    pthread_t thread;
    struct vault_key *key;
    uint8_t public_key[VAULT_PUBLIC_LEN];
} guard;

static void *guard_run(void *arg)
{
    struct {
        struct ask ask;
        uint8_t payload[GUARD_PUBLIC_LEN];
    } m;

    (void)arg;
    while (recv(guard.sock, &m, sizeof(m), 0) >= (ssize_t)sizeof(m.ask)) {
        m.ask.code = m.ask.what == ASK_PUBLIC ? 0 : -EINVAL;
        m.ask.len = GUARD_PUBLIC_LEN;
        memcpy(m.payload, guard.public_key, GUARD_PUBLIC_LEN);
        if (send(guard.sock, &m, sizeof(m), MSG_NOSIGNAL) < 0)
            break;
    }
    return NULL;
}

static void guard_start(void)
{
    int pair[2];

    if (!guard.key)
        guard.key = vault_key_new();
    vault_key_public(guard.key, guard.public_key);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        server_fail("socketpair");
    guard.sock = pair[1];
    pthread_create(&guard.thread, NULL, guard_run, NULL);
    guard_set_socket(&server.front, pair[0]);
}

static void guard_stop(void)
{
    guard_set_socket(&server.front, -1);
    pthread_join(guard.thread, NULL);
    close(guard.sock);
}

/* ---- what changed ---------------------------------------------------------------------------- */

static char last_changed[128];

static void on_changed(struct front *f, const char *tenant, const char *name)
{
    (void)f;
    snprintf(last_changed, sizeof(last_changed), "%s/%s", tenant, name);
}

static void begin(void)
{
    server.front.on_secret_changed = on_changed;
    last_changed[0] = '\0';
    guard_start();
}

static void end(void)
{
    struct answer *a = call_acme("GET", NULL, "/secrets");
    json_t *all = json_incref(a->json), *v;
    size_t i;

    json_array_foreach(all, i, v)
        EXPECT(call_acme("DELETE", NULL, "/secrets/%s", field_of(v, "secretID"))->status == 204);
    json_decref(all);
    guard_stop();
}

static void take_sealed(const struct store_vault *v, void *arg)
{
    snprintf(arg, VAULT_SEALED_MAX + 1, "%s", v->sealed);
}

/* Whether what is stored opens as this value, with the guard's key. */
static bool opens(const char *name, const char *value)
{
    AUTO(free_p) char *sealed = xcalloc(1, VAULT_SEALED_MAX + 1);
    struct secret s = {0};
    char purpose[128];
    struct sg_error e;

    snprintf(purpose, sizeof(purpose), "%s/%s", server.acme_tenant.id, name);
    EXPECT(store_vault_get(server.front.store, server.acme_tenant.id, name, take_sealed, sealed,
                           &e) == 0);
    bool same = vault_open(guard.key, purpose, sealed, &s, &e) == 0 && s.len == strlen(value) &&
                memcmp(s.bytes, value, s.len) == 0;
    secret_done(&s);
    return same;
}

/* Whether a text is in the database's files. */
static bool on_disk(const char *text)
{
    static const char *const files[] = {"server.db", "server.db-wal"};
    bool found = false;

    for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
        AUTO(free_p) char *data = NULL;
        char path[128];
        size_t len = 0;

        snprintf(path, sizeof(path), "%s/%s", server.dir, files[i]);
        EXPECT(file_read(AT_FDCWD, path, 64u << 20, &data, &len) == 0);
        found |= memmem(data, len, text, strlen(text)) != NULL;
    }
    return found;
}

/* ---- create and get -------------------------------------------------------------------------- */

TEST(a_secret_is_made_and_its_value_never_told)
{
    begin();
    struct answer *a = call_acme("POST",
                                 "{\"name\":\"OpenAI-Key\",\"value\":\"hunter2-value\","
                                 "\"metadata\":{\"team\":\"x\"}}",
                                 "/secrets");
    EXPECT(a->status == 201);
    EXPECT(strncmp(field_of(a->json, "secretID"), "sec_", 4) == 0);
    EXPECT_STR(field_of(a->json, "name"), "openai-key");
    EXPECT(json_integer_value(json_object_get(a->json, "currentVersion")) == 1);
    EXPECT_STR(field_of(json_object_get(a->json, "metadata"), "team"), "x");
    EXPECT_STR(field_of(a->json, "createdAt"), field_of(a->json, "updatedAt"));
    EXPECT(!strstr(a->text, "hunter2"));
    char id[64];
    snprintf(id, sizeof(id), "%s", field_of(a->json, "secretID"));
    static const char *const names[] = {"openai-key", "OPENAI-KEY", "OpenAI%2DKey"};
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        a = call_acme("GET", NULL, "/secrets/%s", names[i]);
        EXPECT(a->status == 200 && !strstr(a->text, "hunter2"));
        EXPECT_STR(field_of(a->json, "secretID"), id);
    }
    a = call_acme("GET", NULL, "/secrets/%s", id);
    EXPECT(a->status == 200 && json_object_size(a->json) == 6);
    EXPECT(opens("openai-key", "hunter2-value"));
    EXPECT(!on_disk("hunter2-value") && on_disk("openai-key"));
    end();
}

TEST(an_update_is_a_new_version)
{
    begin();
    EXPECT(call_acme("POST", "{\"name\":\"k\",\"value\":\"one\",\"metadata\":{\"a\":\"b\"}}",
                     "/secrets")
               ->status == 201);
    struct answer *a = call_acme("POST", "{\"value\":\"two\"}", "/secrets/K");
    EXPECT(a->status == 200);
    EXPECT(json_integer_value(json_object_get(a->json, "currentVersion")) == 2);
    EXPECT_STR(field_of(json_object_get(a->json, "metadata"), "a"), "b");
    EXPECT(opens("k", "two"));
    a = call_acme("POST", "{\"value\":\"three\",\"metadata\":{}}", "/secrets/k");
    EXPECT(a->status == 200);
    EXPECT(json_object_size(json_object_get(a->json, "metadata")) == 0);
    EXPECT(call_acme("POST", "{}", "/secrets/k")->status == 400);
    EXPECT(call_acme("POST", "{\"value\":\"x\"}", "/secrets/none")->status == 404);
    EXPECT(opens("k", "three"));
    end();
}

TEST(whoever_uses_it_is_told_of_a_change)
{
    char expected[64];

    begin();
    snprintf(expected, sizeof(expected), "%s/k", server.acme_tenant.id);
    EXPECT(call_acme("POST", "{\"name\":\"K\",\"value\":\"one\"}", "/secrets")->status == 201);
    last_changed[0] = '\0';
    EXPECT(call_acme("POST", "{\"value\":\"two\"}", "/secrets/K")->status == 200);
    EXPECT_STR(last_changed, expected);
    last_changed[0] = '\0';
    EXPECT(call_acme("DELETE", NULL, "/secrets/k")->status == 204);
    EXPECT_STR(last_changed, expected);
    last_changed[0] = '\0';
    EXPECT(call_acme("DELETE", NULL, "/secrets/k")->status == 404);
    EXPECT_STR(last_changed, "");
    end();
}

/* ---- what is refused ------------------------------------------------------------------------- */

TEST(a_name_is_taken_once)
{
    begin();
    EXPECT(call_acme("POST", "{\"name\":\"k\",\"value\":\"one\"}", "/secrets")->status == 201);
    struct answer *a = call_acme("POST", "{\"name\":\"K\",\"value\":\"two\"}", "/secrets");
    EXPECT(a->status == 409 && strstr(message_of(a), "already exists"));
    EXPECT(opens("k", "one"));
    end();
}

TEST(others_secrets_are_not_there)
{
    begin();
    EXPECT(call_acme("POST", "{\"name\":\"k\",\"value\":\"one\"}", "/secrets")->status == 201);
    char target[64];
    snprintf(target, sizeof(target), "/secrets/%s",
             field_of(call_acme("GET", NULL, "/secrets/k")->json, "secretID"));
    EXPECT(ask(server.beta, "GET", target, NULL)->status == 404);
    EXPECT(ask(server.beta, "GET", "/secrets/k", NULL)->status == 404);
    EXPECT(ask(server.beta, "POST", target, "{\"value\":\"x\"}")->status == 404);
    EXPECT(ask(server.beta, "DELETE", target, NULL)->status == 404);
    struct answer *a = ask(server.beta, "GET", "/secrets", NULL);
    EXPECT(a->status == 200 && json_array_size(a->json) == 0);
    EXPECT(ask(NULL, "GET", "/secrets", NULL)->status == 401);
    EXPECT(ask(NULL, "POST", "/secrets", "{\"name\":\"k\",\"value\":\"one\"}")->status == 401);
    EXPECT(opens("k", "one"));
    end();
}

TEST(bad_requests_do_not_quote_the_value)
{
    static const char *const bad[] = {
        "{\"value\":\"hunter2\"}",
        "{\"name\":\"\",\"value\":\"hunter2\"}",
        "{\"name\":\"a b\",\"value\":\"hunter2\"}",
        "{\"name\":\"sec_x\",\"value\":\"hunter2\"}",
        "{\"name\":\"egress-proxy\",\"value\":\"hunter2\"}",
        "{\"name\":7,\"value\":\"hunter2\"}",
        "{\"name\":\"k\"}",
        "{\"name\":\"k\",\"value\":\"\"}",
        "{\"name\":\"k\",\"value\":7}",
        "{\"name\":\"k\",\"value\":\"hunter2\\r\\nX-Evil: 1\"}",
        "{\"name\":\"k\",\"value\":\"hunter2\\u0000\"}",
        "{\"name\":\"k\",\"value\":\"hunter2\\u0001\"}",
        "{\"name\":\"k\",\"value\":\"hunter2\",\"metadata\":7}",
        "{\"name\":\"k\",\"value\":\"hunter2\",\"metadata\":{\"a\":7}}",
        "{\"name\":\"k\",\"value\":\"hunter2\",\"metadata\":{\"sandglass.hosts\":\"http://x\"}}",
        "{\"name\":\"k\",\"value\":\"hunter2\"",
        "{\"name\":\"k\",\"value\":hunter2}",
        "[\"hunter2\"]",
        "",
    };

    begin();
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct answer *a = call_acme("POST", bad[i], "/secrets");

        if (a->status != 400)
            printf("# %d: %s\n", a->status, bad[i]);
        EXPECT(a->status == 400 && !strstr(a->text, "hunter2"));
    }
    EXPECT(json_array_size(call_acme("GET", NULL, "/secrets")->json) == 0);
    end();
}

TEST(values_have_a_largest_length)
{
    AUTO(strbuf_done) struct strbuf body = {0};

    begin();
    strbuf_init(&body, 1u << 20);
    strbuf_addstr(&body, "{\"name\":\"k\",\"value\":\"");
    for (size_t i = 0; i < VAULT_SECRET_MAX; i++)
        strbuf_addstr(&body, "\\u0061");
    size_t len = body.len;
    strbuf_addstr(&body, "\"}");
    EXPECT(call_acme("POST", body.buf, "/secrets")->status == 201);
    body.len = len;
    strbuf_addstr(&body, "a\"}");
    EXPECT(call_acme("POST", body.buf, "/secrets/k")->status == 400);
    end();
}

TEST(without_a_guard_it_is_said_to_try_again)
{
    begin();
    guard_stop();
    struct answer *a = call_acme("POST", "{\"name\":\"k\",\"value\":\"hunter2\"}", "/secrets");
    EXPECT(a->status == 503 && strstr(a->text, "Retry-After: ") && !strstr(a->text, "hunter2"));
    EXPECT(json_array_size(call_acme("GET", NULL, "/secrets")->json) == 0);
    guard_start();
    end();
}

/* ---- lists ----------------------------------------------------------------------------------- */

/* The token of the next page; "" if there is none. */
static const char *next_token(const struct answer *a)
{
    static char token[256];
    const char *at = strstr(a->text, "X-Next-Token: ");

    token[0] = '\0';
    if (at && at < a->body)
        sscanf(at + strlen("X-Next-Token: "), "%255s", token);
    return token;
}

TEST(the_list_comes_page_by_page)
{
    char body[64];

    begin();
    for (int i = 0; i < 5; i++) {
        snprintf(body, sizeof(body), "{\"name\":\"k%d\",\"value\":\"x\"}", i);
        EXPECT(call_acme("POST", body, "/secrets")->status == 201);
    }
    struct answer *a = call_acme("GET", NULL, "/secrets");
    EXPECT(json_array_size(a->json) == 5 && !next_token(a)[0]);
    EXPECT_STR(field_of(json_array_get(a->json, 0), "name"), "k4");
    a = call_acme("GET", NULL, "/secrets?limit=3");
    EXPECT(json_array_size(a->json) == 3 && next_token(a)[0]);
    a = call_acme("GET", NULL, "/secrets?limit=3&nextToken=%s", next_token(a));
    EXPECT(json_array_size(a->json) == 2 && !next_token(a)[0]);
    EXPECT_STR(field_of(json_array_get(a->json, 1), "name"), "k0");
    EXPECT(call_acme("GET", NULL, "/secrets?limit=0")->status == 400);
    EXPECT(call_acme("GET", NULL, "/secrets?nextToken=abc")->status == 400);
    EXPECT(call_acme("PUT", NULL, "/secrets")->status == 405);
    end();
}
