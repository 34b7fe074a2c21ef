#include "front/e2b/secrets.h"

#include "front/e2b/network.h"
#include "front/e2b/page.h"
#include "front/e2b/shape.h"
#include "front/core/guard.h"
#include "front/core/secret_text.h"
#include "front/store/secrets.h"
#include "lib/vault/vault.h"

#define BODY_MAX   (VAULT_SECRET_MAX * 6 + 128 * 1024) /* every byte may be escaped */
#define ANSWER_MAX (8u * 1024 * 1024)                  /* a page of the largest metadata */
#define REF_MAX    64                                  /* of a name or an id */

/* ---- answers --------------------------------------------------------------------------------- */

static void write_secret(struct json *j, const struct store_vault *v)
{
    json_t *metadata = json_loads(v->metadata, 0, NULL);

    jw_object_begin(j);
    jw_string(jw_key(j, "secretID"), v->id);
    jw_string(jw_key(j, "name"), v->name);
    jw_i64(jw_key(j, "currentVersion"), v->version);
    jw_key(j, "metadata");
    if (metadata)
        shape_value(j, metadata);
    else
        jw_raw(j, "{}", 2);
    shape_time_key(j, "createdAt", v->created_ms);
    shape_time_key(j, "updatedAt", v->updated_ms);
    jw_object_end(j);
    json_decref(metadata);
}

/* Answers in the same words whether the secret is unknown or another tenant's. */
static void fail(struct e2b_req *q, const char *ref, const struct sg_error *e)
{
    if (e->code == -ENOENT)
        reply_error(q->http, 404, "Secret \"%.*s\" doesn't exist or you don't have access to it",
                    REF_MAX, ref);
    else if (e->code == -EEXIST)
        reply_error(q->http, 409, "Secret \"%.*s\" already exists", REF_MAX, ref);
    else
        reply_sg_error(q->http, e);
}

static void write_one(const struct store_vault *v, void *arg)
{
    write_secret(arg, v);
}

static void reply_secret(struct e2b_req *q, int status, const char *ref)
{
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(ANSWER_MAX);
    struct sg_error e;
    struct json j = {.out = &out};

    if (store_vault_get(q->front->store, q->tenant.id, ref, write_one, &j, &e) < 0)
        fail(q, ref, &e);
    else
        reply_json(q->http, status, &out);
}

/* ---- which secret ---------------------------------------------------------------------------- */

/* Reads the name or id from the URL. Case does not matter in names; ids have lower case only. */
static void ref_of(const struct e2b_req *q, char ret[REF_MAX + 1])
{
    const char *given = q->http->params[0];

    /* A name that is too long names no secret, and "" gives the answer that says so. */
    if (secret_name(given, strlen(given), ret) < 0)
        snprintf(ret, REF_MAX + 1, "%s", strlen(given) <= REF_MAX ? given : "");
}

struct named {
    char id[STORE_VAULT_ID_LEN + 1], name[STORE_NAME_MAX + 1];
};

static void take_named(const struct store_vault *v, void *arg)
{
    struct named *n = arg;

    memcpy(n->id, v->id, sizeof(n->id));
    memcpy(n->name, v->name, sizeof(n->name));
}

/* Finds the secret that the URL names. False: answered. */
static bool find(struct e2b_req *q, struct named *ret)
{
    char ref[REF_MAX + 1];
    struct sg_error e;

    ref_of(q, ref);
    if (store_vault_get(q->front->store, q->tenant.id, ref, take_named, ret, &e) == 0)
        return true;
    fail(q, q->http->params[0], &e);
    return false;
}

static void changed(struct front *f, const char *tenant, const char *name)
{
    if (f->on_secret_changed)
        f->on_secret_changed(f, tenant, name);
}

/* ---- create and update ----------------------------------------------------------------------- */

struct saving {
    struct e2b_req *q;
    struct named secret; /* without an id: a new secret */
    struct secret value;
    char *metadata; /* NULL: unchanged */
};

static void saving_free(struct saving *s)
{
    secret_done(&s->value);
    free(s->metadata);
    free(s);
}

/* Reads the value. It becomes part of a header, so it must be one line. */
static void read_value(struct fields *in, struct secret *ret)
{
    const char *value = field_text(in, "value", VAULT_SECRET_MAX, "");

    if (!value[0])
        fields_invalid(in, "Invalid value: it must not be empty");
    if (!header_value_valid(value))
        fields_invalid(in,
                       "Invalid value: it is put into headers, which have no line breaks and no "
                       "control characters");
    if (!fields_ok(in))
        return;
    int r = secret_set(ret, value, strlen(value));
    if (r < 0)
        fields_fail(in, SG_ERR_LIMIT, r, "no memory can be locked for the secret now");
}

static void read_metadata(struct fields *in, char **ret)
{
    const json_t *metadata = field_texts(in, "metadata", SECRET_METADATA_MAX);

    if (metadata)
        fields_check(in, secret_metadata_check(metadata, in->e));
    if (metadata && fields_ok(in))
        *ret = json_dumps(metadata, JSON_COMPACT);
}

