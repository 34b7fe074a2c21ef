/* Routes of templates and their builds, as far as they need no sandbox: names, limits, tags,
 * uploads, other tenants. */
#include "tap.h"

#include "front/builds/steps.h"
#include "front/builds/upload.h"
#include "front/core/request_log.h"

struct http_req;
static void to_part(struct http_req *req);
#define SERVER_REQUEST to_part
#include "e2b_server.h"

#define HASH "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

TAP_MAIN

static void to_part(struct http_req *req)
{
    request_log_begin(req);
    if (strncmp(req->path, UPLOAD_PREFIX, strlen(UPLOAD_PREFIX)) == 0)
        upload_request(req);
    else
        e2b_request(req);
}

struct ids {
    char template[64], build[64];
};

static struct ids create(const char *body)
{
    struct answer *a = call_acme("POST", body, "/v3/templates");
    struct ids i;

    if (a->status != 202)
        printf("# %s: %s\n", body, a->body);
    EXPECT(a->status == 202);
    snprintf(i.template, sizeof(i.template), "%s", field_of(a->json, "templateID"));
    snprintf(i.build, sizeof(i.build), "%s", field_of(a->json, "buildID"));
    EXPECT(strlen(i.build) == STORE_BUILD_LEN);
    return i;
}

static struct answer *status_of(const struct ids *i, const char *query)
{
    return call_acme("GET", NULL, "/templates/%s/builds/%s/status%s", i->template, i->build, query);
}

/* Starts a build and waits for its end. */
static const char *build(const struct ids *i, const char *body)
{
    struct answer *a = call_acme("POST", body, "/v2/templates/%s/builds/%s", i->template, i->build);

    EXPECT(a->status == 202 && strstr(a->text, "Content-Length: 0"));
    for (int n = 0; n < 1000; n++) {
        const char *status = field_of(status_of(i, "")->json, "status");
        if (strcmp(status, "ready") == 0 || strcmp(status, "error") == 0)
            return status;
        usleep(1000);
    }
    return "(never)";
}

static void forget(const char *name)
{
    EXPECT(call_acme("DELETE", NULL, "/templates/%s", name)->status == 204);
}

TEST(created)
{
    struct answer *a = call_acme("POST", "{\"name\":\"Mine:v1\",\"tags\":[\"v2\"],\"cpuCount\":2}",
                                 "/v3/templates");
    static const char *const required[] = {"templateID", "buildID", "public",
                                           "names",      "tags",    "aliases"};

    EXPECT(a->status == 202);
    for (size_t i = 0; i < ARRAY_SIZE(required); i++)
        EXPECT(json_object_get(a->json, required[i]) != NULL);
    EXPECT_STR(json_string_value(json_array_get(json_object_get(a->json, "tags"), 1)), "v2");
    EXPECT_STR(json_string_value(json_array_get(json_object_get(a->json, "aliases"), 0)), "mine");
    struct ids one = create("{\"name\":\"mine\"}");
    struct ids two = create("{\"name\":\"acme/mine\",\"teamID\":\"x\"}");
    EXPECT_STR(one.template, two.template);
    EXPECT(strcmp(one.build, two.build) != 0);
    EXPECT_STR(field_of(status_of(&one, "")->json, "status"), "waiting");
    EXPECT(call_acme("POST", "{}", "/v3/templates")->status == 400);
    EXPECT(call_acme("POST", "{\"name\":\"a b\"}", "/v3/templates")->status == 400);
    EXPECT(call_acme("POST", "{\"name\":\"beta/x\"}", "/v3/templates")->status == 400);
    EXPECT(call_acme("POST", "{\"name\":\"base\"}", "/v3/templates")->status == 403);
    EXPECT(call_acme("POST", "{\"name\":\"x\",\"tags\":[\"a b\"]}", "/v3/templates")->status ==
           400);
    EXPECT(call_acme("POST", "{\"name\":\"x\",\"tags\":[7]}", "/v3/templates")->status == 400);
    EXPECT(call_acme("POST", "{\"alias\":\"mine\"}", "/v2/templates")->status == 202);
    struct ids big = create("{\"name\":\"mine\",\"memoryMB\":999999}");
    json_t *logs = json_object_get(status_of(&big, "")->json, "logs");
    EXPECT(strstr(json_string_value(json_array_get(logs, 0)), "at most 2 processors and 2048 MiB"));
    server.front.settings.tenant_templates = 1;
    EXPECT(call_acme("POST", "{\"name\":\"second\"}", "/v3/templates")->status == 429);
    server.front.settings.tenant_templates = 100;
    forget("mine");
}

