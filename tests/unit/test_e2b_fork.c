/* Forks, checkpoints and snapshots over HTTP, with agents that hold their cells and a warden that
 * only answers. */
#include "tap.h"

#include "fork_agents.h"
#include "front/e2b/spec.h"
#include "front/core/checkpoint_impl.h"
#include "front/core/egress.h"
#include "front/core/replay.h"

TAP_MAIN

#define CARRIED \
    "{\"kernels\":[{\"pid\":17,\"files\":[],\"dropped\":[{\"fd\":9,\"what\":\"socket\"}]}]}"
#define IN_THE_WAY                                                                                \
    "{\"inTheWay\":[{\"pid\":40,\"command\":\"cp -a\",\"what\":\"process\",\"holds\":\"/tmp/x\"," \
    "\"remedy\":\"end it\"}],\"more\":0}"

__attribute__((constructor)) static void agents_start(void)
{
    fork_agents_start();
}

static size_t count_orders(enum order_op op)
{
    size_t n = 0;

    for (size_t i = 0; i < server.n_orders; i++)
        n += server.orders[i].op == (uint32_t)op;
    return n;
}

/* The layer that was forgotten last. Nobody waits for that: it may be on its way. */
static const char *forgotten(void)
{
    server_turn(-1);
    return last_order(ORDER_FORGET) ? last_order(ORDER_FORGET)->snapshot : "";
}

/* The nth object of an array that is a member. */
static const json_t *nth(const json_t *object, const char *member, size_t i)
{
    return json_array_get(json_object_get(object, member), i);
}

static const char *header_of(const struct answer *a, const char *name, char *ret, size_t cap)
{
    const char *p = strcasestr(a->text, name);

    ret[0] = '\0';
    if (p && p < a->body)
        snprintf(ret, cap, "%.*s", (int)strcspn(p + strlen(name) + 2, "\r"), p + strlen(name) + 2);
    return ret;
}

/* ---- snapshots ------------------------------------------------------------------------------- */

TEST(snapshots_have_a_limit)
{
    char id[ID_LEN + 1];

    make_sandbox("{}", id);
    server.front.settings.tenant_snapshots = 1;
    EXPECT(call_acme("POST", "{\"name\":\"one\"}", "/sandboxes/%s/snapshots", id)->status == 201);
    struct answer *a = call_acme("POST", "{\"name\":\"two\"}", "/sandboxes/%s/snapshots", id);
    EXPECT(a->status == 429);
    EXPECT(strstr(field_of(a->json, "message"), "the limit is 1"));
    EXPECT(call_acme("DELETE", NULL, "/templates/one")->status == 204);
    EXPECT(call_acme("POST", "{\"name\":\"two\"}", "/sandboxes/%s/snapshots", id)->status == 201);
    EXPECT(call_acme("DELETE", NULL, "/templates/two")->status == 204);
    EXPECT(call_acme("DELETE", NULL, "/sandboxes/%s", id)->status == 204);
    server.front.settings.tenant_snapshots = 100;
}

/* The tag that a template goes by says nothing about what is below it. */
TEST(snapshots_of_a_template_with_a_kernel)
{
    char id[ID_LEN + 1], template[ID_LEN + 1], body[128];
    struct answer *a = call_acme("POST", "{\"name\":\"kernel:v1\"}", "/v3/templates");

    snprintf(template, sizeof(template), "%s", field_of(a->json, "templateID"));
    snprintf(body, sizeof(body), "/v2/templates/%s/builds/%s", template,
             field_of(a->json, "buildID"));
    EXPECT(call_acme("POST", "{\"fromTemplate\":\"code-interpreter-v1\"}", "%s", body)->status ==
           202);
    for (int n = 0; n < 1000; n++)
        if (json_array_size(call_acme("GET", NULL, "/templates/%s/tags", template)->json) > 0)
            break;
    make_sandbox("{\"templateID\":\"kernel:v1\"}", id);
    a = call_acme("POST", "{\"name\":\"kernel:v1\"}", "/sandboxes/%s/snapshots", id);
    EXPECT(a->status == 409 && strstr(message_of(a), "a template of yours"));
    server.fail[ORDER_CHECKPOINT] = -EOPNOTSUPP; /* files alone */
    a = call_acme("POST", "{\"name\":\"alone\"}", "/sandboxes/%s/snapshots", id);
    server.fail[ORDER_CHECKPOINT] = 0;
    EXPECT(a->status == 201);
    EXPECT(call_acme("DELETE", NULL, "/sandboxes/%s", id)->status == 204);
    make_sandbox("{\"templateID\":\"alone\"}", id);
    EXPECT(last_order(ORDER_CREATE)->flags & ORDER_KERNEL);
    EXPECT(call_acme("DELETE", NULL, "/sandboxes/%s", id)->status == 204);
    EXPECT(call_acme("DELETE", NULL, "/templates/alone")->status == 204);
    EXPECT(call_acme("DELETE", NULL, "/templates/kernel")->status == 204);
}

