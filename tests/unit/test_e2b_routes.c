/* The control plane over HTTP, as programs call it, with a warden that only answers. */
#include "tap.h"

#include "e2b_server.h"

TAP_MAIN

#define SECOND_NS 1000000000ull

/* ---- keys and routes ------------------------------------------------------------------------- */

TEST(health_needs_no_key)
{
    EXPECT(ask(NULL, "GET", "/health", NULL)->status == 204);
}

TEST(everything_else_needs_a_key)
{
    static const char *const targets[] = {
        "/sandboxes", "/v2/sandboxes?limit=x", "/nowhere", "/", "/teams", "//health", "/health/"};

    for (size_t i = 0; i < ARRAY_SIZE(targets); i++) {
        EXPECT(ask(NULL, "GET", targets[i], NULL)->status == 401);
        struct answer *a =
            ask("e2b_0000000000000000000000000000000000000000", "GET", targets[i], NULL);
        EXPECT(a->status == 401);
        EXPECT(json_integer_value(json_object_get(a->json, "code")) == 401);
    }
    EXPECT(ask(NULL, "POST", "/v2/sandboxes", "{}")->status == 401);
}

TEST(unknown_paths_and_methods)
{
    struct answer *a = call_acme("GET", NULL, "/nowhere");

    EXPECT(a->status == 404 && json_integer_value(json_object_get(a->json, "code")) == 404);
    EXPECT(call_acme("GET", NULL, "/sandboxes/")->status == 404);
    EXPECT(call_acme("GET", NULL, "/sandboxes/%%2e%%2e/logs")->status == 404);
    EXPECT(call_acme("GET", NULL, "//sandboxes")->status == 404);
    a = call_acme("PUT", NULL, "/sandboxes");
    EXPECT(a->status == 405 && strstr(a->text, "Allow: "));
    EXPECT(strstr(a->text, "POST") && strstr(a->text, "GET"));
    EXPECT(call_acme("BREW", NULL, "/sandboxes")->status == 405 ||
           call_acme("BREW", NULL, "/sandboxes")->status == 400);
}

