/* A tenant's webhooks (front/core/webhooks.h). The secret goes in and never comes out again. */
#include <string.h>

#include "front/core/e2b_event.h"
#include "front/core/webhooks.h"
#include "front/e2b/events.h"
#include "front/e2b/request.h"
#include "front/e2b/shape.h"

#define ANSWER_MAX (256u * 1024)
#define BODY_MAX   (64u * 1024)
#define TYPES_MAX  32

/* ---- answers --------------------------------------------------------------------------------- */

static void write_hook(struct json *j, const struct store_hook *h)
{
    jw_object_begin(j);
    jw_string(jw_key(j, "id"), h->id);
    jw_string(jw_key(j, "teamId"), h->tenant);
    jw_string(jw_key(j, "name"), h->name);
    shape_time_key(j, "createdAt", h->created_ms);
    jw_bool(jw_key(j, "enabled"), h->enabled);
    jw_string(jw_key(j, "url"), h->url);
    jw_array_begin(jw_key(j, "events"));
    for (const char *p = h->events; *p; p += strspn(p, ",")) {
        size_t len = strcspn(p, ",");

        jw_bytes(j, p, len);
        p += len;
    }
    jw_array_end(j);
    jw_object_end(j);
}

static void write_one(const struct store_hook *h, void *arg)
{
    write_hook(arg, h);
}

/* Answers in the same words whether the webhook is unknown or another tenant's. */
static void fail(struct e2b_req *q, const struct sg_error *e)
{
    if (e->code == -ENOENT)
        reply_error(q->http, 404, "Webhook \"%.64s\" doesn't exist or you don't have access to it",
                    q->http->params[0] ? q->http->params[0] : "");
    else
        reply_sg_error(q->http, e);
}

static void reply_hook(struct e2b_req *q, int status, const char *id)
{
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(ANSWER_MAX);
    struct json j = {.out = &out};
    struct sg_error e;

    if (store_hook_get(q->front->store, q->tenant.id, id, write_one, &j, &e) < 0)
        fail(q, &e);
    else
        reply_json(q->http, status, &out);
}

/* ---- what is asked for ----------------------------------------------------------------------- */

/* A webhook that a request describes; texts live as long as the request, or the struct. */
struct asked {
    struct store_hook hook;
    char name[WEBHOOK_NAME_MAX + 1], url[WEBHOOK_URL_MAX + 1], events[WEBHOOK_EVENTS_MAX + 1];
    char secret[WEBHOOK_SECRET_MAX + 1];
};

static void asked_wipe(struct asked *a)
{
    explicit_bzero(a->secret, sizeof(a->secret));
}

/* The texts of a webhook as it is, for one that is to be changed. */
static void take_old(const struct store_hook *h, void *arg)
{
    struct asked *a = arg;

    a->hook = *h;
    snprintf(a->name, sizeof(a->name), "%s", h->name);
    snprintf(a->url, sizeof(a->url), "%s", h->url);
    snprintf(a->events, sizeof(a->events), "%s", h->events);
    snprintf(a->secret, sizeof(a->secret), "%s", h->secret);
}

/* Reads a text if it is given; in a new webhook each must be. */
static bool read_text(struct fields *in, const char *key, bool must, char *ret, size_t cap)
{
    const char *text = field_text(in, key, cap - 1, NULL);

    if (!text) {
        if (must && fields_ok(in))
            field_wrong(in, "'%s' is required", key);
        return false;
    }
    if (!text[0])
        field_wrong(in, "'%s' must not be empty", key);
    memcpy(ret, text, strlen(text) + 1);
    return true;
}