TEST(snapshots)
{
    char id[ID_LEN + 1], bare[64];

    make_sandbox("{}", id);
    struct answer *a = call_acme("POST", "{\"name\":\"Ready\"}", "/sandboxes/%s/snapshots", id);
    EXPECT(a->status == 201);
    EXPECT_STR(field_of(a->json, "snapshotID"), "acme/ready:default");
    EXPECT_STR(json_string_value(json_array_get(json_object_get(a->json, "names"), 0)),
               "acme/ready");
    const struct order *o = last_order(ORDER_CHECKPOINT);
    EXPECT(o->flags == ORDER_KEEP && id_valid(o->snapshot));
    char first[ID_LEN + 1];
    memcpy(first, o->snapshot, sizeof(first));
    a = call_acme("POST", "{\"name\":\"acme/ready:v2\"}", "/sandboxes/%s/snapshots", id);
    EXPECT_STR(field_of(a->json, "snapshotID"), "acme/ready:v2");
    a = call_acme("POST", "", "/sandboxes/%s/snapshots", id);
    EXPECT(a->status == 201 && json_array_size(json_object_get(a->json, "names")) == 0);
    snprintf(bare, sizeof(bare), "%s", field_of(a->json, "snapshotID"));
    EXPECT(strlen(bare) == ID_LEN + 8 && strstr(bare, ":default"));

    EXPECT(json_array_size(call_acme("GET", NULL, "/snapshots")->json) == 3);
    EXPECT(json_array_size(call_acme("GET", NULL, "/snapshots?name=ready")->json) == 2);
    EXPECT(json_array_size(call_acme("GET", NULL, "/snapshots?name=acme%%2Fready%%3Av2")->json) ==
           1);
    EXPECT(json_array_size(call_acme("GET", NULL, "/snapshots?name=none")->json) == 0);
    EXPECT(json_array_size(call_acme("GET", NULL, "/snapshots?sandboxID=%s", id)->json) == 3);
    EXPECT(json_array_size(call_acme("GET", NULL, "/snapshots?sandboxID=other")->json) == 0);
    EXPECT(json_array_size(ask(server.beta, "GET", "/snapshots", NULL)->json) == 0);
    EXPECT(call_acme("GET", NULL, "/snapshots?name=beta%%2Fx")->status == 400);
    a = call_acme("GET", NULL, "/snapshots?limit=2");
    char token[256];
    EXPECT(json_array_size(a->json) == 2);
    header_of(a, "X-Next-Token", token, sizeof(token));
    EXPECT(json_array_size(call_acme("GET", NULL, "/snapshots?nextToken=%s", token)->json) == 1);

    a = call_acme("POST", "{\"templateID\":\"acme/ready:default\"}", "/v2/sandboxes");
    EXPECT(a->status == 201);
    EXPECT_STR(last_order(ORDER_CREATE)->snapshot, first);
    EXPECT_STR(field_of(a->json, "templateID"), first);
    EXPECT_STR(field_of(a->json, "alias"), "ready");
    EXPECT(ask(server.beta, "POST", "/v2/sandboxes", "{\"templateID\":\"acme/ready\"}")->status ==
           404);
    EXPECT(ask(server.beta, "DELETE", "/templates/acme%2Fready", NULL)->status == 404);

    /* The name moves on: what it meant before is forgotten. */
    EXPECT(call_acme("POST", "{\"name\":\"ready\"}", "/sandboxes/%s/snapshots", id)->status == 201);
    EXPECT_STR(forgotten(), first);
    EXPECT(call_acme("DELETE", NULL, "/templates/acme%%2Fready%%3Adefault")->status == 204);
    EXPECT(call_acme("DELETE", NULL, "/templates/acme%%2Fready%%3Adefault")->status == 404);
    EXPECT(json_array_size(call_acme("GET", NULL, "/templates/ready%%3Av2/tags")->json) == 1);
    EXPECT(call_acme("DELETE", NULL, "/templates/ready")->status == 204);
    EXPECT(call_acme("DELETE", NULL, "/templates/%.20s", bare)->status == 204);
    EXPECT(json_array_size(call_acme("GET", NULL, "/snapshots")->json) == 0);

    EXPECT(call_acme("POST", "{\"name\":\"a b\"}", "/sandboxes/%s/snapshots", id)->status == 400);
    EXPECT(call_acme("POST", "{\"name\":\"beta/x\"}", "/sandboxes/%s/snapshots", id)->status ==
           400);
    EXPECT(call_acme("POST", "{\"name\":\"base\"}", "/sandboxes/%s/snapshots", id)->status == 400);
    EXPECT(call_acme("POST", "{\"name\":7}", "/sandboxes/%s/snapshots", id)->status == 400);
    server.fail[ORDER_CHECKPOINT] = -EIO;
    EXPECT(call_acme("POST", "{}", "/sandboxes/%s/snapshots", id)->status == 500);
    server.fail[ORDER_CHECKPOINT] = 0;
    EXPECT(json_array_size(call_acme("GET", NULL, "/snapshots")->json) == 0);
    clean_up();
}

