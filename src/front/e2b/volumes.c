#include "front/e2b/volumes.h"

#include <string.h>

#include "front/core/volumes.h"
#include "front/e2b/request.h"

#define ANSWER_MAX (1024u * 1024)

bool volume_name_valid(const char *name)
{
    size_t n = strlen(name);

    return n > 0 && n <= STORE_NAME_MAX &&
           strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") == n;
}

/* usedBytes and maxBytes are ours; the first is missing until the volume was looked at. */
static void reply_volume(struct e2b_req *q, int status, const struct store_volume *v)
{
    char token[VOLUME_TOKEN_LEN + 1];
    struct sg_error e;
    struct reply r;
    uint64_t used;

    if (volume_token(q->front, v->id, token, &e) < 0) {
        reply_sg_error(q->http, &e);
        return;
    }
    struct json *j = reply_begin(&r, ANSWER_MAX);
    jw_string(jw_key(j, "volumeID"), v->id);
    jw_string(jw_key(j, "name"), v->name);
    jw_string(jw_key(j, "token"), token);
    if (volume_known_size(v->id, &used))
        jw_u64(jw_key(j, "usedBytes"), used < INT64_MAX ? used : INT64_MAX);
    jw_u64(jw_key(j, "maxBytes"), q->front->settings.volume_size);
    reply_send(q, status, &r);
}

static void fail(struct e2b_req *q, const struct sg_error *e)
{
    if (e->code == -EEXIST)
        reply_error(q->http, 409, "%s", e->message);
    else
        reply_sg_error(q->http, e);
}

static void on_created(void *arg, const struct store_volume *v, int r, const struct sg_error *e)
{
    struct e2b_req *q = arg;
    struct front *f = q->front;

    if (!e2b_back(q)) {
        /* Nobody has learned its id, and the client will ask for the name again. */
        if (r == 0)
            volume_delete(f, v, NULL, NULL);
        return;
    }
    if (r < 0)
        fail(q, e);
    else
        reply_volume(q, 201, v);
}

void volume_post(struct http_req *req)
{
    struct e2b_req *q = e2b_of(req);
    const char *name = field_text(&q->in, "name", 1024, "");

    if (!volume_name_valid(name))
        fields_invalid(&q->in, "Invalid name: " VOLUME_NAME_RULE);
    if (!e2b_read(q))
        return;
    e2b_wait(q);
    volume_create(q->front, q->tenant.id, name, on_created, q);
}

static void write_one(const struct store_volume *v, void *arg)
{
    struct json *j = arg;

    jw_object_begin(j);
    jw_string(jw_key(j, "volumeID"), v->id);
    jw_string(jw_key(j, "name"), v->name);
    jw_object_end(j);
}

void volumes_list(struct http_req *req)
{
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(ANSWER_MAX * 8);
    struct e2b_req *q = e2b_of(req);
    struct json j = {.out = &out};
    struct sg_error e;

    jw_array_begin(&j);
    if (store_volumes_each(q->front->store, q->tenant.id, write_one, &j, &e) < 0) {
        reply_sg_error(req, &e);
        return;
    }
    jw_array_end(&j);
    reply_json(req, 200, &out);
}

/* The same answer whether the volume is unknown or another tenant's. False: answered. */
static bool find(struct e2b_req *q, struct store_volume *ret)
{
    const char *id = q->http->params[0];
    struct sg_error e;
    int r = store_volume_get(q->front->store, id, ret, &e);

    if (r == 0 && strcmp(ret->tenant, q->tenant.id) == 0)
        return true;
    if (r < 0 && r != -ENOENT)
        reply_sg_error(q->http, &e);
    else
        reply_error(q->http, 404, "Volume \"%.64s\" doesn't exist or you don't have access to it",
                    id);
    return false;
}

void volume_get(struct http_req *req)
{
    struct e2b_req *q = e2b_of(req);
    struct store_volume v;

    if (find(q, &v))
        reply_volume(q, 200, &v);
}

static void on_deleted(void *arg, const struct store_volume *v UNUSED, int r,
                       const struct sg_error *e)
{
    struct e2b_req *q = arg;

    if (!e2b_back(q))
        return;
    if (r < 0)
        fail(q, e);
    else
        reply_empty(q->http, 204);
}

void volume_remove(struct http_req *req)
{
    struct e2b_req *q = e2b_of(req);
    struct store_volume v;

    if (!find(q, &v))
        return;
    e2b_wait(q);
    volume_delete(q->front, &v, on_deleted, q);
}
