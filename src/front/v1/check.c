#include "front/v1/check.h"

#include "front/e2b/field.h"
#include "front/v1/reply.h"
#include "front/v1/spec.h"

static int wrong_tenant(struct sg_error *e)
{
    return err_set(e, SG_ERR_DENIED, -EACCES,
                   "'tenantId' is not the tenant of the API key: leave it out, or use that "
                   "tenant's key");
}

int check_body(const struct e2b_req *q, const char *const *names, size_t n, struct sg_error *e)
{
    const char *tenant = q->tenant.id;
    int r = fields_known(q->body, names, n, e);

    if (r == 0)
        r = field_string(q->body, "tenantId", CTX_NAME_MAX, &tenant, e);
    if (r == 0 && strcmp(tenant, q->tenant.id) != 0)
        r = wrong_tenant(e);
    return r;
}

int check_query_tenant(struct http_req *req, const struct store_tenant *tenant, struct sg_error *e)
{
    const char *given = http_query_get(req, "tenantId");

    if (!http_query_has(req, "tenantId") || (given && strcmp(given, tenant->id) == 0))
        return 0;
    return wrong_tenant(e);
}

static int missing(const char *field, struct sg_error *e)
{
    return err_set(e, SG_ERR_INVALID, -EINVAL, FIELD_ERROR "'%s' is required", field);
}

int check_name(const json_t *body, const char *field, bool required, const char **ret,
               struct sg_error *e)
{
    const char *value = NULL;
    int r = field_string(body, field, CTX_NAME_MAX, &value, e);

    if (r == 0 && value)
        r = context_name_check(field, value, e);
    else if (r == 0 && required)
        r = missing(field, e);
    if (r == 0)
        *ret = value;
    return r;
}

int check_query_name(struct http_req *req, const char *field, bool required, const char **ret,
                     struct sg_error *e)
{
    const char *value = http_query_get(req, field);
    int r = 0;

    /* A value with a NUL in it is present, but http_query_get returns NULL for it. */
    if (http_query_has(req, field))
        r = context_name_check(field, value ? value : "", e);
    else if (required)
        r = missing(field, e);
    if (r == 0)
        *ret = value;
    return r;
}

int check_ttl(const struct e2b_req *q, uint64_t *ret_ms, struct sg_error *e)
{
    uint64_t max_s = q->front->settings.max_timeout_ms / 1000;
    int32_t seconds = 0;
    bool given;
    int r = field_int(q->body, "ttlSeconds", &given, &seconds, e);

    if (r < 0)
        return r;
    if (given && (seconds < 1 || (uint64_t)seconds > max_s))
        return err_set(e, SG_ERR_INVALID, -EINVAL,
                       FIELD_ERROR "'ttlSeconds' must be from 1 to %llu",
                       (unsigned long long)max_s);
    *ret_ms = (uint64_t)seconds * 1000;
    return 0;
}

int check_wait(const struct e2b_req *q, uint64_t *ret_ms, struct sg_error *e)
{
    int32_t ms = 0;
    bool given;
    int r = field_int(q->body, "waitMs", &given, &ms, e);

    if (r < 0)
        return r;
    if (ms < 0 || ms > CHECKPOINT_WAIT_MAX_MS)
        return err_set(e, SG_ERR_INVALID, -EINVAL, FIELD_ERROR "'waitMs' must be from 0 to %d",
                       CHECKPOINT_WAIT_MAX_MS);
    *ret_ms = (uint64_t)ms;
    return 0;
}

int check_checkpoint(const struct e2b_req *q, const char **ret, struct sg_error *e)
{
    const char *id = NULL;
    int r = field_string(q->body, "checkpointId", CTX_NAME_MAX, &id, e);

    if (r == 0 && id && !id_valid(id))
        r = err_set(e, SG_ERR_INVALID, -EINVAL,
                    FIELD_ERROR "'checkpointId' has %d characters of a-z and 0-9", ID_LEN);
    if (r == 0)
        *ret = id;
    return r;
}

int check_ask(struct e2b_req *q, const char *path_field, struct context_ask *ret,
              struct sg_error *e)
{
    struct context_ask ask = {.tenant = &q->tenant, .spec = spec_of_body};
    int r = check_name(q->body, "conversationId", true, &ask.conversation, e);

    if (r == 0)
        r = check_name(q->body, path_field, true, &ask.path, e);
    if (r == 0)
        r = check_ttl(q, &ask.ttl_ms, e);
    if (r == 0)
        r = field_string(q->body, "template", CTX_TEMPLATE_MAX, &ask.template_id, e);
    if (r == 0)
        r = spec_check(q, e);
    if (r == 0)
        *ret = ask;
    return r;
}

int check_two_paths(const struct e2b_req *q, const char *one_field, const char *other_field,
                    struct check_two *ret, struct sg_error *e)
{
    struct check_two two = {0};
    int r = check_name(q->body, "conversationId", true, &two.conversation, e);

    if (r == 0)
        r = check_name(q->body, one_field, true, &two.one, e);
    if (r == 0)
        r = check_name(q->body, other_field, true, &two.other, e);
    if (r == 0 && strcmp(two.one, two.other) == 0)
        r = err_set(e, SG_ERR_INVALID, -EINVAL, FIELD_ERROR "'%s' and '%s' are the same path",
                    one_field, other_field);
    if (r == 0)
        *ret = two;
    return r;
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
