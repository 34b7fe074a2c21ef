/* JSON bodies of the control plane. The first byte chooses the route. What is accepted must come
 * out again as JSON, and be as the rest of the server relies on. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "front/builds/steps.h"
#include "front/e2b/field.h"
#include "front/e2b/network.h"
#include "front/e2b/shape.h"
#include "front/e2b/spec.h"

#define DAY_MS (24ull * 3600 * 1000)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct front front;

static void check_error(const struct sg_error *e)
{
    assert(e->kind == SG_ERR_INVALID || e->kind == SG_ERR_UNSUPPORTED);
    assert(e->code < 0 && e->message[0] != '\0');
}

/* As GET would answer. */
static void check_shape(const struct sandbox *b)
{
    struct strbuf out;
    struct json j;

    strbuf_init(&out, 16u << 20);
    jw_init(&j, &out);
    shape_detail(&j, b);
    json_t *v = json_loadb(out.buf, out.len, JSON_REJECT_DUPLICATES, NULL);
    assert(v && json_is_object(json_object_get(v, "lifecycle")));
    assert(!json_object_get(json_object_get(json_object_get(v, "network"), "egressProxy"),
                            "password"));
    json_decref(v);
    strbuf_done(&out);
}

static void fuzz_create(const json_t *body, enum spec_version version)
{
    struct create_request c;
    struct sandbox b = {.front = &front, .id = "abcdefghij0123456789", .state = SANDBOX_PAUSED};
    struct sg_error e = {0};

    if (create_request_parse(body, version, &front.settings, &c, &e) < 0) {
        check_error(&e);
        return;
    }
    assert(c.timeout_ms >= 1 && c.timeout_ms <= DAY_MS && c.template_name);
    assert(json_is_object(c.spec.envs));
    assert(version == SPEC_V1 || c.spec.envd_token[0]);
    assert(network_is_public(c.spec.network) == !c.spec.traffic_token[0]);
    assert(!c.spec.traffic_token[0] || c.spec.envd_token[0]);
    b.spec = c.spec;
    check_shape(&b);
    sandbox_spec_done(&c.spec);
}

static void fuzz_network(const json_t *body)
{
    json_t *old = json_pack("{s:b,s:[s]}", "allowPublicTraffic", 0, "denyOut", "1.1.1.1");
    json_t *network = NULL;
    struct sg_error e = {0};

    if (network_update(body, old, &network, &e) < 0)
        check_error(&e);
    else
        assert(!network_is_public(network));
    json_decref(network);
    json_decref(old);
}

static void fuzz_numbers(const json_t *body)
{
    struct sg_error e = {0};
    struct fields in = request_fields(body, &e);

    assert(field_timeout(&in, 0, 300, DAY_MS) <= DAY_MS || in.r < 0);
    field_int(&in, "count", 1);
    if (in.r < 0)
        check_error(&e);
}

/* Steps of a build: what was accepted can be carried out, or is refused with a reason. */
static void fuzz_steps(const json_t *body)
{
    const json_t *steps = json_object_get(body, "steps"), *one;
    char key[STORE_KEY_HEX + 1] = "";
    struct step_state state;
    struct sg_error e = {0};
    size_t i;

    if (!json_is_array(steps) || steps_check(steps, &e) < 0) {
        assert(!json_is_array(steps) || (e.code < 0 && e.message[0]));
        return;
    }
    step_state_init(&state, NULL);
    json_array_foreach(steps, i, one)
    {
        AUTO(strbuf_done) struct strbuf text = strbuf_upto(1024);
        char below[STORE_KEY_HEX + 1];
        struct step_copy copy;
        struct step s;

        assert(step_read(one, &s, &e) == 0);
        step_text(&s, &text);
        assert(!text.truncated && !strchr(text.buf, '\n'));
        memcpy(below, key, sizeof(below));
        step_key(below, &s, "", key);
        assert(strcmp(below, key) != 0);
        step_apply(&s, &state, &e);
        assert(state.workdir[0] == '\0' || state.workdir[0] == '/');
        if (s.type == STEP_COPY && step_copy(&s, &state, &copy, &e) == 0)
            assert(copy.dest[0] == '/' && copy.user[0] && copy.group[0]);
    }
    step_state_done(&state);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    settings_init(&front.settings);
    front.settings.max_timeout_ms = DAY_MS;
    json_t *body = json_loadb((const char *)data + 1, size - 1, JSON_REJECT_DUPLICATES, NULL);
    if (json_is_object(body)) {
        if (data[0] == '1')
            fuzz_create(body, SPEC_V1);
        else if (data[0] == 'n')
            fuzz_network(body);
        else if (data[0] == 't')
            fuzz_numbers(body);
        else if (data[0] == 's')
            fuzz_steps(body);
        else
            fuzz_create(body, SPEC_V2);
    }
    json_decref(body);
    return 0;
}