TEST(built_without_a_sandbox)
{
    struct ids i = create("{\"name\":\"envs:v1\"}");

    EXPECT(call_acme("POST", "{\"templateID\":\"envs:v1\"}", "/v2/sandboxes")->status == 404);
    EXPECT_STR(build(&i, "{\"fromTemplate\":\"base\",\"steps\":["
                         "{\"type\":\"ENV\",\"args\":[\"A\",\"1\"]}]}"),
               "ready");
    EXPECT(call_acme("POST", "{}", "/v2/templates/%s/builds/%s", i.template, i.build)->status ==
           409);
    struct answer *a = status_of(&i, "?logsOffset=0");
    json_t *entries = json_object_get(a->json, "logEntries");
    EXPECT(json_array_size(entries) == 3 && json_array_size(json_object_get(a->json, "logs")) == 3);
    EXPECT_STR(field_of(json_array_get(entries, 0), "message"), "[base] FROM template base");
    EXPECT_STR(field_of(json_array_get(entries, 0), "step"), "base");
    EXPECT(json_array_size(json_object_get(status_of(&i, "?logsOffset=2")->json, "logs")) == 1);
    EXPECT(json_array_size(json_object_get(status_of(&i, "?logsOffset=3")->json, "logs")) == 0);
    EXPECT(json_array_size(json_object_get(status_of(&i, "?level=error")->json, "logs")) == 0);
    EXPECT(status_of(&i, "?level=loud")->status == 400);
    a = call_acme("GET", NULL, "/templates/%s/builds/%s/logs?direction=backward&limit=1",
                  i.template, i.build);
    EXPECT(strstr(field_of(json_array_get(json_object_get(a->json, "logs"), 0), "message"),
                  "Build finished"));
    server.n_orders = 0;
    a = call_acme("POST", "{\"templateID\":\"acme/envs:v1\"}", "/v2/sandboxes");
    EXPECT(a->status == 201 && last_order(ORDER_CREATE)->snapshot[0] == '\0');
    EXPECT_STR(field_of(a->json, "templateID"), i.template);
    EXPECT_STR(field_of(a->json, "alias"), "envs");
    EXPECT(call_acme("POST", "{\"templateID\":\"envs\"}", "/v2/sandboxes")->status == 404);
    clean_up();
    forget("envs");
}

/* No request waits for the end of a build, so its status does. */
TEST(the_end_of_a_build_is_told_when_it_is_on_disk)
{
    struct commits *c = &server.front.commits;
    struct ids i = create("{\"name\":\"told\"}");
    int fd = client_connect();
    char target[256], byte;

    EXPECT_STR(build(&i, "{}"), "ready");
    http_server_commits(server.front.http, c);
    c->made = c->kept + 1;
    snprintf(target, sizeof(target), "/templates/%s/builds/%s/status", i.template, i.build);
    client_send(fd, server.acme, "GET", target, NULL);
    /* It came later, and is not about that. */
    EXPECT(call_acme("GET", NULL, "/templates")->status == 200);
    for (int n = 0; n < 20; n++)
        server_turn(-1);
    EXPECT(recv(fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK) < 0 && errno == EAGAIN);
    c->kept = c->made;
    http_server_kept(server.front.http);
    EXPECT_STR(field_of(client_receive(fd)->json, "status"), "ready");
    forget("told");
    clean_up();
}