TEST(snapshots_say_whether_they_are_warm)
{
    char id[ID_LEN + 1], name[ID_LEN + 1];

    make_sandbox("{}", id);
    server.report = CARRIED;
    struct answer *a = call_acme("POST", "{\"name\":\"warm\"}", "/sandboxes/%s/snapshots", id);
    EXPECT(a->status == 201);
    EXPECT_STR(field_of(a->json, "state"), "warm");
    EXPECT_STR(field_of(nth(a->json, "kernels", 0), "state"), "carried");
    snprintf(name, sizeof(name), "%s", last_order(ORDER_CHECKPOINT)->snapshot);
    a = call_acme("GET", NULL, "/snapshots");
    EXPECT_STR(field_of(json_array_get(a->json, 0), "state"), "warm");

    /* What is made from it has the kernels, also when its sandbox is gone. */
    EXPECT(call_acme("DELETE", NULL, "/sandboxes/%s", id)->status == 204);
    unsigned adopts = fork_agents.adopts;
    EXPECT(call_acme("POST", "{\"templateID\":\"warm\"}", "/v2/sandboxes")->status == 201);
    EXPECT(last_order(ORDER_CREATE)->flags & ORDER_STATE);
    EXPECT_STR(last_order(ORDER_CREATE)->snapshot, name);
    EXPECT(fork_agents.adopts == adopts + 1);

    a = call_acme("POST", "{\"templateID\":\"warm\",\"inherit\":\"state\"}", "/v2/sandboxes");
    EXPECT(a->status == 201 && (last_order(ORDER_CREATE)->flags & ORDER_WHOLE));

    /* The kernels end: the files are there. */
    struct order_answer lost = {.tell = TELL_KERNELS_LOST};
    memcpy(lost.snapshot, name, sizeof(name));
    checkpoint_told_lost(&server.front, &lost);
    a = call_acme("GET", NULL, "/snapshots");
    EXPECT_STR(field_of(json_array_get(a->json, 0), "state"), "files");
    EXPECT(call_acme("POST", "{\"templateID\":\"warm\"}", "/v2/sandboxes")->status == 201);
    EXPECT(!(last_order(ORDER_CREATE)->flags & ORDER_WHOLE)); /* contexts say what is gone */
    a = call_acme("POST", "{\"templateID\":\"warm\",\"inherit\":\"state\"}", "/v2/sandboxes");
    EXPECT(a->status == 409);
    EXPECT_STR(field_of(a->json, "reason"), "state_lost");
    EXPECT(call_acme("POST", "{\"inherit\":\"state\"}", "/v2/sandboxes")->status == 409);
    EXPECT(call_acme("POST", "{\"inherit\":\"files\"}", "/v2/sandboxes")->status == 201);
    EXPECT(call_acme("POST", "{\"inherit\":\"all\"}", "/v2/sandboxes")->status == 400);
    EXPECT(call_acme("DELETE", NULL, "/templates/warm")->status == 204);
    EXPECT(checkpoint_find(&server.front, server.acme_tenant.id, name) == NULL);
    clean_up();
}

TEST(a_snapshot_is_of_the_files_if_something_is_in_the_way)
{
    char id[ID_LEN + 1];

    make_sandbox("{}", id);
    fork_agents.cell_runs = true;
    struct answer *a = call_acme("POST", "{\"name\":\"a\"}", "/sandboxes/%s/snapshots", id);
    fork_agents.cell_runs = false;
    EXPECT(a->status == 201);
    EXPECT_STR(field_of(a->json, "state"), "files");
    EXPECT_STR(field_of(nth(a->json, "inTheWay", 0), "what"), "cell");
    EXPECT(json_array_size(json_object_get(a->json, "kernels")) == 0);
    EXPECT(last_order(ORDER_SNAPSHOT)->flags == ORDER_DURABLE);

    server.report = IN_THE_WAY;
    server.fail[ORDER_CHECKPOINT] = -EBUSY;
    a = call_acme("POST", "{\"name\":\"b\"}", "/sandboxes/%s/snapshots", id);
    server.fail[ORDER_CHECKPOINT] = 0;
    EXPECT(a->status == 201);
    EXPECT_STR(field_of(nth(a->json, "inTheWay", 0), "command"), "cp -a");
    EXPECT(call_acme("DELETE", NULL, "/templates/a")->status == 204);
    EXPECT(call_acme("DELETE", NULL, "/templates/b")->status == 204);
    clean_up();
}

/* ---- fork ------------------------------------------------------------------------------------ */

