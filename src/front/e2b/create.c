#include "front/e2b/create.h"

#include "front/core/identity.h"
#include "front/core/volumes.h"
#include "front/core/workload.h"
#include "front/e2b/template.h"

/* The server's settings may have become smaller since the template was built. */
static void limit_to(const struct template_found *t, struct sg_limits *l)
{
    uint64_t memory = (uint64_t)t->memory_mib << 20;

    if (t->cpus && t->cpus * 1000 < l->cpus_milli)
        l->cpus_milli = t->cpus * 1000;
    if (memory && memory < l->memory_bytes)
        l->memory_bytes = memory;
}

/* Finds the template, and names it in the spec. */
static int resolve_template(struct front *f, const struct store_tenant *tenant, const char *name,
                            struct create_plan *plan, struct sg_error *e)
{
    struct template_found found;
    struct template_ref ref;
    int r = template_ref_parse(name, &ref, e);

    if (r < 0)
        return err_wrap(e, r, "Invalid template reference");
    r = template_find(f->store, tenant, &ref, &found, e);
    if (r == 0)
        r = template_stand(f, &found, e);
    if (r < 0)
        return r;
    snprintf(plan->spec.tenant, sizeof(plan->spec.tenant), "%s", tenant->id);
    snprintf(plan->spec.template_id, sizeof(plan->spec.template_id), "%s", found.id);
    snprintf(plan->spec.alias, sizeof(plan->spec.alias), "%s", found.alias);
    if (found.build[0])
        memcpy(plan->spec.build_id, found.build, sizeof(plan->spec.build_id));
    else
        template_build_uuid(found.id, plan->spec.build_id);
    plan->spec.interpreter = strcmp(found.base, TEMPLATE_INTERPRETER) == 0;
    plan->spec.gateway = strcmp(found.base, GATEWAY_TEMPLATE) == 0;
    memcpy(plan->snapshot, found.snapshot, sizeof(plan->snapshot));
    limit_to(&found, &plan->spec.limits);
    return template_defaults(f->store, &found, &plan->spec.defaults, e);
}

int create_plan(struct front *f, const struct store_tenant *tenant, const json_t *body,
                enum spec_version version, const char *template_name, struct create_plan *ret,
                struct sg_error *e)
{
    struct create_request c;
    int r = create_request_parse(body, version, &f->settings, &c, e);

    if (r < 0)
        return r;
    struct create_plan plan = {.spec = c.spec, .timeout_ms = c.timeout_ms};
    if (plan.spec.tokens && !workload_issuer(f)[0])
        r = err_invalid(e, "iam.tokens: the server does not know its own address, which tokens "
                           "name as their issuer: set identity_issuer");
    if (r == 0)
        r = resolve_template(f, tenant, template_name ? template_name : c.template_name, &plan, e);
    if (r == 0)
        r = volumes_resolve(f, tenant->id, plan.spec.volumes, e);
    if (r < 0)
        sandbox_spec_done(&plan.spec);
    else
        *ret = plan;
    return r;
}

int create_spec(struct front *f, const struct store_tenant *tenant, const json_t *body,
                enum spec_version version, const char *template_name, struct sandbox_spec *ret,
                char snapshot[ID_LEN + 1], struct sg_error *e)
{
    struct create_plan plan;
    int r = create_plan(f, tenant, body, version, template_name, &plan, e);

    if (r < 0)
        return r;
    *ret = plan.spec;
    memcpy(snapshot, plan.snapshot, sizeof(plan.snapshot));
    return 0;
}