TEST(what_cannot_be_a_base)
{
    struct ids i = create("{\"name\":\"image\"}");

    server.fail[ORDER_WORLD_BUILDER] = -EOPNOTSUPP;
    EXPECT_STR(build(&i, "{\"fromImage\":\"debian:12\",\"steps\":[]}"), "error");
    json_t *reason = json_object_get(status_of(&i, "")->json, "reason");
    EXPECT_STR(field_of(reason, "step"), "base");
    EXPECT(strstr(field_of(reason, "message"),
                  "the image 'debian:12' cannot be used: the test said so") != NULL);
    server.fail[ORDER_WORLD_BUILDER] = 0;
    i = create("{\"name\":\"image\"}");
    EXPECT_STR(build(&i, "{\"fromImage\":\"debian:12\",\"steps\":[]}"), "error");
    i = create("{\"name\":\"image\"}");
    EXPECT_STR(build(&i, "{\"fromTemplate\":\"nothing\"}"), "error");
    i = create("{\"name\":\"image\"}");
    EXPECT_STR(build(&i, "{\"fromImage\":\"e2bdev/base:latest\",\"steps\":[]}"), "ready");
    i = create("{\"name\":\"image\"}");
    EXPECT_STR(build(&i, "{\"fromImage\":\"docker.io/e2bdev/code-interpreter\"}"), "ready");
    struct answer *a = call_acme("POST", "{\"templateID\":\"image\"}", "/v2/sandboxes");
    EXPECT(a->status == 201 && (last_order(ORDER_CREATE)->flags & ORDER_KERNEL));
    i = create("{\"name\":\"image\"}");
    EXPECT(call_acme("POST", "{\"steps\":[{\"type\":\"X\"}]}", "/v2/templates/%s/builds/%s",
                     i.template, i.build)
               ->status == 400);
    clean_up();
    forget("image");
}

TEST(a_failing_step)
{
    struct ids i = create("{\"name\":\"fails\"}");

    EXPECT_STR(build(&i, "{\"steps\":[{\"type\":\"ENV\",\"args\":[\"A\",\"1\"]},"
                         "{\"type\":\"USER\",\"args\":[\"../app\"]}]}"),
               "error");
    json_t *reason = json_object_get(status_of(&i, "")->json, "reason");
    EXPECT_STR(field_of(reason, "step"), "2");
    EXPECT(strstr(field_of(reason, "message"), "'../app' is no name of a user") != NULL);
    i = create("{\"name\":\"fails\"}");
    EXPECT_STR(build(&i,
                     "{\"steps\":[{\"type\":\"COPY\",\"args\":[\"a\",\"b\"],\"filesHash\":\"" HASH
                     "\"}]}"),
               "error");
    reason = json_object_get(status_of(&i, "")->json, "reason");
    EXPECT(strstr(field_of(reason, "message"), "were not uploaded") != NULL);
    server.fail[ORDER_CREATE] = -EAGAIN;
    i = create("{\"name\":\"fails\"}");
    EXPECT_STR(build(&i, "{\"steps\":[{\"type\":\"RUN\",\"args\":[\"true\"]}]}"), "error");
    server.fail[ORDER_CREATE] = 0;
    reason = json_object_get(status_of(&i, "")->json, "reason");
    EXPECT(strstr(field_of(reason, "message"), "no sandbox could be had") != NULL);
    forget("fails");
}

TEST(cancelled)
{
    struct ids i = create("{\"name\":\"stuck\"}");
    const char *run = "{\"steps\":[{\"type\":\"RUN\",\"args\":[\"sleep 1000\"]}]}";

    EXPECT(call_acme("DELETE", NULL, "/templates/%s/builds/%s", i.template, i.build)->status ==
           409);
    EXPECT(call_acme("POST", run, "/v2/templates/%s/builds/%s", i.template, i.build)->status ==
           202);
    for (int n = 0; n < 1000 && !last_order(ORDER_CREATE); n++)
        status_of(&i, "");
    EXPECT_STR(field_of(status_of(&i, "")->json, "status"), "building");
    EXPECT(json_array_size(call_acme("GET", NULL, "/v2/sandboxes")->json) == 0);
    EXPECT(call_acme("DELETE", NULL, "/templates/%s/builds/%s", i.template, i.build)->status ==
           204);
    struct answer *a = status_of(&i, "");
    EXPECT_STR(field_of(a->json, "status"), "error");
    EXPECT_STR(field_of(json_object_get(a->json, "reason"), "message"), "the build was cancelled");
    for (int n = 0; n < 1000 && !last_order(ORDER_KILL); n++)
        status_of(&i, "");
    EXPECT(last_order(ORDER_KILL) != NULL);
    server.front.settings.tenant_builds = 1;
    i = create("{\"name\":\"stuck\"}");
    struct ids j = create("{\"name\":\"stuck\"}");
    call_acme("POST", run, "/v2/templates/%s/builds/%s", i.template, i.build);
    call_acme("POST", run, "/v2/templates/%s/builds/%s", j.template, j.build);
    EXPECT_STR(field_of(status_of(&i, "")->json, "status"), "building");
    EXPECT_STR(field_of(status_of(&j, "")->json, "status"), "waiting");
    server.front.settings.tenant_builds = 4;
    forget("stuck"); /* ends both */
    EXPECT(status_of(&i, "")->status == 404);
    clean_up();
}