TEST(fork)
{
    char id[ID_LEN + 1], token[SPEC_TOKEN_LEN + 1];

    make_sandbox("{\"metadata\":{\"k\":\"v\"}}", id);
    server.report = CARRIED;
    struct answer *a = call_acme("POST", "{}", "/v2/sandboxes/%s/connect", id);
    snprintf(token, sizeof(token), "%s", field_of(a->json, "envdAccessToken"));
    a = call_acme("POST", "{\"count\":3,\"timeout\":60}", "/sandboxes/%s/fork", id);
    EXPECT(a->status == 201 && json_array_size(a->json) == 3);
    const struct order *o = last_order(ORDER_CHECKPOINT);
    EXPECT(o->flags == ORDER_SOON && o->n_kernels == 1 && o->kernels[0] == 17);
    EXPECT_STR(forgotten(), o->snapshot);
    EXPECT_STR(last_order(ORDER_CREATE)->snapshot, o->snapshot);
    EXPECT(last_order(ORDER_CREATE)->flags & ORDER_STATE);
    for (size_t i = 0; i < 3; i++) {
        const json_t *entry = json_array_get(a->json, i), *one = json_object_get(entry, "sandbox");

        EXPECT(id_valid(field_of(one, "sandboxID")) && strcmp(field_of(one, "sandboxID"), id) != 0);
        EXPECT(strlen(field_of(one, "envdAccessToken")) == SPEC_TOKEN_LEN);
        EXPECT(strcmp(field_of(one, "envdAccessToken"), token) != 0);
        EXPECT_STR(field_of(nth(entry, "kernels", 0), "contextId"), FORK_KERNEL);
        EXPECT_STR(field_of(nth(entry, "kernels", 0), "state"), "carried");
        EXPECT_STR(field_of(nth(nth(entry, "kernels", 0), "dropped", 0), "what"), "socket");
    }
    a = call_acme("GET", NULL, "/v2/sandboxes?metadata=k%%3Dv");
    EXPECT(json_array_size(a->json) == 4);
    EXPECT(json_array_size(call_acme("GET", NULL, "/snapshots")->json) == 0);
    a = call_acme("GET", NULL, "/sandboxes/%s/checkpoints", id);
    EXPECT(json_array_size(json_object_get(a->json, "checkpoints")) == 0);
    EXPECT(json_array_size(call_acme("POST", "", "/sandboxes/%s/fork", id)->json) == 1);
    EXPECT(last_order(ORDER_CREATE)->flags & ORDER_LAST);
    clean_up();
}

TEST(fork_checks_what_it_is_request_log)
{
    static const char *const bad[] = {
        "{\"count\":-5}",        "{\"count\":101}",    "{\"count\":1.0}",
        "{\"inherit\":\"all\"}", "{\"inherit\":1}",    "{\"waitMs\":-1}",
        "{\"waitMs\":600001}",   "{\"waitMs\":\"1\"}", "{\"timeout\":-1}"};
    char id[ID_LEN + 1];

    make_sandbox("{}", id);
    struct answer *a = call_acme("POST", "{\"count\":0}", "/sandboxes/%s/fork", id);
    EXPECT(a->status == 400);
    EXPECT_STR(message_of(a), "Count must be at least 1");
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        EXPECT(call_acme("POST", bad[i], "/sandboxes/%s/fork", id)->status == 400);
    EXPECT(count_orders(ORDER_CHECKPOINT) == 0);
    clean_up();
}

TEST(files_alone_are_a_snapshot_without_a_name)
{
    char id[ID_LEN + 1];

    make_sandbox("{}", id);
    fork_agents.cell_runs = true; /* and nobody minds */
    struct answer *a =
        call_acme("POST", "{\"count\":2,\"inherit\":\"files\"}", "/sandboxes/%s/fork", id);
    fork_agents.cell_runs = false;
    EXPECT(a->status == 201 && json_array_size(a->json) == 2);
    EXPECT_STR(forgotten(), last_order(ORDER_SNAPSHOT)->snapshot);
    EXPECT(!(last_order(ORDER_CREATE)->flags & ORDER_STATE));

    /* So is everything on a host that cannot copy, and it says why. */
    server.fail[ORDER_CHECKPOINT] = -EOPNOTSUPP;
    a = call_acme("POST", "{}", "/sandboxes/%s/fork", id);
    EXPECT(a->status == 201);
    const json_t *kernel = nth(json_array_get(a->json, 0), "kernels", 0);
    EXPECT_STR(field_of(kernel, "state"), "fresh");
    EXPECT_STR(field_of(kernel, "reason"), "the test said so");
    EXPECT(call_acme("POST", "{\"inherit\":\"replay\"}", "/sandboxes/%s/fork", id)->status == 501);
    server.fail[ORDER_CHECKPOINT] = 0;
    clean_up();
}

TEST(what_is_in_the_way_is_listed)
{
    char id[ID_LEN + 1];

    make_sandbox("{}", id);
    fork_agents.cell_runs = true;
    struct answer *a = call_acme("POST", "{}", "/sandboxes/%s/fork", id);
    fork_agents.cell_runs = false;
    EXPECT(a->status == 409 && json_integer_value(json_object_get(a->json, "code")) == 409);
    EXPECT_STR(field_of(nth(a->json, "inTheWay", 0), "what"), "cell");
    EXPECT(strstr(field_of(nth(a->json, "inTheWay", 0), "remedy"), "waitMs") != NULL);

    server.report = IN_THE_WAY;
    server.fail[ORDER_CHECKPOINT] = -EBUSY;
    a = call_acme("POST", "{}", "/sandboxes/%s/fork", id);
    server.fail[ORDER_CHECKPOINT] = 0;
    EXPECT(a->status == 409);
    EXPECT(json_integer_value(json_object_get(nth(a->json, "inTheWay", 0), "pid")) == 40);
    EXPECT_STR(field_of(nth(a->json, "inTheWay", 0), "holds"), "/tmp/x");
    EXPECT(count_orders(ORDER_CREATE) == 1 && count_orders(ORDER_FORGET) == 0);
    /* It goes on as if nothing had been. */
    server.report = CARRIED;
    EXPECT(call_acme("POST", "{}", "/sandboxes/%s/fork", id)->status == 201);
    clean_up();
}