static void read_name(struct fields *in, char ret[STORE_NAME_MAX + 1])
{
    const char *name = field_text(in, "name", 1024, "");

    if (secret_name(name, strlen(name), ret) < 0)
        fields_invalid(
            in, "Invalid name: 1 to %d letters, digits, '-' and '_', not beginning with 'sec_'",
            SECRET_NAME_MAX);
}
_Static_assert(SECRET_NAME_MAX == STORE_NAME_MAX, "names fit");

static int seal(struct saving *s, const uint8_t *public_key, struct strbuf *out, struct sg_error *e)
{
    char purpose[ID_LEN + STORE_NAME_MAX + 2];

    snprintf(purpose, sizeof(purpose), "%s/%s", s->q->tenant.id, s->secret.name);
    return vault_seal(public_key, purpose, s->value.bytes, s->value.len, out, e);
}

static int store_sealed(struct saving *s, const uint8_t *public_key, struct sg_error *e)
{
    AUTO(strbuf_done) struct strbuf sealed = strbuf_upto(VAULT_SEALED_MAX);
    struct store *store = s->q->front->store;
    const char *tenant = s->q->tenant.id;

    int r = seal(s, public_key, &sealed, e);
    if (r < 0)
        return r;
    return s->secret.id[0]
               ? store_vault_update(store, tenant, s->secret.id, s->metadata, sealed.buf, e)
               : store_vault_add(store, tenant, s->secret.name, s->metadata ? s->metadata : "{}",
                                 sealed.buf, s->secret.id, e);
}

/* Called when the guard's public key has come: seals and stores the value. */
static void on_public(void *arg, int r, const void *payload, size_t len, int fd)
{
    struct saving *s = arg;
    struct e2b_req *q = s->q;
    struct sg_error e;
    bool is_new = !s->secret.id[0];

    close_p(&fd);
    /* A client that is gone does not know whether the value was stored, and will ask again. */
    if (!e2b_back(q)) {
        saving_free(s);
        return;
    }
    if (r == 0 && len == VAULT_PUBLIC_LEN)
        r = store_sealed(s, payload, &e);
    else
        r = err_set(&e, SG_ERR_LIMIT, -EAGAIN,
                    "The guard, which seals secrets, is not running now: try again");
    if (r < 0) {
        fail(q, s->secret.name, &e);
    } else {
        reply_secret(q, is_new ? 201 : 200, s->secret.id);
        changed(q->front, q->tenant.id, s->secret.name);
    }
    saving_free(s);
}

/* Takes the value and metadata out of the body, and stores them once the guard's key has come. */
static void save(struct e2b_req *q, const struct named *which)
{
    struct saving *s = NEW(struct saving, .q = q);

    if (which)
        s->secret = *which;
    else
        read_name(&q->in, s->secret.name);
    read_metadata(&q->in, &s->metadata);
    read_value(&q->in, &s->value);
    json_decref(steal_ptr(&q->body));
    if (!e2b_read(q)) {
        saving_free(s);
        return;
    }
    e2b_wait(q);
    guard_ask(q->front, ASK_PUBLIC, q->tenant.id, NULL, NULL, 0, on_public, s);
}

static void create_with_body(struct http_req *req)
{
    save(e2b_of(req), NULL);
}

void secret_create(struct http_req *req)
{
    req->body_secret = true;
    e2b_with_body(req, BODY_MAX, create_with_body);
}

static void update_with_body(struct http_req *req)
{
    struct e2b_req *q = e2b_of(req);
    struct named which;

    if (find(q, &which))
        save(q, &which);
}

void secret_update(struct http_req *req)
{
    req->body_secret = true;
    e2b_with_body(req, BODY_MAX, update_with_body);
}

/* ---- get, list, delete ----------------------------------------------------------------------- */

void secret_get(struct http_req *req)
{
    struct e2b_req *q = e2b_of(req);
    struct named which;

    if (find(q, &which))
        reply_secret(q, 200, which.id);
}

void secret_delete(struct http_req *req)
{
    struct e2b_req *q = e2b_of(req);
    struct named which;
    struct sg_error e;

    if (!find(q, &which))
        return;
    if (store_vault_remove(q->front->store, q->tenant.id, which.id, &e) < 0) {
        fail(q, which.name, &e);
        return;
    }
    reply_empty(req, 204);
    changed(q->front, q->tenant.id, which.name);
}

struct listing {
    struct json j;
    struct page page;
};

static bool add_one(const struct store_vault *v, void *arg)
{
    struct listing *l = arg;

    if (!page_take(&l->page, v->seq))
        return false;
    write_secret(&l->j, v);
    return true;
}

void secrets_list(struct http_req *req)
{
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(ANSWER_MAX);
    struct e2b_req *q = e2b_of(req);
    struct listing l = {.j.out = &out};
    struct sg_error e;

    if (!page_of_request(q, PAGE_SECRETS, false, &l.page))
        return;
    jw_array_begin(&l.j);
    if (store_vault_each(q->front->store, q->tenant.id, page_from(&l.page), add_one, &l, &e) < 0)
        reply_sg_error(req, &e);
    else
        page_reply(q, &l.page, &l.j);
}
