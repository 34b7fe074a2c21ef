#include "front/e2b/spec.h"

#include "front/e2b/network.h"
#include "front/e2b/path.h"
#include "front/e2b/ref.h"
#include "front/e2b/volume_mounts.h"
#include "front/core/egress.h"
#include "front/core/workload.h"

#define METADATA_MAX (64u * 1024)
#define ENVS_MAX     (512u * 1024)

json_t *spec_read_envs(struct fields *in, const char *field)
{
    json_t *envs = field_texts(in, field, ENVS_MAX), *value;
    const char *name;

    json_object_foreach(envs, name, value)
    {
        if (!name[0] || strchr(name, '='))
            field_wrong(in, "'%s' has the name \"%.64s\": a name is not empty and has no '='",
                        field, name);
    }
    return envs;
}

/* ---- tokens ---------------------------------------------------------------------------------- */

/* A name stands between "${e2b.identity.tokens." and "}". */
static void check_token_name(struct fields *in, const char *name)
{
    if (!name[0])
        fields_invalid(in, "iam.tokens: token name must not be empty");
    if (strlen(name) > WORKLOAD_NAME_MAX)
        fields_invalid(in, "iam.tokens: token name is longer than %d bytes: '%.64s...'",
                       WORKLOAD_NAME_MAX, name);
    if (strpbrk(name, "{}") || !header_value_valid(name))
        fields_invalid(in, "iam.tokens: token name must not have braces or controls in it: '%s'",
                       name);
}

static void read_token(struct fields *iam, const char *name, const json_t *given, json_t *to)
{
    struct fields in = fields_within(iam, given);
    const char *audience = field_text(&in, "audience", WORKLOAD_AUDIENCE_MAX, "");
    const char *type = field_text(&in, "tokenType", WORKLOAD_NAME_MAX, "");

    check_token_name(&in, name);
    if (!json_is_object(given))
        fields_invalid(&in, "iam.tokens.%s: must be an object", name);
    if (!audience[0])
        fields_invalid(&in, "iam.tokens.%s.audience: audience is required", name);
    if (strcmp(type, "JWT-SVID") != 0)
        fields_invalid(&in, "iam.tokens.%s.tokenType: only \"JWT-SVID\" is supported", name);
    if (fields_ok(&in))
        json_object_set_new(to, name, json_string(audience));
}

/* The audiences by the names of their tokens; NULL: there are none. Messages and limits are
 * E2B's. */
static json_t *read_tokens(struct fields *in)
{
    struct fields iam = field_object(in, "iam"), tokens = field_object(&iam, "tokens");
    json_t *audiences, *given;
    const char *name;

    if (json_object_size(tokens.object) == 0)
        return NULL;
    if (json_object_size(tokens.object) > WORKLOAD_TOKENS)
        fields_invalid(&iam, "iam.tokens: too many tokens: %zu (max %d)",
                       json_object_size(tokens.object), WORKLOAD_TOKENS);
    audiences = json_object();
    json_object_foreach((json_t *)(uintptr_t)tokens.object, name, given)
        read_token(&iam, name, given, audiences);
    return audiences;
}

static void parse_lifecycle(struct fields *in, struct sandbox_spec *s)
{
    s->auto_pause = field_flag(in, "autoPause", s->auto_pause);
    s->auto_pause_memory = field_flag(in, "autoPauseMemory", s->auto_pause_memory);
    struct fields resume = field_object(in, "autoResume");
    s->auto_resume = field_flag(&resume, "enabled", s->auto_resume);
    if (!s->auto_pause_memory && !s->auto_pause)
        fields_invalid(in, "autoPauseMemory=false only applies when autoPause is true.");
    if (!s->auto_pause_memory && s->auto_resume)
        fields_invalid(
            in, "autoPauseMemory=false (filesystem-only auto-pause) cannot be combined with "
                "autoResume: a filesystem-only snapshot cannot be auto-resumed by traffic and "
                "must be resumed explicitly.");
}

static void parse_maps(struct fields *in, struct sandbox_spec *s)
{
    const json_t *metadata = field_texts(in, "metadata", METADATA_MAX);
    const json_t *envs = spec_read_envs(in, "envVars");

    s->metadata = metadata ? json_deep_copy(metadata) : NULL;
    s->envs = envs ? json_deep_copy(envs) : json_object();
}

static void parse_access(struct fields *in, enum spec_version version, struct sandbox_spec *s)
{
    bool secure = version != SPEC_V1 || field_flag(in, "secure", false);

    s->allow_internet = field_tristate(in, "allow_internet_access");
    struct fields network = field_object(in, "network");
    if (network.object)
        fields_check(in, network_parse(network.object, version == SPEC_OWN, &s->network, in->e));
    s->network_said = network.object || s->allow_internet >= 0;
    if (version == SPEC_OWN)
        network_close(&s->allow_internet, s->network);
    if (!network_is_public(s->network) && !secure)
        fields_invalid(in,
                       "You cannot create a sandbox without public access unless you enable secure "
                       "envd access via 'secure' flag.");
    if (secure)
        token_random(s->envd_token);
    if (!network_is_public(s->network))
        token_random(s->traffic_token);
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
    struct fields in = request_fields(body, e);
    struct create_request c;

    c.template_name = field_text(&in, "templateID", REF_TEXT_MAX, settings->default_template);
    sandbox_spec_init(&c.spec);
    fill_limits(settings, &c.spec.limits);
    field_object(&in, "mcp"); /* the SDK starts the gateway itself */
    c.spec.tokens = read_tokens(&in);
    c.timeout_ms = field_timeout(&in, 1, version == SPEC_V1 ? SPEC_TIMEOUT_V1_S : SPEC_TIMEOUT_V2_S,
                                 settings->max_timeout_ms);
    parse_lifecycle(&in, &c.spec);
    parse_maps(&in, &c.spec);
    parse_access(&in, version, &c.spec);
    c.spec.volumes = volume_mounts_parse(&in);
    if (in.r < 0)
        sandbox_spec_done(&c.spec);
    else
        *ret = c;
    return in.r;
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
    json_incref(ret->defaults);
    json_incref(ret->tokens);
    json_incref(ret->volumes);
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