TEST(all_are_made_or_none)
{
    char id[ID_LEN + 1];

    make_sandbox("{}", id);
    make_sandbox("{}", (char[ID_LEN + 1]){0});
    server.report = CARRIED;
    server.front.settings.tenant_sandboxes = 4;
    struct answer *a = call_acme("POST", "{\"count\":3}", "/sandboxes/%s/fork", id);
    EXPECT(a->status == 429 && strstr(message_of(a), "the limit is 4") != NULL);
    EXPECT(count_orders(ORDER_CHECKPOINT) == 0);
    EXPECT(call_acme("POST", "{\"count\":4}", "/sandboxes/%s/fork", id)->status == 400);

    server.front.settings.tenant_sandboxes = 100;
    server.fail[ORDER_CREATE] = -EAGAIN;
    a = call_acme("POST", "{\"count\":3}", "/sandboxes/%s/fork", id);
    EXPECT(a->status == 503);
    server.fail[ORDER_CREATE] = 0;
    EXPECT_STR(forgotten(), last_order(ORDER_CHECKPOINT)->snapshot);
    EXPECT(json_array_size(call_acme("GET", NULL, "/v2/sandboxes")->json) == 2);

    server.fail[ORDER_CHECKPOINT] = -EIO;
    EXPECT(call_acme("POST", "{\"count\":1}", "/sandboxes/%s/fork", id)->status == 500);
    server.fail[ORDER_CHECKPOINT] = 0;
    EXPECT(json_array_size(call_acme("GET", NULL, "/v2/sandboxes")->json) == 2);
    clean_up();
}

/* ---- replay ---------------------------------------------------------------------------------- */

struct replayed {
    bool came;
    int r;
    json_t *report;
};

static void on_replayed(void *arg, struct sandbox *b, int r, const struct sg_error *e,
                        const json_t *report)
{
    struct replayed *p = arg;

    (void)b;
    if (r < 0)
        printf("# %s\n", e->message);
    p->came = true;
    p->r = r;
    p->report = report ? json_deep_copy(report) : NULL;
}

static void run_cell(struct sandbox *b, uint32_t number, const char *code, const char *says)
{
    struct cell_history *t = cell_history_new(b, "", "javascript", code, strlen(code), NULL);

    cell_history_running(t, number);
    cell_history_add(t, CHAN_STDOUT, says, strlen(says));
    cell_history_end(t, NULL);
}

/* A sandbox from what b is, where cells ran that say what their code is, and one that does not. */
static void replay(struct sandbox *b, struct replayed *p)
{
    struct fork_ask ask = {.timeout_ms = 60000, .last = true, .replay = true};
    struct checkpoint *c = checkpoint_new(&server.front);
    struct sandbox_spec spec;

    run_cell(b, 1, "one", "one");
    run_cell(b, 2, "two", "2");
    c->kind = CHECKPOINT_FORK;
    c->contexts = json_pack("[{s:s,s:s,s:s,s:b,s:i,s:i,s:b,s:s}]", "id", FORK_KERNEL, "language",
                            "javascript", "cwd", "", "default", 1, "cells", 2, "pid", 9, "carried",
                            0, "reason", "threads");
    c->cells = replay_of(b, c->contexts);
    memcpy(c->sandbox_id, b->id, sizeof(c->sandbox_id));
    memcpy(c->tenant, b->spec.tenant, sizeof(c->tenant));
    id_random(c->name);
    checkpoint_add(c);
    spec_copy(&b->spec, &spec);
    sandbox_create_from(&server.front, &spec, c, &ask, on_replayed, p);
    checkpoint_unref(c);
}

static bool turn_until(const bool *came, const unsigned *counter, unsigned n)
{
    for (uint64_t end = clock_ns() + SERVER_DEADLINE_NS; clock_ns() < end;) {
        if (came ? *came : *counter >= n)
            return true;
        server_turn(-1);
    }
    return false;
}

