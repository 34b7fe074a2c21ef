#include "front/e2b/accounts.h"

#include <string.h>

#include "front/e2b/request.h"
#include "front/e2b/shape.h"

#define ANSWER_MAX  (8u * 1024 * 1024)
#define TOKENS_MAX  1000                  /* of a tenant, over HTTP */
#define CLI_KEY     "CLI login/configure" /* the name that E2B gives to the keys of GET /teams */
#define MASK_HEAD   2
#define MASK_TAIL   4
#define DEFAULT_ONE "default"

/* ---- shapes ---------------------------------------------------------------------------------- */

/* What of a token may be shown, from its hint: "e2b_12ab...89ef". */
static void write_mask(struct json *j, const struct store_key *k)
{
    const char *prefix = store_token_prefix(k->kind);
    size_t len = strlen(prefix), hint = strlen(k->hint);
    const char *head = hint >= len + MASK_HEAD ? k->hint + len : "";
    const char *tail = hint >= MASK_TAIL ? k->hint + hint - MASK_TAIL : "";

    jw_object_begin(jw_key(j, "mask"));
    jw_string(jw_key(j, "prefix"), prefix);
    jw_u64(jw_key(j, "valueLength"), STORE_KEY_LEN - strlen(store_token_prefix(STORE_KEY)));
    jw_bytes(jw_key(j, "maskedValuePrefix"), head, strnlen(head, MASK_HEAD));
    jw_string(jw_key(j, "maskedValueSuffix"), tail);
    jw_object_end(j);
}

static void write_members(struct json *j, const struct store_key *k)
{
    jw_string(jw_key(j, "id"), k->id);
    jw_string(jw_key(j, "name"), k->name);
    write_mask(j, k);
    shape_time_key(j, "createdAt", k->created_ms);
    if (k->kind != STORE_KEY)
        return;
    jw_string(jw_key(j, "createdBy"), NULL);
    if (k->used_ms > 0)
        shape_time_key(j, "lastUsed", k->used_ms);
    else
        jw_string(jw_key(j, "lastUsed"), NULL);
}

/* ---- making ---------------------------------------------------------------------------------- */

static int make(struct e2b_req *q, enum store_token kind, const char *name,
                char ret[STORE_TOKEN_MAX + 1], struct store_key *ret_info, struct sg_error *e)
{
    struct store *s = q->front->store;
    uint32_t n = 0;
    int r = store_tokens_count(s, q->tenant.id, kind, &n, e);

    if (r == 0 && n >= TOKENS_MAX)
        r = err_set(e, SG_ERR_LIMIT, -EDQUOT, "the team has %u keys of this kind: delete some", n);
    return r < 0 ? r : store_token_create(s, kind, q->tenant.id, name, ret, ret_info, e);
}

/* `member`: what the answer calls the token itself. */
static void create(struct e2b_req *q, enum store_token kind, const char *member)
{
    const char *name = field_text(&q->in, "name", 1024, NULL);
    char token[STORE_TOKEN_MAX + 1];
    struct store_key info;
    struct sg_error e;
    struct reply r;

    if (!name)
        fields_invalid(&q->in, "Error when parsing request: 'name' is required");
    if (!e2b_read(q))
        return;
    if (make(q, kind, name, token, &info, &e) < 0) {
        reply_sg_error(q->http, &e);
        return;
    }
    struct json *j = reply_begin(&r, ANSWER_MAX);
    write_members(j, &info);
    jw_string(jw_key(j, member), token);
    reply_send(q, 201, &r);
    explicit_bzero(token, sizeof(token));
}

/* Ends one of the tenant's tokens. */
static void end(struct e2b_req *q, enum store_token kind, const char *id)
{
    struct sg_error e;

    if (store_token_end(q->front->store, q->tenant.id, kind, id, &e) < 0)
        reply_sg_error(q->http, &e);
    else
        reply_empty(q->http, 204);
}

/* ---- keys ------------------------------------------------------------------------------------ */

static bool add_key(const struct store_key *k, void *arg)
{
    struct json *j = arg;

    if (k->kind != STORE_KEY || k->revoked_ms > 0)
        return true;
    jw_object_begin(j);
    write_members(j, k);
    jw_object_end(j);
    return true;
}

void keys_list_of(struct e2b_req *q)
{
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(ANSWER_MAX);
    struct json j = {.out = &out};
    struct sg_error e;

    jw_array_begin(&j);
    int r = store_keys_each(q->front->store, q->tenant.id, add_key, &j, &e);
    jw_array_end(&j);
    if (r < 0)
        reply_sg_error(q->http, &e);
    else
        reply_json(q->http, 200, &out);
}

void keys_list(struct http_req *req)
{
    keys_list_of(e2b_of(req));
}

void key_create_for(struct e2b_req *q)
{
    create(q, STORE_KEY, "key");
}

void key_create(struct http_req *req)
{
    key_create_for(e2b_of(req));
}

void key_rename(struct http_req *req)
{
    struct e2b_req *q = e2b_of(req);
    const char *name = field_text(&q->in, "name", 1024, NULL);
    struct sg_error e;

    if (!name)
        fields_invalid(&q->in, "Error when parsing request: 'name' is required");
    if (!e2b_read(q))
        return;
    if (store_token_rename(q->front->store, q->tenant.id, STORE_KEY, req->params[0], name, &e) < 0)
        reply_sg_error(req, &e);
    else
        reply_empty(req, 200);
}

void key_end(struct e2b_req *q, const char *id)
{
    end(q, STORE_KEY, id);
}

void key_delete(struct http_req *req)
{
    key_end(e2b_of(req), req->params[0]);
}

void access_token_create(struct http_req *req)
{
    create(e2b_of(req), STORE_ACCESS, "token");
}

void access_token_delete(struct http_req *req)
{
    end(e2b_of(req), STORE_ACCESS, req->params[0]);
}

/* ---- teams ----------------------------------------------------------------------------------- */

static void write_team(struct json *j, const struct store_tenant *t, const char *key)
{
    jw_object_begin(j);
    jw_string(jw_key(j, "teamID"), t->id);
    jw_string(jw_key(j, "name"), t->name);
    jw_string(jw_key(j, "apiKey"), key);
    jw_bool(jw_key(j, "isDefault"), strcmp(t->name, DEFAULT_ONE) == 0);
    jw_object_end(j);
}

static bool add_team(const struct store_tenant *t, void *arg)
{
    write_team(arg, t, "");
    return true;
}

/* An access token's own team, with a new key of it, as E2B's command line wants it. The operator
 * sees all teams, and makes keys with POST. */
void teams_list(struct http_req *req)
{
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(ANSWER_MAX);
    char key[STORE_TOKEN_MAX + 1] = "";
    struct e2b_req *q = e2b_of(req);
    struct json j = {.out = &out};
    struct sg_error e;
    int r;

    jw_array_begin(&j);
    if (q->tenant.id[0]) {
        r = make(q, STORE_KEY, CLI_KEY, key, NULL, &e);
        if (r == 0)
            write_team(&j, &q->tenant, key);
    } else {
        r = store_tenants_each(q->front->store, add_team, &j, &e);
    }
    jw_array_end(&j);
    if (r < 0)
        reply_sg_error(req, &e);
    else
        reply_json(req, 200, &out);
    explicit_bzero(key, sizeof(key));
}