/* The types of `events`, each once, with commas between. */
static void read_events(struct fields *in, bool must, char ret[WEBHOOK_EVENTS_MAX + 1])
{
    json_t *list = field_array(in, "events", TYPES_MAX), *value;
    uint32_t seen = 0;
    size_t i, len = 0;

    if (!list) {
        if (must && fields_ok(in))
            field_wrong(in, "'events' is required");
        return;
    }
    if (json_array_size(list) == 0)
        field_wrong(in, "'events' must not be empty");
    json_array_foreach(list, i, value)
    {
        const char *type = json_string_value(value);
        enum event_kind kind;

        if (!type || !e2b_event_kind(type, strlen(type), &kind)) {
            field_wrong(in,
                        "'events' must hold names such as sandbox.lifecycle.created, and not "
                        "'%.64s'",
                        type ? type : "(no text)");
            return;
        }
        if (!(seen & (1u << kind)))
            len += (size_t)snprintf(ret + len, WEBHOOK_EVENTS_MAX + 1 - len, "%s%s", len ? "," : "",
                                    type);
        seen |= 1u << kind;
    }
}

static void read_all(struct e2b_req *q, struct asked *a, bool is_new)
{
    struct fields *in = &q->in;
    struct sg_error e;
    bool inside;

    read_text(in, "name", is_new, a->name, sizeof(a->name));
    if (read_text(in, "url", is_new, a->url, sizeof(a->url)) &&
        webhooks_judge(q->front, a->url, &inside, &e) < 0)
        fields_invalid(in, "Invalid url: %s", e.message);
    read_events(in, is_new, a->events);
    read_text(in, "signatureSecret", is_new, a->secret, sizeof(a->secret));
    a->hook.enabled = field_flag(in, "enabled", is_new || a->hook.enabled);
    a->hook.name = a->name;
    a->hook.url = a->url;
    a->hook.events = a->events;
    a->hook.secret = a->secret;
    memcpy(a->hook.tenant, q->tenant.id, sizeof(a->hook.tenant));
}

/* ---- routes ---------------------------------------------------------------------------------- */

static void create_with_body(struct http_req *req)
{
    AUTO(asked_wipe) struct asked a = {.name = ""};
    struct e2b_req *q = e2b_of(req);
    struct sg_error e;

    read_all(q, &a, true);
    if (!e2b_read(q))
        return;
    uuid_random(a.hook.id);
    if (store_hook_add(q->front->store, &a.hook, &e) < 0) {
        reply_sg_error(req, &e);
        return;
    }
    webhooks_changed(q->front, q->tenant.id, a.hook.id);
    reply_hook(q, 201, a.hook.id);
}

void webhook_create(struct http_req *req)
{
    req->body_secret = true;
    e2b_with_body(req, BODY_MAX, create_with_body);
}

static void update_with_body(struct http_req *req)
{
    AUTO(asked_wipe) struct asked a = {.name = ""};
    struct e2b_req *q = e2b_of(req);
    struct sg_error e;
    int r = store_hook_get(q->front->store, q->tenant.id, req->params[0], take_old, &a, &e);

    if (r < 0) {
        fail(q, &e);
        return;
    }
    read_all(q, &a, false);
    if (!e2b_read(q))
        return;
    if (store_hook_set(q->front->store, &a.hook, &e) < 0) {
        fail(q, &e);
        return;
    }
    webhooks_changed(q->front, q->tenant.id, a.hook.id);
    reply_hook(q, 200, a.hook.id);
}

void webhook_update(struct http_req *req)
{
    req->body_secret = true;
    e2b_with_body(req, BODY_MAX, update_with_body);
}

void webhook_get(struct http_req *req)
{
    reply_hook(e2b_of(req), 200, req->params[0]);
}

void webhook_delete(struct http_req *req)
{
    struct e2b_req *q = e2b_of(req);
    struct sg_error e;

    if (store_hook_remove(q->front->store, q->tenant.id, req->params[0], &e) < 0) {
        fail(q, &e);
        return;
    }
    webhooks_changed(q->front, q->tenant.id, req->params[0]);
    reply_empty(req, 200);
}

void webhooks_list(struct http_req *req)
{
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(ANSWER_MAX);
    struct e2b_req *q = e2b_of(req);
    struct json j = {.out = &out};
    struct sg_error e;

    jw_array_begin(&j);
    int r = store_hooks_each(q->front->store, q->tenant.id, write_one, &j, &e);
    jw_array_end(&j);
    if (r < 0)
        reply_sg_error(req, &e);
    else
        reply_json(req, 200, &out);
}