TEST(too_many_wait)
{
    const char *run = "{\"steps\":[{\"type\":\"RUN\",\"args\":[\"sleep 1000\"]}]}";
    int status = 202;
    size_t n = 0;

    server.front.settings.tenant_builds = 1;
    while (status == 202 && n <= BUILDS_WAITING_MAX + 1) {
        struct ids i = create("{\"name\":\"many\"}");
        status = call_acme("POST", run, "/v2/templates/%s/builds/%s", i.template, i.build)->status;
        n += status == 202;
    }
    EXPECT(status == 429 && n == BUILDS_WAITING_MAX + 1);
    server.front.settings.tenant_builds = 4;
    forget("many");
    clean_up();
}

/* A tenant that builds all the time keeps no more than others. */
TEST(layers_go_while_a_build_runs)
{
    const char *run = "{\"steps\":[{\"type\":\"RUN\",\"args\":[\"sleep 1000\"]}]}";
    struct store *s = server.front.store;
    struct ids i = create("{\"name\":\"long\"}");
    char layer[ID_LEN + 1];
    struct sg_error e;

    server.n_orders = 0;
    call_acme("POST", run, "/v2/templates/%s/builds/%s", i.template, i.build);
    for (int n = 0; n < 1000 && !last_order(ORDER_CREATE); n++)
        status_of(&i, "");
    EXPECT(store_build_layer_add(s, server.acme_tenant.id, "k1", "layer000000000000001", 5, &e) ==
           0);
    EXPECT(store_build_layer_add(s, server.acme_tenant.id, "k2", "layer000000000000002", 5, &e) ==
           0);
    server.front.settings.tenant_build_layers = 1;
    builds_sweep(&server.front, server.acme_tenant.id);
    server.front.settings.tenant_build_layers = 200;
    for (int n = 0; n < 1000 && !last_order(ORDER_FORGET); n++)
        status_of(&i, "");
    const struct order *o = last_order(ORDER_FORGET);
    EXPECT(o && strcmp(o->snapshot, "layer000000000000001") == 0);
    EXPECT(store_build_layer_get(s, server.acme_tenant.id, "k2", layer, &e) == 0);
    server.front.settings.tenant_build_layers = 0;
    forget("long");
    server.front.settings.tenant_build_layers = 200;
    clean_up();
}

/* An image that was fetched before may leave the cache while its registry is asked. */
TEST(a_known_image_stays_while_a_build_asks_for_it)
{
    char config[] = "{}", key[STORE_KEY_HEX + 1];
    struct store_image known = {.layer = "layer000000000000009",
                                .name = "localhost:1/mine:1",
                                .digest = "sha256:0",
                                .config = config};
    struct store *s = server.front.store;
    struct ids i = create("{\"name\":\"known\"}");
    struct sg_error e;

    step_image_key(known.name, NULL, key);
    EXPECT(store_image_add(s, server.acme_tenant.id, key, &known, 5, &e) == 0);
    server.silent = true;
    call_acme("POST", "{\"fromImage\":\"localhost:1/mine:1\"}", "/v2/templates/%s/builds/%s",
              i.template, i.build);
    for (int n = 0; n < 1000 && !last_order(ORDER_WORLD_BUILDER); n++)
        status_of(&i, "");
    EXPECT(last_order(ORDER_WORLD_BUILDER) != NULL);
    server.front.settings.tenant_build_layers = 0;
    builds_sweep(&server.front, server.acme_tenant.id);
    server.front.settings.tenant_build_layers = 200;
    server.silent = false;
    server.fail[ORDER_WORLD_BUILDER] = server.fail[ORDER_CREATE] = -EAGAIN;
    warden_answer(last_order(ORDER_WORLD_BUILDER));
    server.fail[ORDER_WORLD_BUILDER] = 0;
    /* Without a sandbox its Python is not looked at, and that is all. */
    for (int n = 0; n < 1000 && strcmp(field_of(status_of(&i, "")->json, "status"), "ready"); n++)
        ;
    server.fail[ORDER_CREATE] = 0;
    EXPECT_STR(field_of(status_of(&i, "")->json, "status"), "ready");
    EXPECT(!last_order(ORDER_FORGET));
    forget("known");
    clean_up();
}