TEST(cells_run_again_with_nothing_to_go_out)
{
    struct replayed p = {0};
    char id[ID_LEN + 1];

    make_sandbox("{}", id);
    replay(sandbox_find(&server.front, id), &p);
    EXPECT(turn_until(&p.came, NULL, 0) && p.r == 0);
    const json_t *kernel = nth(p.report, "kernels", 0), *diverged = nth(kernel, "diverged", 0);
    EXPECT_STR(field_of(kernel, "state"), "replayed");
    EXPECT(!json_object_get(kernel, "reason"));
    EXPECT(json_array_size(json_object_get(kernel, "diverged")) == 1);
    EXPECT(json_integer_value(json_object_get(diverged, "cell")) == 2);
    EXPECT_STR(field_of(diverged, "expected"), "2");
    EXPECT_STR(field_of(diverged, "got"), "two");
    EXPECT(!(last_order(ORDER_CREATE)->flags & ORDER_NETWORK));
    EXPECT(last_order(ORDER_POLICY)->flags & ORDER_NETWORK);
    /* Its time began when it was ready. */
    EXPECT(last_order(ORDER_DEADLINE)->deadline_ns < last_order(ORDER_CREATE)->deadline_ns);
    json_decref(p.report);
    clean_up();
}

static void on_nothing(void *arg, struct sandbox *b, int r, const struct sg_error *e)
{
    (void)arg, (void)b, (void)r, (void)e;
}

/* Whoever lists sandboxes finds one in which cells run again, and may do anything to it. */
TEST(what_is_not_ready_stays_closed_and_ends_when_it_is_paused)
{
    unsigned cells = fork_agents.cells, adopts = fork_agents.adopts;
    struct order_answer paused = {.tell = TELL_PAUSED, .state = STATE_PAUSED};
    struct replayed p = {0};
    char id[ID_LEN + 1];

    make_sandbox("{}", id);
    replay(sandbox_find(&server.front, id), &p);
    EXPECT(turn_until(NULL, &fork_agents.adopts, adopts + 1));
    fork_agents.slow = true;
    EXPECT(turn_until(NULL, &fork_agents.cells, cells + 1));
    memcpy(paused.id, last_order(ORDER_CREATE)->id, sizeof(paused.id));
    struct sandbox *b = sandbox_find(&server.front, paused.id);
    EXPECT(b && b->state == SANDBOX_RUNNING && !p.came);
    sandbox_apply_network(b, on_nothing, NULL);
    server_turn(-1);
    EXPECT(!(last_order(ORDER_POLICY)->flags & ORDER_NETWORK));
    sandbox_told_paused(&server.front, &paused);
    EXPECT(p.came && p.r == -EBUSY);
    EXPECT(!sandbox_find(&server.front, paused.id));
    server_turn(-1);
    EXPECT_STR(last_order(ORDER_KILL)->id, paused.id);
    json_decref(p.report);

    /* The same while it takes its kernels over. */
    p = (struct replayed){0};
    adopts = fork_agents.adopts;
    replay(sandbox_find(&server.front, id), &p);
    EXPECT(turn_until(NULL, &fork_agents.adopts, adopts + 1));
    memcpy(paused.id, last_order(ORDER_CREATE)->id, sizeof(paused.id));
    sandbox_told_paused(&server.front, &paused);
    EXPECT(p.came && p.r == -EBUSY && !sandbox_find(&server.front, paused.id));
    fork_agents.slow = false;
    json_decref(p.report);
    clean_up();
}

/* A kernel that has ended says that it ran cells: nobody is told of it, and none runs again. */
TEST(cells_of_what_has_ended_do_not_run_again)
{
    char id[ID_LEN + 1];

    make_sandbox("{}", id);
    struct sandbox *b = sandbox_find(&server.front, id);
    run_cell(b, 1, "one", "one");
    json_t *contexts =
        json_pack("[{s:s,s:s,s:s,s:b,s:i,s:i,s:b}]", "id", FORK_KERNEL, "language", "javascript",
                  "cwd", "", "default", 1, "cells", 1, "pid", 0, "carried", 0);
    EXPECT(!replay_of(b, contexts));
    json_decref(contexts);
    clean_up();
}

/* ---- checkpoints ----------------------------------------------------------------------------- */

static void take(const char *id, const char *body, char name[ID_LEN + 1])
{
    struct answer *a = call_acme("POST", body, "/sandboxes/%s/checkpoints", id);

    if (a->status != 201)
        printf("# %s\n", a->body);
    EXPECT(a->status == 201);
    snprintf(name, ID_LEN + 1, "%s",
             field_of(json_object_get(a->json, "checkpoint"), "checkpointId"));
    EXPECT(id_valid(name));
}

