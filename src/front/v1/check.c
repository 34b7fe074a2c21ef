#include "front/v1/check.h"

#include "lib/text/parse.h"
#include "front/v1/reply.h"
#include "front/v1/spec.h"

static int wrong_tenant(struct sg_error *e)
{
    return err_set(e, SG_ERR_DENIED, -EACCES,
                   "'tenantId' is not the tenant of the API key: leave it out, or use that "
                   "tenant's key");
}

void check_known(struct e2b_req *q, const char *const *names)
{
    fields_only(&q->in, names);
    if (strcmp(field_text(&q->in, "tenantId", CTX_NAME_MAX, q->tenant.id), q->tenant.id) != 0)
        fields_check(&q->in, wrong_tenant(&q->wrong));
}

int check_query_tenant(struct http_req *req, const struct store_tenant *tenant, struct sg_error *e)
{
    const char *given = http_query_get(req, "tenantId");

    if (!http_query_has(req, "tenantId") || (given && strcmp(given, tenant->id) == 0))
        return 0;
    return wrong_tenant(e);
}

static const char *name_or_missing(struct e2b_req *q, const char *field, const char *value,
                                   bool required)
{
    if (value)
        fields_check(&q->in, context_name_check(field, value, &q->wrong));
    else if (required)
        field_wrong(&q->in, "'%s' is required", field);
    return value;
}

const char *check_name(struct e2b_req *q, const char *field, bool required)
{
    return name_or_missing(q, field, field_text(&q->in, field, CTX_NAME_MAX, NULL), required);
}

const char *check_query(const struct e2b_req *q, const char *field)
{
    const char *value = http_query_get(q->http, field);

    return value || !http_query_has(q->http, field) ? value : "";
}

const char *check_query_name(struct e2b_req *q, const char *field, bool required)
{
    return name_or_missing(q, field, check_query(q, field), required);
}

const char *check_query_sandbox(struct e2b_req *q)
{
    const char *id = check_query(q, "sandboxId");

    if (id && !id_valid(id))
        fields_invalid(&q->in, "Invalid sandboxId: it has %d characters of a-z and 0-9", ID_LEN);
    return id;
}

uint64_t check_query_number(struct e2b_req *q, const char *field, uint64_t min, uint64_t max,
                            uint64_t fallback)
{
    const char *text = check_query(q, field);

    if (text)
        fields_check(&q->in, parse_u64(field, text, min, max, &fallback, &q->wrong));
    return fallback;
}

uint64_t check_ttl(struct e2b_req *q)
{
    return 1000 * field_count(&q->in, "ttlSeconds", 1, q->front->settings.max_timeout_ms / 1000, 0);
}

const char *check_checkpoint(struct e2b_req *q)
{
    const char *id = field_text(&q->in, "checkpointId", CTX_NAME_MAX, NULL);

    if (id && !id_valid(id))
        field_wrong(&q->in, "'checkpointId' has %d characters of a-z and 0-9", ID_LEN);
    return id;
}

struct context_ask check_ask(struct e2b_req *q, const char *path_field)
{
    struct context_ask ask = {.tenant = &q->tenant, .spec = spec_of_body};

    ask.conversation = check_name(q, "conversationId", true);
    ask.path = check_name(q, path_field, true);
    ask.ttl_ms = check_ttl(q);
    ask.template_id = field_text(&q->in, "template", CTX_TEMPLATE_MAX, NULL);
    spec_check(q);
    return ask;
}

struct check_two check_two_paths(struct e2b_req *q, const char *one_field, const char *other_field)
{
    struct check_two two;

    two.conversation = check_name(q, "conversationId", true);
    two.one = check_name(q, one_field, true);
    two.other = check_name(q, other_field, true);
    if (fields_ok(&q->in) && strcmp(two.one, two.other) == 0)
        field_wrong(&q->in, "'%s' and '%s' are the same path", one_field, other_field);
    return two;
}

bool check_id(struct e2b_req *q)
{
    const char *id = q->http->params[0];

    if (!id_valid(id)) {
        reply_no_context(q, id);
        return false;
    }
    snprintf(q->id, sizeof(q->id), "%s", id);
    return true;
}
