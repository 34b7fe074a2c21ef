#include "front/core/workload.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/json/values.h"
#include "lib/uv/handle.h"
#include "front/core/guard.h"
#include "front/core/reply.h"
#include "front/store/dbworker.h"
#include "front/store/store.h"
#include "lib/log/log.h"

#define TICK_MS       1000
#define ASK_EVERY_MS  15000
#define ANSWER_MAX    (64u * 1024)
#define SPIFFE_ID_MAX 768
#define CACHED        "public, max-age=300"

/* One for each process. */
static struct workload {
    struct front *front;
    struct dbworker *dbworker;
    uv_timer_t timer;
    bool asked;
    int64_t asked_ms; /* when the guard was asked last, and has answered; 0: never */
    json_t *own;      /* array: the guard's keys; NULL: not known yet */
    json_t *others;   /* array, perhaps with ours: what the database has */
} state;

const char *workload_issuer(const struct front *f)
{
    if (f->settings.identity_issuer[0])
        return f->settings.identity_issuer;
    return f->settings.public_url[0] ? f->settings.public_url : f->url;
}

/* ---- what a token says ----------------------------------------------------------------------- */

/* A segment of a SPIFFE ID: other characters become underscores. */
static void add_segment(struct strbuf *out, const char *key, const char *value)
{
    strbuf_addf(out, "/%s/", key);
    for (; *value; value++) {
        bool plain = (*value >= 'a' && *value <= 'z') || (*value >= 'A' && *value <= 'Z') ||
                     (*value >= '0' && *value <= '9') || strchr("._-", *value);

        strbuf_addch(out, plain ? *value : '_');
    }
}

/* The trust domain is the issuer's host. */
static void add_spiffe_id(struct strbuf *out, const char *issuer, const char *tenant,
                          const char *template_id, const char *id)
{
    const char *host = strstr(issuer, "://");

    host = host ? host + 3 : issuer;
    strbuf_addf(out, "spiffe://%.*s", (int)strcspn(host, ":/"), host);
    add_segment(out, "tenant", tenant);
    add_segment(out, "template", template_id);
    add_segment(out, "sandbox", id);
}

json_t *workload_document(struct front *f, const char *id, const struct sandbox_spec *s)
{
    AUTO(strbuf_done) struct strbuf spiffe_id = strbuf_upto(SPIFFE_ID_MAX);
    struct store_tenant tenant;
    const char *name = s->tenant, *template = s->alias[0] ? s->alias : s->template_id;

    if (json_object_size(s->tokens) == 0)
        return NULL;
    if (f->store && store_tenant_get(f->store, s->tenant, &tenant) == 0)
        name = tenant.name;
    add_spiffe_id(&spiffe_id, workload_issuer(f), name, template, id);
    return json_pack("{s:s, s:s, s:s, s:s, s:O}", "issuer", workload_issuer(f), "spiffeId",
                     spiffe_id.buf, "tenant", name, "template", template, "tokens", s->tokens);
}

/* ---- keys ------------------------------------------------------------------------------------ */

static void take(json_t **to, json_t *keys)
{
    json_decref(*to);
    *to = keys;
}

static void on_shared(void *arg UNUSED, const struct dbworker_rows *rows)
{
    json_t *keys;

    state.asked = false;
    if (rows->r < 0 || rows->n != 1 || rows->columns != 1 || !rows->cells[0])
        return; /* what was known stays known */
    keys = json_loads(rows->cells[0], JSON_REJECT_DUPLICATES, NULL);
    if (json_is_array(keys))
        take(&state.others, keys);
    else
        json_decref(keys);
}

static void share(void)
{
    char *text = json_dumps(state.own, JSON_COMPACT);
    const char *const params[] = {text};

    state.asked = true;
    dbworker_call(state.dbworker, "SELECT sandglass.share_identity_keys($1::jsonb)", NULL, params,
                  1, on_shared, NULL);
    free(text);
}

static void on_keys(void *arg UNUSED, int r, const void *payload, size_t len, int fd)
{
    json_t *told = r == 0 ? json_loadb(payload, len, JSON_REJECT_DUPLICATES, NULL) : NULL;
    json_t *keys = json_object_get(told, "keys");

    close_p(&fd);
    state.asked = false;
    if (json_is_array(keys)) {
        take(&state.own, json_incref(keys));
        state.asked_ms = clock_wall_ms();
        if (state.dbworker)
            share();
    }
    json_decref(told);
}

