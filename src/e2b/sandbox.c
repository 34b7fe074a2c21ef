#include "e2b/sandbox.h"

#include "e2b/create.h"
#include "e2b/field.h"
#include "e2b/network.h"
#include "e2b/path.h"
#include "e2b/shape.h"
#include "front/egress.h"

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

static void create(struct e2b_req *q, enum spec_version version)
{
    struct front *f = q->front;
    struct create_plan p;
    struct sg_error e;

    if (path_is_named(q->body)) {
        path_create(q, version);
        return;
    }
    if (create_plan(f->store, &f->settings, &q->tenant, q->body, version, NULL, &p, &e) < 0) {
        reply_sg_error(q->http, &e);
        return;
    }
    e2b_wait(q);
    box_create(f, &p.spec, p.layer[0] ? p.layer : NULL, p.timeout_ms, on_created, q);
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

static void on_network(void *arg, struct box *b, int r, const struct sg_error *e)
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

static void update_network(struct e2b_req *q)
{
    struct box *b = e2b_box(q);
    json_t *network = NULL;
    int internet = -1;
    struct sg_error e;

    if (!b)
        return;
    if (b->state == BOX_PAUSED && b->busy == BUSY_NO) {
        reply_error(q->http, 409, "Sandbox \"%s\" is paused: resume it first", b->id);
        return;
    }
    if (!sandbox_is_running(q, b))
        return;
    int r = field_tristate(q->body, "allow_internet_access", &internet, &e);
    if (r == 0)
        r = network_update(q->body, b->spec.network, &network, &e);
    if (r < 0) {
        reply_sg_error(q->http, &e);
        return;
    }
    e2b_wait(q);
    box_set_network(b, network, internet, on_network, q);
}

void sandbox_network(struct http_req *req)
{
    e2b_with_body(req, update_network);
}
