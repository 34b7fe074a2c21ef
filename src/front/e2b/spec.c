#include "front/e2b/spec.h"

#include "front/e2b/field.h"
#include "front/e2b/network.h"
#include "front/e2b/path.h"
#include "front/e2b/ref.h"
#include "front/core/egress.h"

#define METADATA_MAX (64u * 1024)
#define ENVS_MAX     (512u * 1024)

int spec_read_envs(const json_t *body, const char *field, const json_t **ret, struct sg_error *e)
{
    const json_t *envs = NULL;
    int r = field_strings(body, field, ENVS_MAX, &envs, e);

    if (r < 0 || !envs)
        return r;
    json_t *walk = (json_t *)(uintptr_t)envs;
    for (void *at = json_object_iter(walk); at; at = json_object_iter_next(walk, at)) {
        const char *name = json_object_iter_key(at);

        if (!name[0] || strchr(name, '='))
            return err_set(e, SG_ERR_INVALID, -EINVAL,
                           FIELD_ERROR "'%s' has the name \"%.64s\": a name is not empty and has "
                                       "no '='",
                           field, name);
    }
    *ret = envs;
    return 0;
}

/* Refuses a field that is there and not empty, because we do not have the feature `what`. To ignore
 * it would be worse than to refuse. */
static int refuse_filled(const json_t *object, const char *name, const char *what,
                         struct sg_error *e)
{
    const json_t *v = field_get(object, name);

    if (!v || (json_is_object(v) && json_object_size(v) == 0) ||
        (json_is_array(v) && json_array_size(v) == 0))
        return 0;
    return err_set(e, SG_ERR_UNSUPPORTED, -ENOSYS, "%s: not supported yet", what);
}

static int check_unsupported(const json_t *body, struct sg_error *e)
{
    const json_t *iam = NULL;
    int r = field_object(body, "iam", &iam, e);

    if (r == 0)
        r = refuse_filled(iam, "tokens", "iam.tokens", e);
    if (r == 0)
        r = refuse_filled(body, "mcp", "mcp", e);
    if (r == 0)
        r = refuse_filled(body, "volumeMounts", "volumeMounts", e);
    return r;
}

static int parse_lifecycle(const json_t *body, struct sandbox_spec *s, struct sg_error *e)
{
    const json_t *resume = NULL;
    int r = field_bool(body, "autoPause", &s->auto_pause, e);

    if (r == 0)
        r = field_bool(body, "autoPauseMemory", &s->auto_pause_memory, e);
    if (r == 0)
        r = field_object(body, "autoResume", &resume, e);
    if (r == 0 && resume)
        r = field_bool(resume, "enabled", &s->auto_resume, e);
    if (r < 0)
        return r;
    if (!s->auto_pause_memory && !s->auto_pause)
        return err_set(e, SG_ERR_INVALID, -EINVAL,
                       "autoPauseMemory=false only applies when autoPause is true.");
    if (!s->auto_pause_memory && s->auto_resume)
        return err_set(e, SG_ERR_INVALID, -EINVAL,
                       "autoPauseMemory=false (filesystem-only auto-pause) cannot be combined with "
                       "autoResume: a filesystem-only snapshot cannot be auto-resumed by traffic "
                       "and must be resumed explicitly.");
    return 0;
}

static int parse_maps(const json_t *body, struct sandbox_spec *s, struct sg_error *e)
{
    const json_t *metadata = NULL, *envs = NULL;
    int r = field_strings(body, "metadata", METADATA_MAX, &metadata, e);

    if (r == 0)
        r = spec_read_envs(body, "envVars", &envs, e);
    if (r < 0)
        return r;
    s->metadata = metadata ? json_deep_copy(metadata) : NULL;
    s->envs = envs ? json_deep_copy(envs) : json_object();
    return 0;
}

static int parse_access(const json_t *body, enum spec_version version, struct sandbox_spec *s,
                        struct sg_error *e)
{
    const json_t *network = NULL;
    bool secure = version != SPEC_V1;
    int r = version == SPEC_V1 ? field_bool(body, "secure", &secure, e) : 0;

    if (r == 0)
        r = field_tristate(body, "allow_internet_access", &s->allow_internet, e);
    if (r == 0)
        r = field_object(body, "network", &network, e);
    if (r == 0 && network)
        r = network_parse(network, version == SPEC_OWN, &s->network, e);
    if (r < 0)
        return r;
    s->network_said = network || s->allow_internet >= 0;
    if (version == SPEC_OWN)
        network_close(&s->allow_internet, s->network);
    if (!network_is_public(s->network) && !secure)
        return err_set(e, SG_ERR_INVALID, -EINVAL,
                       "You cannot create a sandbox without public access unless you enable secure "
                       "envd access via 'secure' flag.");
    if (secure)
        token_random(s->envd_token);
    if (!network_is_public(s->network))
        token_random(s->traffic_token);
    return 0;
}

static void fill_limits(const struct settings *settings, struct sg_limits *ret)
{
    *ret = (struct sg_limits){.memory_bytes = settings->sandbox_memory,
                              .disk_bytes = settings->sandbox_disk,
                              .cpus_milli = settings->sandbox_cpus_milli,
                              .pids = settings->sandbox_pids};
}

int create_request_parse(const json_t *body, enum spec_version version,
                         const struct settings *settings, struct create_request *ret,
                         struct sg_error *e)
{
    struct create_request c = {.template_name = settings->default_template};
    uint32_t default_s = version == SPEC_V1 ? SPEC_TIMEOUT_V1_S : SPEC_TIMEOUT_V2_S;
    int r = field_string(body, "templateID", REF_TEXT_MAX, &c.template_name, e);

    sandbox_spec_init(&c.spec);
    fill_limits(settings, &c.spec.limits);
    if (r == 0)
        r = check_unsupported(body, e);
    if (r == 0)
        r = field_timeout(body, 1, default_s, settings->max_timeout_ms, &c.timeout_ms, e);
    if (r == 0)
        r = parse_lifecycle(body, &c.spec, e);
    if (r == 0)
        r = parse_maps(body, &c.spec, e);
    if (r == 0)
        r = parse_access(body, version, &c.spec, e);
    if (r < 0)
        sandbox_spec_done(&c.spec);
    else
        *ret = c;
    return r;
}

/* Removes the metadata that names the path of a conversation (path.h): that path is the
 * original's. */
static void leave_path(struct sandbox_spec *s)
{
    json_t *metadata = json_copy(s->metadata);

    json_object_del(metadata, PATH_KEY_CONVERSATION);
    json_object_del(metadata, PATH_KEY_PATH);
    json_decref(s->metadata);
    s->metadata = metadata;
}

void spec_copy(const struct sandbox_spec *from, struct sandbox_spec *ret)
{
    *ret = *from;
    json_incref(ret->metadata);
    json_incref(ret->envs);
    json_incref(ret->network);
    json_incref(ret->secrets);
    ret->agents = NULL; /* hosted agents are not copied */
    egress_forget_placeholders(ret);
    if (ret->context[0])
        leave_path(ret);
    ret->context[0] = '\0'; /* the context has a sandbox already */
    if (ret->envd_token[0])
        token_random(ret->envd_token);
    if (ret->traffic_token[0])
        token_random(ret->traffic_token);
}