TEST(old_builds_say_what_to_do)
{
    static const struct {
        const char *method, *target;
    } old[] = {
        {"POST", "/templates"},
        {"POST", "/templates/x"},
        {"POST", "/templates/x/builds/y"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(old); i++) {
        struct answer *a = call_acme(old[i].method, NULL, "%s", old[i].target);

        if (a->status != 400)
            printf("# %s %s: %d\n", old[i].method, old[i].target, a->status);
        EXPECT(a->status == 400 && strstr(message_of(a), "e2b template create"));
    }
}

/* A tenant's key opens none of these, whatever the method. */
TEST(administration_is_not_for_tenants)
{
    static const struct {
        const char *method, *target;
    } closed[] = {
        {"GET", "/teams"},
        {"GET", "/api-keys"},
        {"POST", "/api-keys"},
        {"PATCH", "/api-keys/x"},
        {"DELETE", "/api-keys/x"},
        {"POST", "/access-tokens"},
        {"DELETE", "/access-tokens/x"},
        {"GET", "/nodes"},
        {"GET", "/nodes/x"},
        {"POST", "/nodes/x"},
        {"PUT", "/nodes/x"},
        {"GET", "/admin/sandboxes/running-counts"},
        {"POST", "/admin/teams/x/sandboxes/kill"},
        {"POST", "/admin/teams/x/builds/cancel"},
        {"GET", "/admin/teams/x/api-keys"},
        {"POST", "/admin/teams/x/api-keys"},
        {"DELETE", "/admin/teams/x/api-keys/y"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(closed); i++) {
        EXPECT(call_acme(closed[i].method, NULL, "%s", closed[i].target)->status == 401);
        EXPECT(ask(NULL, closed[i].method, closed[i].target, NULL)->status == 401);
    }
}

TEST(a_team_s_metrics_are_its_own)
{
    const char *id = server.acme_tenant.id;
    struct answer *a = call_acme("GET", NULL, "/teams/%s/metrics", id);

    EXPECT(a->status == 200 && json_is_array(a->json));
    EXPECT(call_acme("GET", NULL, "/teams/acme/metrics?start=1&end=2")->status == 200);
    EXPECT(call_acme("GET", NULL, "/teams/beta/metrics")->status == 403);
    EXPECT(call_acme("GET", NULL, "/teams/%s/metrics?start=2&end=1", id)->status == 400);
    EXPECT(call_acme("GET", NULL, "/teams/%s/metrics?start=-1", id)->status == 400);
    EXPECT(call_acme("GET", NULL, "/teams/%s/metrics/max", id)->status == 400);
    EXPECT(call_acme("GET", NULL, "/teams/%s/metrics/max?metric=x", id)->status == 400);
    a = call_acme("GET", NULL, "/teams/%s/metrics/max?metric=concurrent_sandboxes", id);
    EXPECT(a->status == 200 && json_number_value(json_object_get(a->json, "value")) == 0);
    EXPECT(json_integer_value(json_object_get(a->json, "timestampUnix")) > 0);
}

TEST(bodies_that_are_no_json)
{
    static const char *const bad[] = {"{",
                                      "[]",
                                      "7",
                                      "\"x\"",
                                      "null",
                                      "{\"a\":1}x",
                                      "{\"a\":1,\"a\":2}",
                                      "{\"timeout\":1e999}",
                                      "{\"x\":\"\\ud800\"}",
                                      "{\"timeout\":99999999999999999999}",
                                      "\xff"};
    char deep[512];

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct answer *a = call_acme("POST", bad[i], "/v2/sandboxes");

        EXPECT(a->status == 400 && json_integer_value(json_object_get(a->json, "code")) == 400);
    }
    memset(deep, '[', sizeof(deep) - 1);
    deep[sizeof(deep) - 1] = '\0';
    EXPECT(call_acme("POST", deep, "/v2/sandboxes")->status == 400);
    EXPECT(server.n_orders == 0);
}

/* ---- create, get, kill ----------------------------------------------------------------------- */

TEST(create_get_kill)
{
    struct answer *a = call_acme("POST",
                                 "{\"templateID\":\"base\",\"metadata\":{\"k\":\"v\"},"
                                 "\"envVars\":{\"S\":\"canary\"},\"timeout\":60}",
                                 "/v2/sandboxes");
    char id[ID_LEN + 1], token[SPEC_TOKEN_LEN + 1];

    EXPECT(a->status == 201);
    snprintf(id, sizeof(id), "%s", field_of(a->json, "sandboxID"));
    snprintf(token, sizeof(token), "%s", field_of(a->json, "envdAccessToken"));
    EXPECT(id_valid(id) && strlen(token) == SPEC_TOKEN_LEN);
    EXPECT_STR(field_of(a->json, "alias"), "base");
    EXPECT_STR(field_of(a->json, "envdVersion"), "0.6.13");
    EXPECT_STR(field_of(a->json, "domain"), "(null)");
    EXPECT_STR(field_of(a->json, "trafficAccessToken"), "(null)");
    EXPECT(strcmp(field_of(a->json, "clientID"), "(none)") != 0);
    EXPECT(strcmp(field_of(a->json, "templateID"), "(none)") != 0);
    const struct order *o = last_order(ORDER_CREATE);
    EXPECT(o && o->deadline_ns > clock_ns() + 55 * SECOND_NS);
    EXPECT(o && o->deadline_ns < clock_ns() + 65 * SECOND_NS && o->on_expiry == EXPIRY_KILL);
    EXPECT_STR(o ? o->snapshot : "?", "");

    a = call_acme("GET", NULL, "/sandboxes/%s", id);
    EXPECT(a->status == 200);
    EXPECT_STR(field_of(a->json, "state"), "running");
    EXPECT_STR(field_of(a->json, "envdAccessToken"), token);
    EXPECT_STR(field_of(json_object_get(a->json, "metadata"), "k"), "v");
    EXPECT_STR(field_of(json_object_get(a->json, "lifecycle"), "onTimeout"), "kill");
    EXPECT(json_is_null(json_object_get(a->json, "allowInternetAccess")));
    EXPECT(json_integer_value(json_object_get(a->json, "cpuCount")) >= 1);
    EXPECT(json_integer_value(json_object_get(a->json, "memoryMB")) >= 1);
    EXPECT(json_integer_value(json_object_get(a->json, "diskSizeMB")) >= 1);
    EXPECT(strlen(field_of(a->json, "startedAt")) == 24);
    EXPECT(strcmp(field_of(a->json, "endAt"), field_of(a->json, "startedAt")) > 0);
    EXPECT(!strstr(a->text, "canary"));
    EXPECT(call_acme("GET", NULL, "/sandboxes/%s-6532622b", id)->status == 200);

    EXPECT(call_acme("DELETE", NULL, "/sandboxes/%s", id)->status == 204);
    a = call_acme("DELETE", NULL, "/sandboxes/%s", id);
    EXPECT(a->status == 404 && json_integer_value(json_object_get(a->json, "code")) == 404);
    EXPECT(call_acme("GET", NULL, "/sandboxes/%s", id)->status == 404);
    clean_up();
}

TEST(version_1_gives_a_token_when_request_log)
{
    struct answer *a = call_acme("POST", "{\"templateID\":\"base\"}", "/sandboxes");

    EXPECT(a->status == 201);
    EXPECT_STR(field_of(a->json, "envdAccessToken"), "(none)");
    EXPECT(last_order(ORDER_CREATE)->deadline_ns < clock_ns() + 16 * SECOND_NS);
    a = call_acme("POST", "{\"templateID\":\"base\",\"secure\":true}", "/sandboxes");
    EXPECT(strlen(field_of(a->json, "envdAccessToken")) == SPEC_TOKEN_LEN);
    clean_up();
}

TEST(templates_must_exist)
{
    struct answer *a = call_acme("POST", "{\"templateID\":\"nope\"}", "/v2/sandboxes");

    EXPECT(a->status == 404);
    EXPECT_STR(message_of(a), "template 'nope' not found");
    a = call_acme("POST", "{\"templateID\":\"a b\"}", "/v2/sandboxes");
    EXPECT(a->status == 400);
    EXPECT_STR(message_of(a), "Invalid template reference: invalid template ID: a b");
    a = call_acme("POST", "{\"templateID\":\"base:v9\"}", "/v2/sandboxes");
    EXPECT(a->status == 404);
    EXPECT_STR(message_of(a), "tag 'v9' does not exist for template 'base'");
    a = call_acme("POST", "{\"templateID\":\"mcp-gateway\",\"mcp\":{\"x\":{}}}", "/v2/sandboxes");
    EXPECT(a->status == 201);
    EXPECT(call_acme("POST", "{\"templateID\":\"Base:default\"}", "/v2/sandboxes")->status == 201);
    EXPECT(call_acme("POST", "{\"templateID\":\"code-interpreter-v1\"}", "/v2/sandboxes")->status ==
           201);
    clean_up();
}

TEST(limits_of_tenant_and_machine)
{
    server.front.settings.tenant_sandboxes = 1;
    EXPECT(call_acme("POST", "{}", "/v2/sandboxes")->status == 201);
    struct answer *a = call_acme("POST", "{}", "/v2/sandboxes");
    EXPECT(a->status == 429 && strstr(message_of(a), "limit is 1"));
    EXPECT(!strcasestr(a->text, "Retry-After"));
    EXPECT(ask(server.beta, "GET", "/v2/sandboxes", NULL)->status == 200);
    clean_up();
    server.fail[ORDER_CREATE] = -EAGAIN;
    EXPECT(call_acme("POST", "{}", "/v2/sandboxes")->status == 503);
    server.fail[ORDER_CREATE] = -EIO;
    a = call_acme("POST", "{}", "/v2/sandboxes");
    EXPECT(a->status == 500 && !strstr(message_of(a), "the test said so"));
    server.fail[ORDER_CREATE] = 0;
    /* What failed holds no place in the limit. */
    server.front.settings.tenant_sandboxes = 1;
    EXPECT(call_acme("POST", "{}", "/v2/sandboxes")->status == 201);
    clean_up();
}

static int pause_of(const char *id, bool memory)
{
    return call_acme("POST", memory ? "{}" : "{\"memory\":false}", "/sandboxes/%s/pause", id)
        ->status;
}

TEST(paused_ones_have_limits_too)
{
    char a[ID_LEN + 1], b[ID_LEN + 1], c[ID_LEN + 1];
    struct answer *r;

    /* Running and paused ones are counted apart. */
    server.front.settings.tenant_sandboxes = 1;
    server.front.settings.tenant_paused = 2;
    make_sandbox("{}", a);
    EXPECT(pause_of(a, true) == 204);
    make_sandbox("{}", b);
    EXPECT(pause_of(b, false) == 204);
    make_sandbox("{}", c);
    r = call_acme("POST", "{}", "/sandboxes/%s/pause", c);
    EXPECT(r->status == 429 && strstr(message_of(r), "paused sandboxes: the limit is 2"));
    EXPECT(!strcasestr(r->text, "Retry-After"));
    r = call_acme("GET", NULL, "/sandboxes/%s", c);
    EXPECT_STR(field_of(r->json, "state"), "running");
    /* Resuming needs a place among those that run. */
    r = call_acme("POST", "{}", "/sandboxes/%s/resume", a);
    EXPECT(r->status == 429 && strstr(message_of(r), "concurrent sandboxes: the limit is 1"));
    EXPECT(call_acme("DELETE", NULL, "/sandboxes/%s", b)->status == 204);
    EXPECT(pause_of(c, true) == 204);
    clean_up();
}

TEST(what_will_be_paused_at_its_end_has_its_place_from_the_beginning)
{
    char a[ID_LEN + 1];
    struct answer *r;

    server.front.settings.tenant_paused = 2;
    make_sandbox("{\"autoPause\":true}", a);
    EXPECT(call_acme("POST", "{\"autoPause\":true}", "/v2/sandboxes")->status == 201);
    r = call_acme("POST", "{\"autoPause\":true}", "/v2/sandboxes");
    EXPECT(r->status == 429 && strstr(message_of(r), "2 are paused or will be at their end"));
    EXPECT(call_acme("POST", "{}", "/v2/sandboxes")->status == 201);
    EXPECT(pause_of(a, true) == 204); /* it has one */
    EXPECT(call_acme("POST", "{}", "/sandboxes/%s/resume", a)->status == 201);
    clean_up();
}

TEST(memory_that_is_held_has_a_limit)
{
    char sandbox[4][ID_LEN + 1];
    struct answer *r;

    server.front.settings.tenant_paused_memory = 2 * PAUSED_LEAST;
    for (size_t i = 0; i < ARRAY_SIZE(sandbox); i++)
        make_sandbox(i < 3 ? "{}" : "{\"autoPause\":true}", sandbox[i]);
    EXPECT(pause_of(sandbox[0], true) == 204 && pause_of(sandbox[1], true) == 204);
    r = call_acme("POST", "{}", "/sandboxes/%s/pause", sandbox[2]);
    EXPECT(r->status == 429 && strstr(message_of(r), "hold 32 MiB of memory"));
    EXPECT(pause_of(sandbox[2], false) == 204);
    /* One whose time is over keeps its files. */
    struct order_answer told = {.tell = TELL_PAUSED, .state = STATE_PAUSED};
    memcpy(told.id, sandbox[3], sizeof(told.id));
    server.n_orders = 0;
    sandbox_told_paused(&server.front, &told);
    server_turn(-1);
    r = call_acme("GET", NULL, "/sandboxes/%s", sandbox[3]);
    EXPECT_STR(field_of(r->json, "state"), "paused");
    const struct order *o = last_order(ORDER_PAUSE);
    EXPECT(o && strcmp(o->id, sandbox[3]) == 0 && (o->flags & ORDER_FILES_ONLY));
    EXPECT(call_acme("POST", "{}", "/sandboxes/%s/resume", sandbox[0])->status == 201);
    EXPECT(pause_of(sandbox[0], true) == 204); /* there is room again */
    clean_up();
}

TEST(sandbox_that_nobody_waits_for_is_ended)
{
    int fd = client_connect();
    uint64_t deadline = clock_ns() + SERVER_DEADLINE_NS;

    server.silent = true;
    client_send(fd, server.acme, "POST", "/v2/sandboxes", "{}");
    while (!last_order(ORDER_CREATE) && clock_ns() < deadline)
        server_turn(fd);
    close(fd);
    for (int i = 0; i < 20; i++)
        server_turn(-1);
    server.silent = false;
    warden_answer(last_order(ORDER_CREATE));
    while (!last_order(ORDER_KILL) && clock_ns() < deadline)
        server_turn(-1);
    EXPECT(last_order(ORDER_KILL) != NULL);
    EXPECT(json_array_size(call_acme("GET", NULL, "/v2/sandboxes")->json) == 0);
    clean_up();
}

/* Every route, with an id that is another tenant's and with one that is nobody's. */
TEST(foreign_and_unknown_ids_get_the_same_answer)
{
    static const struct {
        const char *method, *format, *body;
    } routes[] = {
        {"GET", "/sandboxes/%s", NULL},
        {"DELETE", "/sandboxes/%s", NULL},
        {"POST", "/sandboxes/%s/timeout", "{\"timeout\":5}"},
        {"POST", "/sandboxes/%s/refreshes", "{}"},
        {"POST", "/sandboxes/%s/pause", "{}"},
        {"POST", "/sandboxes/%s/resume", "{}"},
        {"POST", "/sandboxes/%s/connect", "{\"timeout\":5}"},
        {"POST", "/v2/sandboxes/%s/connect", "{}"},
        {"GET", "/sandboxes/%s/metrics", NULL},
        {"GET", "/sandboxes/metrics?sandbox_ids=%s", NULL},
        {"GET", "/sandboxes/%s/logs", NULL},
        {"GET", "/v2/sandboxes/%s/logs", NULL},
        {"PUT", "/sandboxes/%s/network", "{}"},
        {"POST", "/sandboxes/%s/snapshots", "{}"},
        {"POST", "/sandboxes/%s/fork", "{}"},
        {"POST", "/sandboxes/%s/checkpoints", "{}"},
        {"GET", "/sandboxes/%s/checkpoints", NULL},
        {"DELETE", "/sandboxes/%s/checkpoints/aaaaaaaaaaaaaaaaaaaa", NULL},
        {"POST", "/sandboxes/%s/rewind", "{\"label\":\"x\"}"},
        {"GET", "/snapshots?sandboxID=%s", NULL},
    };
    char id[ID_LEN + 1], other[ID_LEN + 1], target[128];

    make_sandbox("{}", id);
    id_random(other);
    size_t orders = server.n_orders;
    for (size_t i = 0; i < ARRAY_SIZE(routes); i++) {
        char foreign[2048], *p;

        /* The pattern has one %s, which the compiler cannot see. */
        size_t head = strcspn(routes[i].format, "%");
        snprintf(target, sizeof(target), "%.*s%s%s", (int)head, routes[i].format, id,
                 routes[i].format + head + 2);
        struct answer *a = ask(server.beta, routes[i].method, target, routes[i].body);
        snprintf(foreign, sizeof(foreign), "%d %s", a->status, a->body);
        while ((p = strstr(foreign, id)))
            memcpy(p, other, ID_LEN);
        snprintf(target, sizeof(target), "%.*s%s%s", (int)head, routes[i].format, other,
                 routes[i].format + head + 2);
        a = ask(server.beta, routes[i].method, target, routes[i].body);
        char unknown[2048];
        snprintf(unknown, sizeof(unknown), "%d %s", a->status, a->body);
        EXPECT_STR(foreign, unknown);
        EXPECT(a->status == 404 || strchr(routes[i].format, '?'));
    }
    EXPECT(server.n_orders == orders);
    EXPECT(call_acme("GET", NULL, "/sandboxes/%s", id)->status == 200);
    clean_up();
}

TEST(ids_that_are_none)
{
    EXPECT(call_acme("GET", NULL, "/sandboxes/a-b-c")->status == 404);
    EXPECT(call_acme("GET", NULL, "/sandboxes/ABC")->status == 400);
    EXPECT(call_acme("GET", NULL, "/sandboxes/a%%2fb")->status == 400);
    struct answer *a = call_acme("GET", NULL, "/sandboxes/doesnotexist");
    EXPECT(a->status == 404);
    EXPECT_STR(message_of(a),
               "Sandbox \"doesnotexist\" doesn't exist or you don't have access to it");
}

/* ---- lifecycle ------------------------------------------------------------------------------- */

static uint64_t left_s(void)
{
    const struct order *o = last_order(ORDER_DEADLINE);

    return o && o->deadline_ns > clock_ns()
               ? (o->deadline_ns - clock_ns() + SECOND_NS / 2) / SECOND_NS
               : 0;
}

TEST(timeout_sets_and_refresh_extends)
{
    char id[ID_LEN + 1];

    make_sandbox("{\"timeout\":100}", id);
    EXPECT(call_acme("POST", "{\"timeout\":50}", "/sandboxes/%s/timeout", id)->status == 204);
    EXPECT(left_s() == 50);
    EXPECT(call_acme("POST", "{\"timeout\":200}", "/sandboxes/%s/timeout", id)->status == 204);
    EXPECT(left_s() == 200);
    server.n_orders = 0;
    EXPECT(call_acme("POST", "{\"duration\":60}", "/sandboxes/%s/refreshes", id)->status == 204);
    EXPECT(call_acme("POST", "", "/sandboxes/%s/refreshes", id)->status == 204);
    EXPECT(last_order(ORDER_DEADLINE) == NULL);
    EXPECT(call_acme("POST", "{\"duration\":300}", "/sandboxes/%s/refreshes", id)->status == 204);
    EXPECT(left_s() == 300);
    EXPECT(call_acme("POST", "{\"timeout\":0}", "/sandboxes/%s/timeout", id)->status == 204);
    EXPECT(left_s() == 0 && last_order(ORDER_DEADLINE)->deadline_ns <= clock_ns());
    EXPECT(call_acme("POST", "{\"timeout\":-1}", "/sandboxes/%s/timeout", id)->status == 400);
    EXPECT(call_acme("POST", "{}", "/sandboxes/%s/timeout", id)->status == 400);
    EXPECT(call_acme("POST", "{\"timeout\":1.5}", "/sandboxes/%s/timeout", id)->status == 400);
    EXPECT(call_acme("POST", "{\"duration\":3601}", "/sandboxes/%s/refreshes", id)->status == 400);
    EXPECT(call_acme("POST", "{\"duration\":-1}", "/sandboxes/%s/refreshes", id)->status == 400);
    clean_up();
}

TEST(no_life_is_longer_than_the_longest)
{
    char id[ID_LEN + 1];

    make_sandbox("{}", id);
    struct sandbox *b = sandbox_find(&server.front, id);
    server.front.settings.max_timeout_ms = 3600 * 1000;
    b->spec.started_ms -= 3000 * 1000;
    EXPECT(call_acme("POST", "{\"timeout\":2000}", "/sandboxes/%s/timeout", id)->status == 204);
    EXPECT(left_s() >= 599 && left_s() <= 600);
    struct answer *a = call_acme("POST", "{\"timeout\":3601}", "/v2/sandboxes/%s/connect", id);
    EXPECT(a->status == 400);
    EXPECT_STR(message_of(a), "Timeout cannot be greater than 1 hours");
    b->spec.started_ms -= 700 * 1000;
    a = call_acme("POST", "{\"timeout\":5}", "/sandboxes/%s/timeout", id);
    EXPECT(a->status == 400);
    EXPECT_STR(message_of(a), "Max instance length exceeded");
    server.front.settings.max_timeout_ms = 24 * 3600 * 1000;
    clean_up();
}

TEST(connect_to_a_running_one_only_extends)
{
    char id[ID_LEN + 1], token[SPEC_TOKEN_LEN + 1];

    make_sandbox("{\"timeout\":600}", id);
    struct answer *a = call_acme("GET", NULL, "/sandboxes/%s", id);
    snprintf(token, sizeof(token), "%s", field_of(a->json, "envdAccessToken"));
    a = call_acme("POST", "", "/v2/sandboxes/%s/connect", id);
    EXPECT(a->status == 200 && last_order(ORDER_DEADLINE) == NULL);
    EXPECT_STR(field_of(a->json, "sandboxID"), id);
    EXPECT_STR(field_of(a->json, "envdAccessToken"), token);
    EXPECT(call_acme("POST", "{\"timeout\":900}", "/sandboxes/%s/connect", id)->status == 200);
    EXPECT(left_s() == 900);
    EXPECT(call_acme("POST", "{\"timeout\":0}", "/v2/sandboxes/%s/connect", id)->status == 200);
    EXPECT(left_s() == 900);
    EXPECT(call_acme("POST", "{\"timeout\":-1}", "/v2/sandboxes/%s/connect", id)->status == 400);
    clean_up();
}

TEST(pause_resume_connect)
{
    char id[ID_LEN + 1], token[SPEC_TOKEN_LEN + 1], text[256];

    make_sandbox("{}", id);
    struct answer *a = call_acme("POST", "{}", "/v2/sandboxes/%s/connect", id);
    snprintf(token, sizeof(token), "%s", field_of(a->json, "envdAccessToken"));
    EXPECT(call_acme("POST", "{}", "/sandboxes/%s/pause", id)->status == 204);
    EXPECT(last_order(ORDER_PAUSE)->flags == 0);
    a = call_acme("POST", "{}", "/sandboxes/%s/pause", id);
    EXPECT(a->status == 409 && json_integer_value(json_object_get(a->json, "code")) == 409);
    snprintf(text, sizeof(text), "Error pausing sandbox - sandbox '%s' is already paused", id);
    EXPECT_STR(message_of(a), text);
    a = call_acme("GET", NULL, "/sandboxes/%s", id);
    EXPECT(a->status == 200);
    EXPECT_STR(field_of(a->json, "state"), "paused");
    EXPECT(call_acme("POST", "{\"timeout\":5}", "/sandboxes/%s/timeout", id)->status == 404);
    EXPECT(call_acme("POST", "{}", "/sandboxes/%s/fork", id)->status == 409);
    EXPECT(call_acme("POST", "{}", "/sandboxes/%s/snapshots", id)->status == 409);
    EXPECT(call_acme("POST", "{}", "/sandboxes/%s/checkpoints", id)->status == 409);
    EXPECT(call_acme("POST", "{\"label\":\"x\"}", "/sandboxes/%s/rewind", id)->status == 409);

    a = call_acme("POST", "{\"timeout\":70}", "/v2/sandboxes/%s/connect", id);
    EXPECT(a->status == 201);
    EXPECT_STR(field_of(a->json, "envdAccessToken"), token);
    EXPECT(last_order(ORDER_RESUME)->deadline_ns > clock_ns() + 65 * SECOND_NS);
    EXPECT_STR(field_of(call_acme("GET", NULL, "/sandboxes/%s", id)->json, "state"), "running");

    a = call_acme("POST", "", "/sandboxes/%s/resume", id);
    EXPECT(a->status == 409);
    snprintf(text, sizeof(text), "Sandbox %s is already running", id);
    EXPECT_STR(message_of(a), text);
    EXPECT(call_acme("POST", "{\"memory\":false}", "/sandboxes/%s/pause", id)->status == 204);
    EXPECT(last_order(ORDER_PAUSE)->flags == ORDER_FILES_ONLY);
    EXPECT(call_acme("POST", "{\"timeout\":9,\"autoPause\":true,\"memory\":false}",
                     "/sandboxes/%s/resume", id)
               ->status == 201);
    EXPECT(last_order(ORDER_RESUME)->on_expiry == EXPIRY_PAUSE);
    EXPECT(call_acme("POST", "{\"memory\":\"no\"}", "/sandboxes/%s/pause", id)->status == 400);
    EXPECT(call_acme("POST", "", "/sandboxes/%s/pause", id)->status == 204);
    EXPECT(call_acme("DELETE", NULL, "/sandboxes/%s", id)->status == 204);
    clean_up();
}

TEST(what_a_sandbox_does_at_its_end)
{
    EXPECT(call_acme("POST", "{\"autoPause\":true}", "/v2/sandboxes")->status == 201);
    EXPECT(last_order(ORDER_CREATE)->on_expiry == EXPIRY_PAUSE);
    EXPECT(call_acme("POST", "{\"autoPause\":true,\"autoPauseMemory\":false}", "/v2/sandboxes")
               ->status == 201);
    EXPECT(last_order(ORDER_CREATE)->on_expiry == EXPIRY_PAUSE_FILES);
    clean_up();
}

/* ---- network --------------------------------------------------------------------------------- */

TEST(network_is_kept_without_the_password)
{
    char id[ID_LEN + 1];
    struct answer *a;

    make_sandbox("{\"network\":{\"allowPublicTraffic\":false,\"egressProxy\":{\"address\":\"p:1\","
                 "\"username\":\"u\",\"password\":\"canary\"}},\"allow_internet_access\":true}",
                 id);
    a = call_acme("GET", NULL, "/sandboxes/%s", id);
    EXPECT(json_is_true(json_object_get(a->json, "allowInternetAccess")));
    json_t *network = json_object_get(a->json, "network");
    EXPECT_STR(field_of(json_object_get(network, "egressProxy"), "username"), "u");
    EXPECT(!strstr(a->text, "canary"));
    a = call_acme("POST", "{}", "/v2/sandboxes/%s/connect", id);
    EXPECT(strlen(field_of(a->json, "trafficAccessToken")) == SPEC_TOKEN_LEN);

    EXPECT(call_acme("PUT", "{\"denyOut\":[\"10.0.0.0/8\"],\"allow_internet_access\":false}",
                     "/sandboxes/%s/network", id)
               ->status == 204);
    a = call_acme("GET", NULL, "/sandboxes/%s", id);
    EXPECT(last_order(ORDER_NOTE) != NULL);
    network = json_object_get(a->json, "network");
    EXPECT(json_is_false(json_object_get(network, "allowPublicTraffic")));
    EXPECT(json_array_size(json_object_get(network, "denyOut")) == 1);
    EXPECT(json_object_get(network, "egressProxy") == NULL);
    EXPECT(json_is_false(json_object_get(a->json, "allowInternetAccess")));
    a = call_acme("PUT", "{\"denyOut\":[\"nonsense\"]}", "/sandboxes/%s/network", id);
    EXPECT(a->status == 400);
    EXPECT_STR(message_of(a), "invalid denied CIDR nonsense");
    clean_up();
}

/* ---- list ------------------------------------------------------------------------------------ */

static size_t listed(const char *query)
{
    return json_array_size(call_acme("GET", NULL, "/v2/sandboxes%s", query)->json);
}

TEST(list_and_its_filters)
{
    char a[ID_LEN + 1], b[ID_LEN + 1], c[ID_LEN + 1];

    make_sandbox("{\"metadata\":{\"a b\":\"c&d\",\"x\":\"1\"}}", a);
    make_sandbox("{\"metadata\":{\"x\":\"1\"}}", b);
    make_sandbox("{\"templateID\":\"code-interpreter-v1\"}", c);
    EXPECT(call_acme("POST", "{}", "/sandboxes/%s/pause", c)->status == 204);
    EXPECT(listed("") == 3);
    EXPECT(listed("?state=running") == 2);
    EXPECT(listed("?state=paused") == 1);
    EXPECT(listed("?state=running,paused") == 3);
    EXPECT(listed("?metadata=a%252520b%3Dc%252526d") == 1);
    EXPECT(listed("?metadata=x%3D1") == 2);
    EXPECT(listed("?metadata=x%3D2") == 0);
    EXPECT(listed("?template=base") == 2);
    EXPECT(listed("?template=code-interpreter-v1") == 1);
    EXPECT(listed("?template=unknown") == 0);
    EXPECT(listed("?startedAfter=2000-01-01T00:00:00Z") == 3);
    EXPECT(listed("?startedAfter=2999-01-01T00:00:00Z") == 0);
    struct answer *v1 = call_acme("GET", NULL, "/sandboxes");
    EXPECT(json_array_size(v1->json) == 2);
    EXPECT_STR(field_of(json_array_get(v1->json, 0), "envdAccessToken"), "(none)");
    EXPECT(json_array_size(ask(server.beta, "GET", "/v2/sandboxes", NULL)->json) == 0);
    static const char *const bad[] = {
        "?state=x",       "?order=up",   "?limit=0",      "?limit=101",   "?limit=abc",
        "?nextToken=abc", "?metadata=x", "?template=a:b", "?template=a!", "?startedAfter=x"};
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        EXPECT(call_acme("GET", NULL, "/v2/sandboxes%s", bad[i])->status == 400);
    clean_up();
}

static const char *header_of(const struct answer *a, const char *name, char *ret, size_t cap)
{
    const char *p = strcasestr(a->text, name);

    ret[0] = '\0';
    if (p && p < a->body)
        snprintf(ret, cap, "%.*s", (int)strcspn(p + strlen(name) + 2, "\r"), p + strlen(name) + 2);
    return ret;
}

static void expect_pages(const char *order, const char *const *want, size_t n)
{
    char token[256] = "", total[16];
    size_t seen = 0;

    do {
        struct answer *a = call_acme("GET", NULL, "/v2/sandboxes?limit=2&order=%s%s%s", order,
                                     token[0] ? "&nextToken=" : "", token);
        EXPECT(a->status == 200 && json_array_size(a->json) <= 2);
        EXPECT_STR(header_of(a, "X-Total-Running", total, sizeof(total)), "5");
        for (size_t i = 0; i < json_array_size(a->json) && seen < n; i++, seen++)
            EXPECT_STR(field_of(json_array_get(a->json, i), "sandboxID"), want[seen]);
        header_of(a, "X-Next-Token", token, sizeof(token));
    } while (token[0] && seen < n);
    EXPECT(seen == n && !token[0]);
}

TEST(pages)
{
    char ids[5][ID_LEN + 1];
    const char *up[5], *down[5];
    char token[256];

    for (int i = 0; i < 5; i++) {
        make_sandbox("{}", ids[i]);
        /* Distinct moments, whatever the clock did. */
        sandbox_find(&server.front, ids[i])->spec.started_ms = 1794744000000 + i;
        up[i] = ids[i];
        down[4 - i] = ids[i];
    }
    expect_pages("desc", down, 5);
    expect_pages("asc", up, 5);
    struct answer *a = call_acme("GET", NULL, "/v2/sandboxes?limit=2");
    header_of(a, "X-Next-Token", token, sizeof(token));
    EXPECT(call_acme("GET", NULL, "/v2/sandboxes?order=asc&nextToken=%s", token)->status == 400);
    EXPECT(call_acme("GET", NULL, "/snapshots?nextToken=%s", token)->status == 400);
    /* The one that the page ended with is gone: the next page is the same. */
    EXPECT(call_acme("DELETE", NULL, "/sandboxes/%s", ids[3])->status == 204);
    a = call_acme("GET", NULL, "/v2/sandboxes?limit=2&nextToken=%s", token);
    EXPECT_STR(field_of(json_array_get(a->json, 0), "sandboxID"), ids[2]);
    clean_up();
}

/* ---- templates ------------------------------------------------------------------------------- */

TEST(templates)
{
    struct answer *a = call_acme("GET", NULL, "/templates");
    static const char *const required[] = {
        "templateID", "buildID",       "cpuCount",    "memoryMB",   "diskSizeMB", "public",
        "createdAt",  "updatedAt",     "createdBy",   "spawnCount", "buildCount", "envdVersion",
        "aliases",    "lastSpawnedAt", "buildStatus", "names"};

    EXPECT(a->status == 200 && json_array_size(a->json) == 3);
    for (size_t i = 0; i < ARRAY_SIZE(required); i++)
        EXPECT(json_object_get(json_array_get(a->json, 0), required[i]) != NULL);
    EXPECT(json_array_size(call_acme("GET", NULL, "/v2/templates")->json) == 3);
    a = call_acme("GET", NULL, "/templates/aliases/base");
    EXPECT(a->status == 200 && json_is_true(json_object_get(a->json, "public")));
    char id[64];
    snprintf(id, sizeof(id), "%s", field_of(a->json, "templateID"));
    a = call_acme("GET", NULL, "/templates/%s", id);
    EXPECT(a->status == 200 && json_array_size(json_object_get(a->json, "builds")) == 1);
    EXPECT(call_acme("GET", NULL, "/templates/aliases/none")->status == 404);
    EXPECT(call_acme("GET", NULL, "/templates/aliases/a!")->status == 400);
    EXPECT(call_acme("GET", NULL, "/templates/none")->status == 404);
    EXPECT(call_acme("DELETE", NULL, "/templates/base")->status == 403);
    EXPECT(call_acme("DELETE", NULL, "/templates/%s", id)->status == 403);
    EXPECT(call_acme("DELETE", NULL, "/templates/none")->status == 404);
    EXPECT(json_array_size(call_acme("GET", NULL, "/templates/base/tags")->json) == 1);
}

/* ---- logs and metrics ------------------------------------------------------------------------ */

static void expect_first(const struct answer *a, const char *list, const char *message)
{
    EXPECT_STR(field_of(json_array_get(json_object_get(a->json, list), 0), "message"), message);
}

TEST(logs)
{
    char id[ID_LEN + 1];

    make_sandbox("{}", id);
    struct sandbox *b = sandbox_find(&server.front, id);
    sandbox_log_done(&b->log);
    sandbox_log_add(&b->log, LOG_INFO, FAULT_SANDBOX, 0, "first");
    sandbox_log_add(&b->log, LOG_WARN, FAULT_CODE, 7, "second \x01 \xff");
    sandbox_log_add(&b->log, LOG_ERROR, FAULT_CODE, 7, "third");
    struct answer *a = call_acme("GET", NULL, "/sandboxes/%s/logs", id);
    EXPECT(a->status == 200 && json_array_size(json_object_get(a->json, "logs")) == 3);
    /* A line is an object in a string: the E2B command line parses it. */
    json_t *line =
        json_loads(field_of(json_array_get(json_object_get(a->json, "logs"), 1), "line"), 0, NULL);
    EXPECT_STR(field_of(line, "level"), "warn");
    EXPECT_STR(field_of(line, "logger"), "process");
    EXPECT(strstr(field_of(line, "message"), "second") != NULL);
    json_decref(line);
    expect_first(a, "logEntries", "first");
    a = call_acme("GET", NULL, "/sandboxes/%s/logs?limit=1&start=0", id);
    EXPECT(json_array_size(json_object_get(a->json, "logs")) == 1);
    a = call_acme("GET", NULL, "/sandboxes/%s/logs?start=9999999999999", id);
    EXPECT(json_array_size(json_object_get(a->json, "logs")) == 0);

    a = call_acme("GET", NULL, "/v2/sandboxes/%s/logs", id);
    expect_first(a, "logs", "third");
    const json_t *entry = json_array_get(json_object_get(a->json, "logs"), 0);
    EXPECT_STR(field_of(entry, "level"), "error");
    EXPECT_STR(field_of(json_object_get(entry, "fields"), "pid"), "7");
    EXPECT_STR(field_of(json_object_get(entry, "fields"), "source"), "sandbox");
    expect_first(call_acme("GET", NULL, "/v2/sandboxes/%s/logs?direction=forward", id), "logs",
                 "first");
    a = call_acme("GET", NULL, "/v2/sandboxes/%s/logs?level=warn", id);
    EXPECT(json_array_size(json_object_get(a->json, "logs")) == 2);
    a = call_acme("GET", NULL, "/v2/sandboxes/%s/logs?search=ir", id);
    EXPECT(json_array_size(json_object_get(a->json, "logs")) == 2);
    a = call_acme("GET", NULL, "/v2/sandboxes/%s/logs?cursor=1000&direction=backward", id);
    EXPECT(json_array_size(json_object_get(a->json, "logs")) == 0);
    static const char *const bad[] = {"limit=-1", "limit=1001", "cursor=x", "direction=up",
                                      "level=loud"};
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        EXPECT(call_acme("GET", NULL, "/v2/sandboxes/%s/logs?%s", id, bad[i])->status == 400);
    clean_up();
}

TEST(metrics_honour_their_range)
{
    char id[ID_LEN + 1];

    make_sandbox("{}", id);
    struct sandbox *b = sandbox_find(&server.front, id);
    sandbox_metrics_done(&b->metrics);
    b->metrics.ring = xcalloc(METRICS_KEPT, sizeof(*b->metrics.ring));
    for (int i = 0; i < 3; i++)
        b->metrics.ring[b->metrics.n++] = (struct metric){.ms = 1794744000000 + i * 5000,
                                                          .cpu_pct = 12.345f,
                                                          .memory_used = 1000,
                                                          .disk_total = 9};
    struct answer *a = call_acme("GET", NULL, "/sandboxes/%s/metrics", id);
    const json_t *first = json_array_get(a->json, 0);
    EXPECT(json_array_size(a->json) == 3);
    EXPECT(json_integer_value(json_object_get(first, "timestampUnix")) == 1794744000);
    EXPECT_STR(field_of(first, "timestamp"), "2026-11-15T12:00:00.000Z");
    EXPECT(json_real_value(json_object_get(first, "cpuUsedPct")) > 12.3);
    EXPECT(json_integer_value(json_object_get(first, "memUsed")) == 1000);
    EXPECT(json_array_size(
               call_acme("GET", NULL, "/sandboxes/%s/metrics?start=1794744005", id)->json) == 2);
    EXPECT(json_array_size(
               call_acme("GET", NULL, "/sandboxes/%s/metrics?start=0&end=1794744000", id)->json) ==
           1);
    EXPECT(json_array_size(
               call_acme("GET", NULL, "/sandboxes/%s/metrics?start=1&end=2", id)->json) == 0);
    EXPECT(call_acme("GET", NULL, "/sandboxes/%s/metrics?start=5&end=2", id)->status == 400);
    EXPECT(call_acme("GET", NULL, "/sandboxes/%s/metrics?start=-5", id)->status == 400);
    a = call_acme("GET", NULL, "/sandboxes/metrics?sandbox_ids=%s,unknown", id);
    const json_t *all = json_object_get(a->json, "sandboxes");
    EXPECT(json_object_size(all) == 1);
    EXPECT(json_integer_value(json_object_get(json_object_get(all, id), "timestampUnix")) ==
           1794744010);
    EXPECT(call_acme("GET", NULL, "/sandboxes/metrics")->status == 400);
    clean_up();
}