static void on_tick(uv_timer_t *t UNUSED)
{
    int64_t now = clock_wall_ms();

    if (state.asked || (state.asked_ms <= now && now - state.asked_ms < ASK_EVERY_MS))
        return;
    state.asked = true;
    guard_ask(state.front, ASK_KEYS, NULL, NULL, NULL, 0, on_keys, NULL);
}

void workload_start(struct front *f, struct dbworker *dbworker)
{
    state.front = f;
    state.dbworker = dbworker;
    timer_every(f->loop, &state.timer, TICK_MS, on_tick, NULL);
    on_tick(&state.timer);
}

/* ---- the two addresses ----------------------------------------------------------------------- */

static bool is_listed(const json_t *list, const char *kid)
{
    const json_t *key;
    size_t i;

    json_array_foreach(list, i, key) if (strcmp(jr_text(key, "kid"), kid) == 0) return true;
    return false;
}

static void put_key(struct json *j, const json_t *key)
{
    static const char *const fixed[][2] = {
        {"kty", "EC"}, {"crv", "P-256"}, {"use", "sig"}, {"alg", "ES256"}};
    static const char *const own[] = {"kid", "x", "y"};

    jw_object_begin(j);
    for (size_t i = 0; i < ARRAY_SIZE(fixed); i++)
        jw_string(jw_key(j, fixed[i][0]), fixed[i][1]);
    for (size_t i = 0; i < ARRAY_SIZE(own); i++)
        jw_string(jw_key(j, own[i]), jr_text(key, own[i]));
    jw_object_end(j);
}

static void put_keys(struct json *j, const json_t *keys, const json_t *without)
{
    int64_t now_s = clock_wall_ms() / 1000;
    const json_t *key;
    size_t i;

    json_array_foreach(keys, i, key) if (jr_int(key, "until") > now_s &&
                                         !is_listed(without, jr_text(key, "kid"))) put_key(j, key);
}

static void answer_keys(struct http_req *req)
{
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(ANSWER_MAX);
    struct json j = {.out = &out};

    if (!state.own) {
        http_add_header(req, "Retry-After", "1");
        reply_error(req, 503, "the guard, which has the keys, is being started: try again");
        return;
    }
    jw_object_begin(&j);
    jw_array_begin(jw_key(&j, "keys"));
    put_keys(&j, state.own, NULL);
    put_keys(&j, state.others, state.own);
    jw_array_end(&j);
    jw_object_end(&j);
    http_add_header(req, "Cache-Control", CACHED);
    reply_json(req, 200, &out);
}

static void put_list(struct json *j, const char *name, const char *const *values, size_t n)
{
    jw_array_begin(jw_key(j, name));
    for (size_t i = 0; i < n; i++)
        jw_string(j, values[i]);
    jw_array_end(j);
}
#define PUT_LIST(j, name, ...)                            \
    put_list(j, name, (const char *const[]){__VA_ARGS__}, \
             sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

static void answer_configuration(struct http_req *req)
{
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(ANSWER_MAX);
    const char *issuer = workload_issuer(front_of(req));
    struct json j = {.out = &out};
    char keys[sizeof(front_of(req)->settings.identity_issuer) + 64];

    if (!issuer[0]) {
        reply_error(req, 404, "the server does not know its own address: set identity_issuer");
        return;
    }
    snprintf(keys, sizeof(keys), "%s" WORKLOAD_PREFIX "jwks.json", issuer);
    jw_object_begin(&j);
    jw_string(jw_key(&j, "issuer"), issuer);
    jw_string(jw_key(&j, "jwks_uri"), keys);
    PUT_LIST(&j, "response_types_supported", "id_token");
    PUT_LIST(&j, "subject_types_supported", "public");
    PUT_LIST(&j, "id_token_signing_alg_values_supported", "ES256");
    PUT_LIST(&j, "claims_supported", "iss", "sub", "aud", "iat", "nbf", "exp", "jti", "sandbox_id",
             "tenant_id", "tenant", "template");
    jw_object_end(&j);
    http_add_header(req, "Cache-Control", CACHED);
    reply_json(req, 200, &out);
}

void workload_request(struct http_req *req)
{
    const char *what = req->path + strlen(WORKLOAD_PREFIX);
    bool keys = strcmp(what, "jwks.json") == 0;

    if (!keys && strcmp(what, "openid-configuration") != 0) {
        reply_error(req, 404, "no such address: there are openid-configuration and jwks.json");
    } else if (req->method != HTTP_M_GET) {
        http_add_header(req, "Allow", "GET");
        reply_error(req, 405, "%s: only GET", req->path);
    } else if (keys) {
        answer_keys(req);
    } else {
        answer_configuration(req);
    }
}
