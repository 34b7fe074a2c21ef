/* Snapshots that become templates, by a tag: which name leads to which files, and when those go. */
#include "tap.h"

#include "fork_agents.h"

TAP_MAIN

__attribute__((constructor)) static void agents_start(void)
{
    fork_agents_start();
}

static void forget(const char *name)
{
    EXPECT(call_acme("DELETE", NULL, "/templates/%s", name)->status == 204);
}

/* The id of the layer that a sandbox of a template would be made of, or the status. */
static const char *layer_of(const char *name)
{
    static char text[ID_LEN + 1];
    char body[128];

    snprintf(body, sizeof(body), "{\"templateID\":\"%s\"}", name);
    struct answer *a = call_acme("POST", body, "/v2/sandboxes");
    snprintf(text, sizeof(text), "%d", a->status);
    if (a->status == 201)
        snprintf(text, sizeof(text), "%s", last_order(ORDER_CREATE)->snapshot);
    return text;
}

/* Makes a snapshot, whose layer is in ret. */
static void take(const char *sandbox, const char *body, char ret[ID_LEN + 1])
{
    struct answer *a = call_acme("POST", body, "/sandboxes/%s/snapshots", sandbox);

    EXPECT(a->status == 201);
    memcpy(ret, last_order(ORDER_CHECKPOINT)->snapshot, ID_LEN + 1);
}

static struct answer *tag(const char *target, const char *tags)
{
    char body[256];

    snprintf(body, sizeof(body), "{\"target\":\"%s\",\"tags\":[%s]}", target, tags);
    return call_acme("POST", body, "/templates/tags");
}

/* How often the warden was told to remove the files of a layer. */
static unsigned forgotten(const char *layer)
{
    unsigned n = 0;

    server_turn(-1); /* nobody waits for that */
    for (size_t i = 0; i < server.n_orders; i++)
        n += server.orders[i].op == ORDER_FORGET && strcmp(server.orders[i].snapshot, layer) == 0;
    return n;
}

TEST(a_snapshot_becomes_a_template)
{
    char id[ID_LEN + 1], first[ID_LEN + 1], second[ID_LEN + 1], build_id[64];

    make_sandbox("{}", id);
    take(id, "{\"name\":\"nightly\"}", first);
    EXPECT(tag("acme/nightly:default", "\"prod\",\"v1\"")->status == 201);
    EXPECT_STR(layer_of("nightly:prod"), first);
    EXPECT_STR(layer_of("nightly"), first);
    EXPECT(json_array_size(call_acme("GET", NULL, "/templates/nightly/tags")->json) == 3);
    struct answer *a = call_acme("GET", NULL, "/templates/nightly");
    const json_t *built = json_array_get(json_object_get(a->json, "builds"), 0);
    EXPECT_STR(field_of(built, "status"), "ready");
    snprintf(build_id, sizeof(build_id), "%s", field_of(built, "buildID"));
    a = call_acme("GET", NULL, "/templates/nightly/builds/%s/status", build_id);
    EXPECT(strstr(json_string_value(json_array_get(json_object_get(a->json, "logs"), 0)),
                  "FROM snapshot acme/nightly:default"));

    /* The next night's takes the name, and not the tag. */
    take(id, "{\"name\":\"nightly\"}", second);
    EXPECT_STR(layer_of("nightly:prod"), first);
    EXPECT_STR(layer_of("nightly"), second);
    EXPECT(
        call_acme("POST", "{\"name\":\"nightly:prod\"}", "/sandboxes/%s/snapshots", id)->status ==
        409);
    EXPECT(call_acme("DELETE", NULL, "/templates/acme%%2Fnightly:default")->status == 204);
    EXPECT_STR(layer_of("nightly"), "404");
    EXPECT(call_acme("DELETE", NULL, "/templates/acme%%2Fnightly:default")->status == 404);
    EXPECT_STR(layer_of("nightly:v1"), first);
    EXPECT(forgotten(first) == 0 && forgotten(second) == 1);
    forget("nightly");
    EXPECT(forgotten(first) == 1);
    clean_up();
}

TEST(a_snapshot_without_a_name)
{
    char id[ID_LEN + 1], layer[ID_LEN + 1], name[64];

    make_sandbox("{}", id);
    take(id, "", layer);
    EXPECT(tag(layer, "\"prod\"")->status == 201); /* under its id */
    snprintf(name, sizeof(name), "%s:prod", layer);
    EXPECT_STR(layer_of(name), layer);
    EXPECT(tag(layer, "\"shop:v1\",\"shop:v2\"")->status == 201);
    EXPECT(json_array_size(call_acme("GET", NULL, "/templates/shop/tags")->json) == 2);
    EXPECT(tag("shop:v1", "\"other:v1\"")->status == 201); /* and a template, too */
    forget(layer);                                         /* the snapshot, not the template */
    EXPECT_STR(layer_of(layer), "404");
    EXPECT_STR(layer_of(name), layer);
    EXPECT_STR(layer_of("other:v1"), layer);
    forget("other");
    forget(layer);
    EXPECT(forgotten(layer) == 0);
    EXPECT_STR(layer_of("shop:v2"), layer);
    forget("shop");
    EXPECT(forgotten(layer) == 1);
    clean_up();
}

TEST(what_cannot_be_tagged)
{
    char id[ID_LEN + 1], layer[ID_LEN + 1], body[128];

    make_sandbox("{}", id);
    take(id, "{\"name\":\"taken\"}", layer);
    EXPECT(tag("taken", "")->status == 400);
    EXPECT(tag("taken", "\"a:v1\",\"b:v1\"")->status == 400);
    EXPECT(tag("taken", "\"a:v1\",\"v2\"")->status == 400);
    EXPECT(tag("taken", "\"base:v1\"")->status == 403);
    EXPECT(tag("taken", "\"beta/a:v1\"")->status == 400);
    EXPECT(tag("taken:other", "\"v1\"")->status == 404);
    EXPECT(tag("base", "\"a:v1\"")->status == 403);
    snprintf(body, sizeof(body), "{\"target\":\"%s\",\"tags\":[\"v1\"]}", layer);
    EXPECT(ask(server.beta, "POST", "/templates/tags", body)->status == 404);
    server.front.settings.tenant_templates = 0;
    EXPECT(tag("taken", "\"v1\"")->status == 429);
    server.front.settings.tenant_templates = 100;
    uint64_t size = server.front.settings.tenant_build_size;
    server.front.settings.tenant_build_size = 0;
    struct answer *a = tag("taken", "\"v1\"");
    EXPECT(a->status == 429 && strstr(message_of(a), "tenant_build_size"));
    server.front.settings.tenant_build_size = size;
    EXPECT(json_array_size(call_acme("GET", NULL, "/templates")->json) == 3);
    forget("taken");
    clean_up();
}
