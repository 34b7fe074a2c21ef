#include <stdio.h>
#include <string.h>

#include "wire/agent.h"
#include "front/e2b/field.h"
#include "front/tools/call.h"

#define ENVS_MAX (512u * 1024)

static const char *const known[] = {"conversationId", "pathId",         "messageId", "code",
                                    "language",       "timeoutSeconds", "envs",      "template"};

/* ---- fields of both tools -------------------------------------------------------------------- */

static int read_name(const json_t *arguments, const char *field, const char *fallback,
                     char ret[CTX_NAME_MAX + 1], struct sg_error *e)
{
    const char *name = fallback;
    int r = field_string(arguments, field, SIZE_MAX, &name, e);

    if (r == 0 && !name)
        r = err_set(e, SG_ERR_INVALID, -EINVAL, FIELD_ERROR "'%s' is missing", field);
    if (r == 0)
        r = context_name_check(field, name, e);
    if (r == 0)
        snprintf(ret, CTX_NAME_MAX + 1, "%s", name);
    return r;
}

int call_read_place(const json_t *arguments, const struct tool_place *place, struct tool_call *ret,
                    struct sg_error *e)
{
    const char *template_name = "";
    int r = read_name(arguments, "conversationId", place->conversation, ret->conversation, e);

    if (r == 0)
        r = read_name(arguments, "pathId", place->path, ret->path, e);
    if (r == 0)
        r = field_string(arguments, "template", CTX_TEMPLATE_MAX, &template_name, e);
    if (r == 0)
        snprintf(ret->template_name, sizeof(ret->template_name), "%s", template_name);
    return r;
}

int call_read_timeout(const json_t *arguments, const struct context_limits *limits,
                      struct tool_call *ret, struct sg_error *e)
{
    const json_t *v = field_get(arguments, "timeoutSeconds");
    double seconds = json_number_value(v);

    ret->timeout_ms = limits->execution_ms;
    if (!v)
        return 0;
    if (!json_is_number(v) || !(seconds > 0))
        return err_set(e, SG_ERR_INVALID, -EINVAL,
                       FIELD_ERROR "'timeoutSeconds' must be a number greater than 0");
    if (seconds * 1000 > (double)limits->execution_max_ms)
        return err_set(e, SG_ERR_INVALID, -EINVAL,
                       "timeoutSeconds is %g: the limit is %g s (execution_timeout_max)", seconds,
                       (double)limits->execution_max_ms / 1000);
    ret->timeout_ms = seconds < 0.001 ? 1 : (uint64_t)(seconds * 1000);
    return 0;
}

int call_read_code(const json_t *arguments, const struct context_limits *limits, json_t **ret,
                   struct sg_error *e)
{
    json_t *v = json_object_get(arguments, "code");

    if (!v || json_is_null(v))
        return 0;
    if (!json_is_string(v) || json_string_length(v) == 0)
        return err_set(e, SG_ERR_INVALID, -EINVAL,
                       FIELD_ERROR "'code' must be a string that is not empty");
    if (json_string_length(v) > limits->code_max)
        return err_set(e, SG_ERR_INVALID, -E2BIG,
                       "the code has %zu bytes: the limit is %zu (code_max)", json_string_length(v),
                       limits->code_max);
    *ret = v;
    return 0;
}

int call_read_envs(const json_t *arguments, json_t **ret, struct sg_error *e)
{
    const json_t *envs = NULL;
    const char *name;
    json_t *value;
    int r = field_strings(arguments, "envs", ENVS_MAX, &envs, e);

    if (r < 0 || !envs)
        return r;
    json_t *walk = json_object_get(arguments, "envs");
    json_object_foreach(walk, name, value)
    {
        if (!name[0] || strchr(name, '=') ||
            strlen(name) + json_string_length(value) + 2 > OPS_ARG_MAX)
            return err_set(e, SG_ERR_INVALID, -EINVAL,
                           FIELD_ERROR "'envs': \"%.64s\" must be a name without '=', and with its "
                                       "value less than %u bytes",
                           name, OPS_ARG_MAX);
    }
    *ret = walk;
    return 0;
}

void tool_call_done(struct tool_call *c)
{
    json_decref(c->code);
    json_decref(c->envs);
    json_decref(c->parameters);
    *c = (struct tool_call){0};
}

/* ---- run_code -------------------------------------------------------------------------------- */

int tool_language(const char *name, const char **ret_kernel, struct sg_error *e)
{
    const struct language *l = language_find(name);
    char names[LANGUAGE_NAMES_MAX];

    if (!l || !l->program[0])
        return err_set(e, SG_ERR_INVALID, -EINVAL, "unknown language '%.64s': use %s", name,
                       language_names(n_languages_with_program, names));
    *ret_kernel = language_full_name(l->name); /* a name of the table: the call outlives its JSON */
    return 0;
}

static int read_language(const json_t *arguments, struct tool_call *ret, struct sg_error *e)
{
    const char *name = languages[0].name;
    int r = field_string(arguments, "language", SIZE_MAX, &name, e);

    return r < 0 ? r : tool_language(name, &ret->kernel, e);
}

int code_call_read(const struct context_limits *limits, const json_t *arguments,
                   const struct tool_place *place, struct tool_call *ret, struct sg_error *e)
{
    struct tool_call c = {0};
    int r = fields_known(arguments, known, ARRAY_SIZE(known), e);

    if (r == 0)
        r = call_read_place(arguments, place, &c, e);
    if (r == 0 && (place->message || field_get(arguments, "messageId")))
        r = read_name(arguments, "messageId", place->message, c.message, e);
    if (r == 0)
        r = read_language(arguments, &c, e);
    if (r == 0)
        r = call_read_code(arguments, limits, &c.code, e);
    if (r == 0 && !c.code)
        r = err_set(e, SG_ERR_INVALID, -EINVAL, FIELD_ERROR "'code' is missing");
    if (r == 0)
        r = call_read_timeout(arguments, limits, &c, e);
    if (r == 0)
        r = call_read_envs(arguments, &c.envs, e);
    if (r < 0)
        return r;
    json_incref(c.code);
    json_incref(c.envs);
    *ret = c;
    return 0;
}