/* Others have all world builders: builds wait. */
TEST(builds_wait_for_a_world_builder)
{
    const char *body = "{\"fromImage\":\"localhost:1/none:1\"}";
    struct ids left = create("{\"name\":\"left\"}"), stays = create("{\"name\":\"stays\"}");
    size_t asked = 0;

    server.n_orders = 0;
    server.fail[ORDER_WORLD_BUILDER] = -EAGAIN;
    call_acme("POST", body, "/v2/templates/%s/builds/%s", left.template, left.build);
    call_acme("POST", body, "/v2/templates/%s/builds/%s", stays.template, stays.build);
    for (int n = 0; n < 10000 && !last_order(ORDER_WORLD_BUILDER); n++)
        server_turn(-1);
    server_turn(-1);
    EXPECT_STR(field_of(status_of(&stays, "")->json, "status"), "building");
    EXPECT(strstr(status_of(&left, "?logsOffset=0")->text, "waiting until fewer images"));
    forget("left");
    for (int n = 0; n < 10000 && asked < 2; n++) {
        server_turn(-1);
        asked = 0;
        for (size_t i = 0; i < server.n_orders; i++)
            asked += server.orders[i].op == ORDER_WORLD_BUILDER;
    }
    EXPECT(asked == 2);
    EXPECT_STR(field_of(status_of(&stays, "")->json, "status"), "building");
    forget("stays"); /* the last one: nobody waits for the image any more */
    server.fail[ORDER_WORLD_BUILDER] = 0;
    for (int n = 0; n < 20; n++)
        server_turn(-1);
    clean_up();
}

TEST(tags)
{
    struct ids i = create("{\"name\":\"tagged:v1\"}");

    build(&i, "{}");
    EXPECT(call_acme("POST", "{\"target\":\"tagged:v1\",\"tags\":[\"prod\",\"stable\"]}",
                     "/templates/tags")
               ->status == 201);
    struct answer *a = call_acme("GET", NULL, "/templates/%s/tags", i.template);
    EXPECT(a->status == 200 && json_array_size(a->json) == 3);
    EXPECT_STR(field_of(json_array_get(a->json, 0), "buildID"), i.build);
    EXPECT(call_acme("DELETE", "{\"name\":\"tagged\",\"tags\":[\"prod\"]}", "/templates/tags")
               ->status == 204);
    EXPECT(json_array_size(call_acme("GET", NULL, "/templates/tagged/tags")->json) == 2);
    EXPECT(call_acme("POST", "{\"target\":\"tagged:v9\",\"tags\":[\"x\"]}", "/templates/tags")
               ->status == 404);
    EXPECT(call_acme("POST", "{\"target\":\"none\",\"tags\":[\"x\"]}", "/templates/tags")->status ==
           404);
    EXPECT(call_acme("POST", "{\"target\":\"base\",\"tags\":[\"x\"]}", "/templates/tags")->status ==
           403);
    a = call_acme("GET", NULL, "/templates");
    EXPECT(json_array_size(a->json) == 4);
    EXPECT_STR(field_of(json_array_get(a->json, 3), "buildStatus"), "ready");
    a = call_acme("GET", NULL, "/templates/tagged");
    EXPECT(a->status == 200 && json_array_size(json_object_get(a->json, "builds")) == 1);
    EXPECT(call_acme("GET", NULL, "/templates/aliases/tagged")->status == 200);
    forget("tagged");
    EXPECT(call_acme("GET", NULL, "/templates/aliases/tagged")->status == 404);
}

