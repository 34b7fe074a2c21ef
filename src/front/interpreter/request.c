#include "front/interpreter/request.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/languages.h"
#include "front/interpreter/routes.h"
#include "lib/json/fields.h"

#define VALUES_MAX    (4 * OPS_ARGS_MAX) /* values in a body: far more than a request needs */
#define TIMEOUT_MAX_S 1e9

/* Counts the values of a body before it is parsed: a tree of small values takes far more memory
 * than its text. Strings are skipped. */
static bool too_many_values(const char *body, size_t len)
{
    size_t values = 0;
    bool in_string = false;

    for (size_t i = 0; i < len && values <= VALUES_MAX; i++) {
        char c = body[i];
        if (in_string) {
            i += c == '\\';
            in_string = c != '"';
        } else {
            in_string = c == '"';
            values += c == ',' || c == '[' || c == '{';
        }
    }
    return values > VALUES_MAX;
}

struct made {
    json_t *value; /* NULL: `heavy` or `wrong` says why */
    bool heavy;
    json_error_t wrong;
};

/* Parses a body; runs on a thread if the body is long. A NUL in the code is left to its language to
 * judge. */
static void *make(const void *schema UNUSED, const char *body, size_t len)
{
    struct made *m = xcalloc(1, sizeof(*m));

    m->heavy = too_many_values(body, len);
    if (!m->heavy)
        m->value = json_loadb(body, len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &m->wrong);
    return m;
}

static void drop(void *made)
{
    json_decref(((struct made *)made)->value);
    free(made);
}

const struct http_make interpreter_make = {make, drop};

static json_t *take(struct http_req *req, void *made)
{
    AUTO(free_p) struct made *m = made;
    json_t *v = m->value;

    if (m->heavy) {
        refuse(req, 400, "the body has more than %d values", VALUES_MAX);
    } else if (!v) {
        refuse(req, 400, "the body is not valid JSON at byte %d: %s", m->wrong.position,
               m->wrong.text);
    } else if (!json_is_object(v)) {
        refuse(req, 422, "the body must be a JSON object");
        json_decref(v);
        v = NULL;
    }
    return v;
}

/* ---- fields ---------------------------------------------------------------------------------- */

static struct fields fields_of(const json_t *body, struct sg_error *e)
{
    return (struct fields){.object = body, .prefix = "", .e = e, .bare = true};
}

/* Whether all fields were right. False: answered. */
static bool all_right(struct http_req *req, const struct fields *in)
{
    if (in->r < 0)
        refuse(req, in->r == -E2BIG ? 413 : 422, "%s", in->e->message);
    return in->r == 0;
}

/* A string without NUL. */
static const char *get_string(struct fields *in, const char *name)
{
    const char *text = field_text(in, name, SIZE_MAX, "");

    if (strlen(text) != json_string_length(field_get(in, name)))
        field_must(in, name, "a string");
    return text;
}

/* Puts a language's name into lower case, and replaces the other names that SDKs use. A name that
 * is too long is cut: no such language exists, and the agent's refusal lists those that do. */
static void normal_language(const char *given, char ret[LANGUAGE_MAX + 1])
{
    snprintf(ret, LANGUAGE_MAX + 1, "%s", given);
    for (char *p = ret; *p; p++)
        if (*p >= 'A' && *p <= 'Z')
            *p = (char)(*p - 'A' + 'a');
    if (*ret && language_full_name(ret) != ret)
        snprintf(ret, LANGUAGE_MAX + 1, "%s", language_full_name(ret));
}

static void get_code(struct fields *in, struct execute_request *ret)
{
    const json_t *code = json_object_get(in->object, "code");

    ret->code = json_string_value(code);
    ret->code_len = json_string_length(code);
    if (!code)
        field_wrong(in, "code is missing");
    if (!ret->code)
        field_must(in, "code", "a string");
    if (ret->code_len > KERNEL_CODE_MAX)
        fields_fail(in, SG_ERR_INVALID, -E2BIG,
                    "the code is longer than %u bytes: write it to a file", KERNEL_CODE_MAX);
}

static bool env_valid(const char *name, const json_t *value)
{
    const char *text = json_string_value(value);

    return name[0] != '\0' && !strchr(name, '=') && text &&
           strlen(text) == json_string_length(value) &&
           strlen(name) + strlen(text) + 2 <= OPS_ARG_MAX;
}

static json_t *get_envs(struct fields *in)
{
    json_t *envs = field_get(in, "env_vars"), *value;
    const char *name;

    if (envs && (!json_is_object(envs) || json_object_size(envs) > OPS_ARGS_MAX))
        field_wrong(in, "env_vars must be an object of strings, with at most %d of them",
                    OPS_ARGS_MAX);
    json_object_foreach(envs, name, value)
    {
        if (!env_valid(name, value))
            field_wrong(
                in,
                "env_vars: '%.64s' must be a name without '=', its value a string, and both "
                "together less than %u bytes",
                name, OPS_ARG_MAX);
    }
    return envs;
}

static uint64_t get_timeout(struct fields *in)
{
    const json_t *v = field_get(in, "timeout");
    double seconds = json_number_value(v);

    if (v && (!json_is_number(v) || !(seconds >= 0 && seconds <= TIMEOUT_MAX_S))) {
        field_must(in, "timeout", "a number of seconds");
        return 0;
    }
    /* 0 means no limit, so a timeout below a millisecond must not be rounded to 0. */
    return seconds > 0 && seconds < 0.001 ? 1 : (uint64_t)(seconds * 1000);
}

static bool get_execute(struct http_req *req, struct execute_request *ret)
{
    struct sg_error e;
    struct fields in = fields_of(ret->body, &e);

    get_code(&in, ret);
    normal_language(get_string(&in, "language"), ret->language);
    const char *context = get_string(&in, "context_id");
    ret->envs = get_envs(&in);
    ret->timeout_ms = get_timeout(&in);
    if (!all_right(req, &in))
        return false;
    if (context[0] && ret->language[0]) {
        refuse(req, 400, "Only one of context_id or language can be provided");
        return false;
    }
    if (strlen(context) > KERNEL_ID_LEN) {
        refuse(req, 404, "Context %.64s not found", context);
        return false;
    }
    snprintf(ret->context, sizeof(ret->context), "%s", context);
    return true;
}

bool execute_request_take(struct http_req *req, void *made, struct execute_request *ret)
{
    *ret = (struct execute_request){.body = take(req, made)};
    if (!ret->body)
        return false;
    if (get_execute(req, ret))
        return true;
    json_decref(steal_ptr(&ret->body));
    return false;
}

bool context_request_parse(struct http_req *req, const char *body, size_t len,
                           struct context_request *ret)
{
    json_t *v = len == 0 ? json_object() : take(req, make(NULL, body, len));
    struct sg_error e;
    struct fields in = fields_of(v, &e);

    if (!v)
        return false;
    normal_language(get_string(&in, "language"), ret->language);
    const char *cwd = get_string(&in, "cwd");
    if (strlen(cwd) >= OPS_PATH_MAX)
        field_wrong(&in, "cwd is longer than %d bytes", OPS_PATH_MAX - 1);
    snprintf(ret->cwd, sizeof(ret->cwd), "%s", cwd);
    json_decref(v);
    return all_right(req, &in);
}