TEST(checkpoints_are_taken_listed_and_deleted)
{
    char id[ID_LEN + 1], one[ID_LEN + 1], two[ID_LEN + 1];

    make_sandbox("{}", id);
    server.report = CARRIED;
    take(id, "{\"label\":\"m1\"}", one);
    take(id, "{}", two);
    struct answer *a = call_acme("GET", NULL, "/sandboxes/%s/checkpoints", id);
    EXPECT(a->status == 200 && json_array_size(json_object_get(a->json, "checkpoints")) == 2);
    const json_t *first = nth(a->json, "checkpoints", 0), *second = nth(a->json, "checkpoints", 1);
    EXPECT_STR(field_of(first, "checkpointId"), one);
    EXPECT_STR(field_of(first, "messageId"), "m1");
    EXPECT(!json_object_get(second, "messageId") && !json_object_get(first, "parentId"));
    EXPECT_STR(field_of(second, "parentId"), one);
    EXPECT(json_is_true(json_object_get(first, "kernels")));
    EXPECT(json_integer_value(json_object_get(first, "memoryBytes")) == 1 << 20);
    EXPECT(json_is_false(json_object_get(first, "current")));
    EXPECT(json_is_true(json_object_get(second, "current")));
    EXPECT(strlen(field_of(first, "createdAt")) == 24);

    EXPECT(call_acme("DELETE", NULL, "/sandboxes/%s/checkpoints/%s", id, one)->status == 204);
    EXPECT_STR(forgotten(), one);
    EXPECT(call_acme("DELETE", NULL, "/sandboxes/%s/checkpoints/%s", id, one)->status == 404);
    EXPECT(call_acme("DELETE", NULL, "/sandboxes/%s/checkpoints/x", id)->status == 404);
    a = call_acme("GET", NULL, "/sandboxes/%s/checkpoints", id);
    EXPECT(!json_object_get(nth(a->json, "checkpoints", 0), "parentId"));

    EXPECT(call_acme("POST", "{\"label\":7}", "/sandboxes/%s/checkpoints", id)->status == 400);
    server.front.settings.checkpoints = false;
    EXPECT(call_acme("POST", "{}", "/sandboxes/%s/checkpoints", id)->status == 501);
    EXPECT(call_acme("POST", "{}", "/sandboxes/%s/fork", id)->status == 201);
    server.front.settings.checkpoints = true;
    EXPECT(call_acme("DELETE", NULL, "/sandboxes/%s", id)->status == 204);
    EXPECT(checkpoint_find(&server.front, server.acme_tenant.id, two) == NULL);
    clean_up();
}

/* Less than was asked for is no success, unless it was said that it will do. */
TEST(variables_that_are_lost)
{
    struct order_answer lost = {.tell = TELL_KERNELS_LOST};
    char id[ID_LEN + 1], one[ID_LEN + 1], two[ID_LEN + 1];

    make_sandbox("{}", id);
    server.report = CARRIED;
    take(id, "{\"label\":\"m1\"}", one);
    take(id, "{\"label\":\"m2\"}", two);
    memcpy(lost.snapshot, one, sizeof(one));
    checkpoint_told_lost(&server.front, &lost);

    size_t rewinds = count_orders(ORDER_REWIND);
    struct answer *a = call_acme("POST", "{\"label\":\"m1\"}", "/sandboxes/%s/rewind", id);
    EXPECT(a->status == 409 && count_orders(ORDER_REWIND) == rewinds);
    EXPECT_STR(field_of(a->json, "reason"), "state_lost");
    EXPECT(call_acme("POST", "{\"label\":\"m2\"}", "/sandboxes/%s/rewind", id)->status == 200);
    EXPECT(last_order(ORDER_REWIND)->flags & ORDER_WHOLE);

    server.report = NULL; /* what the warden has of it: no kernels */
    a = call_acme("POST", "{\"label\":\"m1\",\"accept\":\"files\"}", "/sandboxes/%s/rewind", id);
    EXPECT(a->status == 200 && !(last_order(ORDER_REWIND)->flags & ORDER_WHOLE));
    EXPECT_STR(field_of(nth(a->json, "kernels", 0), "state"), "fresh");
    EXPECT(strstr(field_of(nth(a->json, "kernels", 0), "reason"), "memory was needed"));
    EXPECT(call_acme("POST", "{\"label\":\"m2\",\"accept\":\"all\"}", "/sandboxes/%s/rewind", id)
               ->status == 400);
    /* They end on the way, and the warden says nothing of it. */
    a = call_acme("POST", "{\"label\":\"m2\"}", "/sandboxes/%s/rewind", id);
    EXPECT(a->status == 409);
    EXPECT_STR(field_of(a->json, "reason"), "state_lost");
    clean_up();
}

