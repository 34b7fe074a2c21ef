#include "e2b/sandbox.h"

#include "e2b/field.h"
#include "e2b/network.h"
#include "e2b/shape.h"
#include "e2b/spec.h"
#include "e2b/template.h"

#define ANSWER_MAX (4u * 1024 * 1024) /* metadata and rules, escaped */

void sandbox_reply(struct e2b_req *q, int status, const struct box *b)
{
    AUTO(strbuf_done) struct strbuf out = {0};
    struct json j;

    strbuf_init(&out, ANSWER_MAX);
    jw_init(&j, &out);
    shape_sandbox(&j, b);
    reply_json(q->http, status, &out);
}

static void on_created(void *arg, struct box *b, int r, const struct sg_error *e)
{
    struct e2b_req *q = arg;

    if (!e2b_back(q)) {
        /* Nobody learned its id, and whoever asked will ask again. */
        if (r == 0)
            box_kill(b, NULL, NULL);
        return;
    }
    if (r < 0)
        reply_sg_error(q->http, e);
    else
        sandbox_reply(q, 201, b);
}

/* Names the template in the spec. */
static int resolve_template(struct e2b_req *q, struct create_request *c, struct template_found *ret,
                            struct sg_error *e)
{
    struct template_ref ref;
    int r = template_ref_parse(c->template_name, &ref, e);

    if (r < 0)
        return err_wrap(e, r, "Invalid template reference");
    r = template_find(q->front->store, &q->tenant, &ref, ret, e);
    if (r < 0)
        return r;
    snprintf(c->spec.tenant, sizeof(c->spec.tenant), "%s", q->tenant.id);
    snprintf(c->spec.template_id, sizeof(c->spec.template_id), "%s", ret->id);
    snprintf(c->spec.alias, sizeof(c->spec.alias), "%s", ret->alias);
    c->spec.interpreter = strcmp(ret->base, TEMPLATE_INTERPRETER) == 0;
    return 0;
}

static void create(struct e2b_req *q, enum spec_version version)
{
    struct create_request c;
    struct template_found t;
    struct sg_error e;

    if (create_request_parse(q->body, version, &q->front->settings, &c, &e) < 0) {
        reply_sg_error(q->http, &e);
        return;
    }
    if (resolve_template(q, &c, &t, &e) < 0) {
        box_spec_done(&c.spec);
        reply_sg_error(q->http, &e);
        return;
    }
    e2b_wait(q);
    box_create(q->front, &c.spec, t.layer[0] ? t.layer : NULL, c.timeout_ms, on_created, q);
}

static void create_v1(struct e2b_req *q)
{
    create(q, SPEC_V1);
}

static void create_v2(struct e2b_req *q)
{
    create(q, SPEC_V2);
}

void sandbox_create_v1(struct http_req *req)
{
    e2b_with_body(req, create_v1);
}

void sandbox_create_v2(struct http_req *req)
{
    e2b_with_body(req, create_v2);
}

void sandbox_get(struct http_req *req)
{
    AUTO(strbuf_done) struct strbuf out = {0};
    struct box *b = e2b_box(e2b_of(req));
    struct json j;

    if (!b)
        return;
    strbuf_init(&out, ANSWER_MAX);
    jw_init(&j, &out);
    shape_detail(&j, b);
    reply_json(req, 200, &out);
}

static void on_killed(void *arg, struct box *b, int r, const struct sg_error *e)
{
    struct e2b_req *q = arg;

    (void)b;
    if (!e2b_back(q))
        return;
    if (r < 0)
        e2b_failed(q, e);
    else
        reply_empty(q->http, 204);
}

void sandbox_kill(struct http_req *req)
{
    struct e2b_req *q = e2b_of(req);
    struct box *b = e2b_box(q);

    if (!b)
        return;
    e2b_wait(q);
    box_kill(b, on_killed, q);
}

/* ---- network --------------------------------------------------------------------------------- */

static void update_network(struct e2b_req *q)
{
    struct box *b = e2b_box(q);
    json_t *network = NULL;
    int internet = -1;
    struct sg_error e;

    if (!b || !sandbox_is_running(q, b))
        return;
    int r = field_tristate(q->body, "allow_internet_access", &internet, &e);
    if (r == 0)
        r = network_update(q->body, b->spec.network, &network, &e);
    if (r < 0) {
        reply_sg_error(q->http, &e);
        return;
    }
    json_decref(b->spec.network);
    b->spec.network = network;
    b->spec.allow_internet = internet;
    box_note_changed(b);
    reply_empty(q->http, 204);
}

void sandbox_network(struct http_req *req)
{
    e2b_with_body(req, update_network);
}