TEST(more_tags_than_fit)
{
    AUTO(strbuf_done) struct strbuf tags = strbuf_upto(64 * 1024);
    struct ids i = create("{\"name\":\"full\"}");
    struct sg_error e;

    build(&i, "{}");
    for (unsigned n = 1; n < STORE_TEMPLATE_TAGS; n++)
        strbuf_addf(&tags, "t%u ", n);
    EXPECT(store_tags_set(server.front.store, i.template, tags.buf, i.build, &e) == 0);
    i = create("{\"name\":\"full:new\"}");
    EXPECT_STR(build(&i, "{}"), "error");
    json_t *reason = json_object_get(status_of(&i, "")->json, "reason");
    EXPECT(strstr(field_of(reason, "message"), "at most 1000 tags") != NULL);
    i = create("{\"name\":\"full\"}");
    EXPECT_STR(build(&i, "{}"), "ready");
    forget("full");
}

TEST(other_tenants)
{
    struct ids i = create("{\"name\":\"secret\"}");
    char path[256];

    build(&i, "{}");
    snprintf(path, sizeof(path), "/templates/%s/builds/%s/status", i.template, i.build);
    EXPECT(ask(server.beta, "GET", path, NULL)->status == 404);
    snprintf(path, sizeof(path), "/v2/templates/%s/builds/%s", i.template, i.build);
    EXPECT(ask(server.beta, "POST", path, "{}")->status == 404);
    snprintf(path, sizeof(path), "/templates/%s/files/" HASH, i.template);
    EXPECT(ask(server.beta, "GET", path, NULL)->status == 404);
    EXPECT(ask(server.beta, "GET", "/templates/aliases/acme%2Fsecret", NULL)->status == 400);
    EXPECT(ask(server.beta, "POST", "/v2/sandboxes", "{\"templateID\":\"acme/secret\"}")->status ==
           404);
    snprintf(path, sizeof(path), "{\"templateID\":\"%s\"}", i.template);
    EXPECT(ask(server.beta, "POST", "/v2/sandboxes", path)->status == 404);
    EXPECT(call_acme("PATCH", "{\"public\":true}", "/v2/templates/%s", i.template)->status == 200);
    EXPECT(call_acme("PATCH", "{\"public\":false}", "/v2/templates/secret")->status == 200);
    snprintf(path, sizeof(path), "/v2/templates/%s", i.template);
    EXPECT(ask(server.beta, "PATCH", path, "{\"public\":false}")->status == 404);
    snprintf(path, sizeof(path), "/templates/%s", i.template);
    EXPECT(ask(server.beta, "DELETE", path, NULL)->status == 404);
    EXPECT(json_array_size(ask(server.beta, "GET", "/templates", NULL)->json) == 3);
    forget("secret");
}

/* The address that a client gets, without scheme and host. */
static const char *address(const struct ids *i, char ret[1024])
{
    struct answer *a = call_acme("GET", NULL, "/templates/%s/files/" HASH, i->template);
    const char *url = field_of(a->json, "url");

    EXPECT(a->status == 201 && json_is_false(json_object_get(a->json, "present")));
    EXPECT(strncmp(url, "http://localhost/uploads/", 25) == 0);
    snprintf(ret, 1024, "%s", url + strlen("http://localhost"));
    return ret;
}

