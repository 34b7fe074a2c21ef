#include <stdio.h>
#include <string.h>

#include "wire/agent.h"
#include "front/tools/call.h"

#define ENVS_MAX (512u * 1024)

/* ---- fields of both tools -------------------------------------------------------------------- */

static void read_name(struct fields *in, const char *field, const char *fallback,
                      char ret[CTX_NAME_MAX + 1])
{
    const char *name = field_text(in, field, SIZE_MAX, fallback);

    if (!name)
        field_wrong(in, "'%s' is missing", field);
    fields_check(in, context_name_check(field, name, in->e));
    snprintf(ret, CTX_NAME_MAX + 1, "%s", name ? name : "");
}

void call_read_place(struct fields *in, const struct tool_place *place, struct tool_call *ret)
{
    read_name(in, "conversationId", place->conversation, ret->conversation);
    read_name(in, "pathId", place->path, ret->path);
    snprintf(ret->template_name, sizeof(ret->template_name), "%s",
             field_text(in, "template", CTX_TEMPLATE_MAX, ""));
}

uint64_t call_read_timeout(struct fields *in, const struct context_limits *limits)
{
    const json_t *v = field_get(in, "timeoutSeconds");
    double seconds = json_number_value(v);

    if (!v)
        return limits->execution_ms;
    if (!json_is_number(v) || !(seconds > 0))
        field_must(in, "timeoutSeconds", "a number greater than 0");
    if (seconds * 1000 > (double)limits->execution_max_ms)
        fields_invalid(in, "timeoutSeconds is %g: the limit is %g s (execution_timeout_max)",
                       seconds, (double)limits->execution_max_ms / 1000);
    return !fields_ok(in) ? 0 : seconds < 0.001 ? 1 : (uint64_t)(seconds * 1000);
}

json_t *call_read_code(struct fields *in, const struct context_limits *limits)
{
    json_t *v = field_get(in, "code");
    size_t len = json_string_length(v);

    if (v && len == 0)
        field_must(in, "code", "a string that is not empty");
    if (len > limits->code_max)
        fields_fail(in, SG_ERR_INVALID, -E2BIG,
                    "the code has %zu bytes: the limit is %zu (code_max)", len, limits->code_max);
    return v;
}

json_t *call_read_envs(struct fields *in)
{
    json_t *envs = field_texts(in, "envs", ENVS_MAX), *value;
    const char *name;

    json_object_foreach(envs, name, value)
    {
        if (!name[0] || strchr(name, '=') ||
            strlen(name) + json_string_length(value) + 2 > OPS_ARG_MAX)
            field_wrong(in,
                        "'envs': \"%.64s\" must be a name without '=', and with its value less "
                        "than %u bytes",
                        name, OPS_ARG_MAX);
    }
    return envs;
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
        return err_invalid(e, "unknown language '%.64s': use %s", name,
                           language_names(n_languages_with_program, names));
    *ret_kernel = language_full_name(l->name); /* a name of the table: the call outlives its JSON */
    return 0;
}

int code_call_read(const struct context_limits *limits, const json_t *arguments,
                   const struct tool_place *place, struct tool_call *ret, struct sg_error *e)
{
    struct fields in = request_fields(arguments, e);
    struct tool_call c = {0};

    fields_known(&in, "conversationId", "pathId", "messageId", "code", "language", "timeoutSeconds",
                 "envs", "template");
    call_read_place(&in, place, &c);
    if (place->message || field_get(&in, "messageId"))
        read_name(&in, "messageId", place->message, c.message);
    const char *language = field_text(&in, "language", SIZE_MAX, languages[0].name);
    fields_check(&in, tool_language(language, &c.kernel, e));
    c.code = json_incref(call_read_code(&in, limits));
    if (!c.code)
        field_wrong(&in, "'code' is missing");
    c.timeout_ms = call_read_timeout(&in, limits);
    c.envs = json_incref(call_read_envs(&in));
    if (in.r < 0)
        tool_call_done(&c);
    else
        *ret = c;
    return in.r;
}