TEST(rewind_goes_back)
{
    char id[ID_LEN + 1], other[ID_LEN + 1], one[ID_LEN + 1], two[ID_LEN + 1], three[ID_LEN + 1];

    make_sandbox("{}", id);
    make_sandbox("{}", other);
    server.report = CARRIED;
    take(id, "{\"label\":\"m1\"}", one);
    take(id, "{\"label\":\"m2\"}", two);
    unsigned adopts = fork_agents.adopts;
    struct answer *a = call_acme("POST", "{\"label\":\"m1\"}", "/sandboxes/%s/rewind", id);
    EXPECT(a->status == 200 && fork_agents.adopts == adopts + 1);
    EXPECT_STR(last_order(ORDER_REWIND)->snapshot, one);
    EXPECT_STR(field_of(json_object_get(a->json, "checkpoint"), "checkpointId"), one);
    EXPECT(json_is_true(json_object_get(json_object_get(a->json, "checkpoint"), "current")));
    EXPECT_STR(field_of(nth(a->json, "kernels", 0), "state"), "carried");
    take(id, "{\"label\":\"m2\"}", three);
    a = call_acme("GET", NULL, "/sandboxes/%s/checkpoints", id);
    EXPECT(json_array_size(json_object_get(a->json, "checkpoints")) == 3);
    EXPECT_STR(field_of(nth(a->json, "checkpoints", 2), "parentId"), one);
    /* The newest of a label is meant. */
    EXPECT(call_acme("POST", "{\"label\":\"m2\"}", "/sandboxes/%s/rewind", id)->status == 200);
    EXPECT_STR(last_order(ORDER_REWIND)->snapshot, three);

    /* One without a label is not meant by a label that is none. */
    take(id, "{}", three);
    EXPECT(call_acme("POST", "{\"label\":\"\"}", "/sandboxes/%s/rewind", id)->status == 400);
    EXPECT(call_acme("POST", "{}", "/sandboxes/%s/rewind", id)->status == 400);
    EXPECT(
        call_acme("POST", "{\"label\":\"m2\",\"checkpointId\":\"x\"}", "/sandboxes/%s/rewind", id)
            ->status == 400);
    EXPECT(call_acme("POST", "{\"label\":\"m9\"}", "/sandboxes/%s/rewind", id)->status == 404);
    char body[128];
    snprintf(body, sizeof(body), "{\"checkpointId\":\"%s\"}", one);
    EXPECT(call_acme("POST", body, "/sandboxes/%s/rewind", other)->status == 404);
    server.fail[ORDER_REWIND] = -EOWNERDEAD; /* the front has not heard of it yet */
    a = call_acme("POST", body, "/sandboxes/%s/rewind", id);
    EXPECT(a->status == 409 && strstr(message_of(a), "memory was needed") != NULL);
    EXPECT_STR(field_of(a->json, "reason"), "state_lost");
    server.fail[ORDER_REWIND] = -EALREADY;
    EXPECT(call_acme("POST", body, "/sandboxes/%s/rewind", id)->status == 409);
    server.fail[ORDER_REWIND] = 0;
    clean_up();
}

static void on_taken(void *arg, struct checkpoint *c, int r, const struct sg_error *e,
                     const json_t *report)
{
    (void)c, (void)e, (void)report;
    *(int *)arg = r;
}

/* Whoever waits for a cell does not keep others from ending it. */
TEST(a_checkpoint_that_waits_gives_way)
{
    struct checkpoint_ask ask = {.kind = CHECKPOINT_FORK, .wait_ms = 60000};
    char id[ID_LEN + 1], one[ID_LEN + 1];
    int r = 1;

    make_sandbox("{}", id);
    server.report = CARRIED;
    take(id, "{\"label\":\"m1\"}", one);
    struct sandbox *b = sandbox_find(&server.front, id);
    for (int i = 0; i < 2; i++) {
        unsigned holds = fork_agents.holds;

        fork_agents.slow = true;
        r = 1;
        sandbox_checkpoint(b, &ask, on_taken, &r);
        EXPECT(turn_until(NULL, &fork_agents.holds, holds + 1) && r == 1);
        fork_agents.slow = false;
        struct answer *a = i == 0
                               ? call_acme("POST", "{\"label\":\"m1\"}", "/sandboxes/%s/rewind", id)
                               : call_acme("POST", "{}", "/sandboxes/%s/pause", id);
        EXPECT(a->status == (i == 0 ? 200 : 204) && r == -EBUSY);
    }
    clean_up();
}

TEST(what_was_thinned_is_told_from_what_never_was)
{
    struct settings *s = &server.front.settings;
    char id[ID_LEN + 1], name[ID_LEN + 1], body[64];

    make_sandbox("{}", id);
    server.report = CARRIED;
    s->checkpoint_keep = s->checkpoint_max = 2;
    for (int i = 1; i <= 3; i++) {
        snprintf(body, sizeof(body), "{\"label\":\"m%d\"}", i);
        take(id, body, name);
    }
    struct answer *a = call_acme("GET", NULL, "/sandboxes/%s/checkpoints", id);
    EXPECT(json_array_size(json_object_get(a->json, "checkpoints")) == 2);
    a = call_acme("POST", "{\"label\":\"m1\"}", "/sandboxes/%s/rewind", id);
    EXPECT(a->status == 410 && strstr(message_of(a), "thinned") != NULL);
    EXPECT(call_acme("POST", "{\"label\":\"m4\"}", "/sandboxes/%s/rewind", id)->status == 404);
    EXPECT(call_acme("POST", "{\"label\":\"m3\"}", "/sandboxes/%s/rewind", id)->status == 200);

    /* Memory: of the same sandbox the oldest go; of others none do. */
    s->checkpoint_keep = s->checkpoint_max = 20;
    s->checkpoint_memory = 2 << 20;
    take(id, "{\"label\":\"m4\"}", name);
    a = call_acme("GET", NULL, "/sandboxes/%s/checkpoints", id);
    EXPECT_STR(field_of(nth(a->json, "checkpoints", 0), "messageId"), "m3");
    char other[ID_LEN + 1];
    make_sandbox("{}", other);
    a = call_acme("POST", "{}", "/sandboxes/%s/checkpoints", other);
    EXPECT(a->status == 429 && strstr(message_of(a), "checkpoint_memory") != NULL);
    settings_init(s);
    clean_up();
}