TEST(uploads)
{
    struct ids i = create("{\"name\":\"files\"}");
    char url[1024], wrong[1024];

    EXPECT(call_acme("GET", NULL, "/templates/%s/files/abc", i.template)->status == 400);
    address(&i, url);
    EXPECT(ask(NULL, "GET", url, NULL)->status == 405);
    snprintf(wrong, sizeof(wrong), "%s", url);
    wrong[strlen(wrong) - 1] ^= 1;
    EXPECT(ask(NULL, "PUT", wrong, "x")->status == 403);
    snprintf(wrong, sizeof(wrong), "%s", url);
    memcpy(strstr(wrong, HASH), "f", 1);
    EXPECT(ask(NULL, "PUT", wrong, "x")->status == 403);
    EXPECT(ask(NULL, "PUT", "/uploads/x", "x")->status == 403);
    server.front.settings.build_upload_max = 4;
    EXPECT(ask(NULL, "PUT", url, "hello")->status == 413);
    server.front.settings.build_upload_max = 1 << 20;
    EXPECT(ask(NULL, "PUT", url, "hello")->status == 200);
    struct answer *a = call_acme("GET", NULL, "/templates/%s/files/" HASH, i.template);
    EXPECT(json_is_true(json_object_get(a->json, "present")));
    struct store_upload u, again;
    EXPECT(store_upload_get(server.front.store, server.acme_tenant.id, HASH, &u, NULL) == 0);
    EXPECT_STR(u.digest, "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824");
    EXPECT(u.bytes == 5);
    EXPECT(ask(NULL, "PUT", url, "other")->status == 200); /* replaces it */
    EXPECT(store_upload_get(server.front.store, server.acme_tenant.id, HASH, &again, NULL) == 0);
    EXPECT(strcmp(u.file, again.file) != 0 && upload_open(server.front.store, &u) < 0);
    store_upload_trim(server.front.store, server.acme_tenant.id, "", 0, 0, &u, NULL);
    uploads_tidy(&server.front); /* removes what nothing names */
    EXPECT(upload_open(server.front.store, &again) < 0);
    forget("files");
}

/* Begins an upload that does not end. */
static int begin_put(const char *url)
{
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(4096);
    int fd = client_connect();

    strbuf_addf(&out,
                "PUT %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                "Content-Length: 4\r\n\r\nabc",
                url);
    EXPECT(fd_write_all(fd, out.buf, out.len) == 0);
    for (int i = 0; i < 20; i++)
        server_turn(fd);
    return fd;
}

TEST(uploads_that_have_not_ended)
{
    struct ids i = create("{\"name\":\"slow\"}");
    char url[1024];
    int fds[5];

    address(&i, url);
    server.front.settings.build_upload_max = 4;
    for (size_t n = 0; n < ARRAY_SIZE(fds); n++)
        fds[n] = begin_put(url);
    EXPECT(client_receive(begin_put(url))->status == 429); /* 18 bytes: four have room */
    for (size_t n = 0; n < ARRAY_SIZE(fds); n++)
        close(fds[n]);
    for (int n = 0; n < 20; n++)
        server_turn(-1);
    EXPECT(ask(NULL, "PUT", url, "abc")->status == 200);
    server.front.settings.build_upload_max = 1 << 20;
    struct store_upload u;
    store_upload_trim(server.front.store, server.acme_tenant.id, "", 0, 0, &u, NULL);
    uploads_tidy(&server.front);
    forget("slow");
}

/* The archive that a step's key is about is the one that must be copied. */
TEST(files_that_are_replaced_meanwhile)
{
    struct ids i = create("{\"name\":\"moved\"}");
    struct answer *a;
    char url[1024];

    address(&i, url);
    EXPECT(ask(NULL, "PUT", url, "one")->status == 200);
    server.silent = true;
    server.n_orders = 0;
    a = call_acme("POST",
                  "{\"steps\":[{\"type\":\"COPY\",\"args\":[\"a\",\"b\"],\"filesHash\":\"" HASH
                  "\"}]}",
                  "/v2/templates/%s/builds/%s", i.template, i.build);
    EXPECT(a->status == 202);
    for (int n = 0; n < 1000 && !last_order(ORDER_CREATE); n++)
        status_of(&i, "");
    EXPECT(last_order(ORDER_CREATE) != NULL);
    EXPECT(ask(NULL, "PUT", url, "two")->status == 200);
    server.silent = false;
    warden_answer(last_order(ORDER_CREATE));
    for (int n = 0; n < 1000; n++) {
        a = status_of(&i, "");
        if (strcmp(field_of(a->json, "status"), "error") == 0)
            break;
    }
    EXPECT(strstr(field_of(json_object_get(a->json, "reason"), "message"), "were replaced") !=
           NULL);
    struct store_upload u;
    store_upload_trim(server.front.store, server.acme_tenant.id, "", 0, 0, &u, NULL);
    uploads_tidy(&server.front);
    forget("moved");
    clean_up();
}
