#include "front/e2b/sandbox.h"

#include "front/contexts/context.h"
#include "front/e2b/create.h"
#include "front/e2b/network.h"
#include "front/e2b/path.h"
#include "front/e2b/shape.h"
#include "front/core/checkpoint.h"
#include "front/core/egress.h"
#include "front/core/operation.h"

#define ANSWER_MAX (4u * 1024 * 1024) /* room for metadata and rules, escaped */

void sandbox_reply(struct e2b_req *q, int status, const struct sandbox *b)
{
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(ANSWER_MAX);
    struct json j = {.out = &out};

    shape_sandbox(&j, b);
    reply_json(q->http, status, &out);
}

static void on_created(void *arg, struct sandbox *b, int r, const struct sg_error *e)
{
    struct e2b_req *q = arg;

    if (!e2b_back(q)) {
        /* Nobody has learned the sandbox's id, and the client will ask again. */
        if (r == 0)
            sandbox_kill(b, NULL, NULL);
        return;
    }
    if (r < 0)
        reply_sg_error(q->http, e);
    else
        sandbox_reply(q, 201, b);
}

static void on_forked(void *arg, struct sandbox *b, int r, const struct sg_error *e,
                      const json_t *report)
{
    struct e2b_req *q = arg;

    if (r != -EOWNERDEAD)
        on_created(q, b, r, e);
    else if (e2b_back(q))
        reply_fork_error(q->http, r, e, report);
}

/* Makes a sandbox from a snapshot with its variables, or not at all. By default the files are
 * enough: E2B's packages cannot ask for more, and a snapshot keeps only its files for good. */
static void create_with_state(struct e2b_req *q, struct create_plan *p)
{
    struct checkpoint *c = checkpoint_find(q->front, q->tenant.id, p->snapshot);
    struct fork_ask ask = {.timeout_ms = p->timeout_ms};
    struct sg_error e;

    if (c && c->kernels) {
        e2b_wait(q);
        sandbox_create_from(q->front, &p->spec, c, &ask, on_forked, q);
        return;
    }
    sandbox_spec_done(&p->spec);
    err_set(&e, SG_ERR_GONE, -EOWNERDEAD,
            "the snapshot has no variables, or no longer has them: without \"inherit\" the sandbox "
            "gets the files");
    reply_fork_error(q->http, -EOWNERDEAD, &e, NULL);
}

static void create(struct e2b_req *q, enum spec_version version)
{
    struct create_plan p;

    if (path_is_named(q->body)) {
        path_create(q, version);
        return;
    }
    const char *inherit = field_text(&q->in, "inherit", SIZE_MAX, "files");
    bool state = strcmp(inherit, "state") == 0;
    if (!state && strcmp(inherit, "files") != 0)
        field_wrong(&q->in, "'inherit' is none of state and files");
    fields_check(&q->in, create_plan(q->front, &q->tenant, q->body, version, NULL, &p, &q->wrong));
    if (!e2b_read(q))
        return;
    if (state) {
        create_with_state(q, &p);
        return;
    }
    e2b_wait(q);
    sandbox_create(q->front, &p.spec, p.snapshot[0] ? p.snapshot : NULL, p.timeout_ms, on_created,
                   q);
}

void sandbox_create_v1(struct http_req *req)
{
    create(e2b_of(req), SPEC_V1);
}

void sandbox_create_v2(struct http_req *req)
{
    create(e2b_of(req), SPEC_V2);
}

void e2b_sandbox_get(struct http_req *req)
{
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(ANSWER_MAX);
    struct sandbox *b = e2b_sandbox(e2b_of(req));
    struct json j = {.out = &out};

    if (!b)
        return;
    shape_detail(&j, b);
    reply_json(req, 200, &out);
}

void e2b_sandbox_kill(struct http_req *req)
{
    struct e2b_req *q = e2b_of(req);
    struct sandbox *b = e2b_sandbox(q);

    if (!b)
        return;
    e2b_wait(q);
    sandbox_kill(b, e2b_done_empty, q);
}

/* ---- network --------------------------------------------------------------------------------- */

static void on_network(void *arg, struct sandbox *b, int r, const struct sg_error *e)
{
    if (r == 0)
        operation_updated(b->front, b, "network");
    e2b_done_empty(arg, b, r, e);
}

void sandbox_network(struct http_req *req)
{
    struct e2b_req *q = e2b_of(req);
    struct sandbox *b = e2b_sandbox(q);
    json_t *network = NULL;

    if (!b)
        return;
    if (b->state == SANDBOX_PAUSED && b->busy == BUSY_NO) {
        reply_error(q->http, 409, "Sandbox \"%s\" is paused: resume it first", b->id);
        return;
    }
    if (!sandbox_is_running(q, b))
        return;
    int internet = field_tristate(&q->in, "allow_internet_access");
    fields_check(&q->in, network_update(q->body, b->spec.network, &network, &q->wrong));
    if (!e2b_read(q))
        return;
    e2b_wait(q);
    if (b->spec.context[0])
        context_set_network(b, network, internet, on_network, q);
    else
        sandbox_set_network(b, network, internet, on_network, q);
}
