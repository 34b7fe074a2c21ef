#include "front/e2b/path.h"

#include "lib/json/values.h"
#include "front/core/operation.h"
#include "front/contexts/context.h"
#include "front/e2b/create.h"
#include "front/e2b/sandbox.h"

static const char *named(const json_t *body, const char *key)
{
    return jr_text_or(json_object_get(body, "metadata"), key, NULL);
}

bool path_is_named(const json_t *body)
{
    return named(body, PATH_KEY_CONVERSATION) || named(body, PATH_KEY_PATH);
}

static int spec(void *arg, const char *template_id, struct sandbox_spec *ret,
                char snapshot[ID_LEN + 1], struct sg_error *e)
{
    struct e2b_req *q = arg;

    return create_spec(q->front, &q->tenant, q->body, SPEC_V2, template_id, ret, snapshot, e);
}

/* False: nobody waits for the answer, or the request has been answered. */
static bool came(struct e2b_req *q, const struct context_answer *a)
{
    if (!e2b_done(q, a->r, a->e))
        return false;
    if (a->elsewhere)
        reply_elsewhere(q->http, a->elsewhere);
    return !a->elsewhere;
}

/* If nobody waits any more, the sandbox stays for the next request for this path. */
static void on_obtained(void *arg, const struct context_answer *a)
{
    struct e2b_req *q = arg;

    if (came(q, a))
        sandbox_reply(q, 201, a->sandbox);
}

void path_create(struct e2b_req *q, enum spec_version version)
{
    const char *conversation = named(q->body, PATH_KEY_CONVERSATION),
               *path = named(q->body, PATH_KEY_PATH);
    struct create_plan p;

    fields_check(&q->in,
                 context_name_check("metadata " PATH_KEY_CONVERSATION, conversation, &q->wrong));
    fields_check(&q->in, context_name_check("metadata " PATH_KEY_PATH, path, &q->wrong));
    /* The whole request is checked, even if the path has a sandbox and needs no new one. */
    fields_check(&q->in, create_plan(q->front, &q->tenant, q->body, version, NULL, &p, &q->wrong));
    if (!e2b_read(q))
        return;
    struct context_ask ask = {.tenant = &q->tenant,
                              .conversation = conversation,
                              .path = path,
                              .ttl_ms = p.timeout_ms,
                              .template_id = p.spec.alias[0] ? p.spec.alias : p.spec.template_id,
                              .spec = spec};
    e2b_wait(q);
    context_obtain(q->front, &ask, on_obtained, q);
    sandbox_spec_done(&p.spec);
}

static void on_touched(void *arg, const struct context_answer *a)
{
    struct e2b_req *q = arg;
    struct sandbox *b = a->r == 0 ? sandbox_find(q->front, q->id) : NULL;

    if (b)
        operation_updated(q->front, b, "timeout");
    if (came(q, a))
        reply_empty(q->http, 204);
}

void path_set_timeout(struct e2b_req *q, const struct sandbox *b, uint64_t timeout_ms)
{
    uint64_t max = q->front->settings.max_timeout_ms;

    if (timeout_ms > max)
        timeout_ms = max;
    e2b_wait(q);
    context_touch(q->front, q->tenant.id, b->spec.context, timeout_ms, on_touched, q);
}
