#include "front/interpreter/request.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/languages.h"
#include "front/interpreter/routes.h"

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

/* Reads a field that is a string without NUL. *ret is "" if the field is absent. */
static bool get_string(struct http_req *req, const json_t *body, const char *name, size_t max,
                       const char **ret)
{
    const json_t *v = json_object_get(body, name);

    *ret = "";
    if (!v || json_is_null(v))
        return true;
    if (!json_is_string(v) || strlen(json_string_value(v)) != json_string_length(v)) {
        refuse(req, 422, "%s must be a string", name);
        return false;
    }
    if (json_string_length(v) > max) {
        refuse(req, 422, "%s is longer than %zu bytes", name, max);
        return false;
    }
    *ret = json_string_value(v);
    return true;
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

static bool get_language(struct http_req *req, const json_t *body, char ret[LANGUAGE_MAX + 1])
{
    const char *given;

    if (!get_string(req, body, "language", SIZE_MAX, &given))
        return false;
    normal_language(given, ret);
    return true;
}

static bool get_code(struct http_req *req, const json_t *body, struct execute_request *ret)
{
    const json_t *code = json_object_get(body, "code");

    if (!json_is_string(code)) {
        refuse(req, 422, code ? "code must be a string" : "code is missing");
        return false;
    }
    ret->code = json_string_value(code);
    ret->code_len = json_string_length(code);
    if (ret->code_len <= KERNEL_CODE_MAX)
        return true;
    refuse(req, 413, "the code is longer than %u bytes: write it to a file", KERNEL_CODE_MAX);
    return false;
}

static bool env_valid(const char *name, const json_t *value)
{
    const char *text = json_string_value(value);

    return name[0] != '\0' && !strchr(name, '=') && text &&
           strlen(text) == json_string_length(value) &&
           strlen(name) + strlen(text) + 2 <= OPS_ARG_MAX;
}

static bool get_envs(struct http_req *req, const json_t *body, struct execute_request *ret)
{
    json_t *envs = json_object_get(body, "env_vars"), *value;
    const char *name;

    ret->envs = json_is_null(envs) ? NULL : envs;
    if (!ret->envs)
        return true;
    if (!json_is_object(envs) || json_object_size(envs) > OPS_ARGS_MAX) {
        refuse(req, 422, "env_vars must be an object of strings, with at most %d of them",
               OPS_ARGS_MAX);
        return false;
    }
    json_object_foreach(envs, name, value)
    {
        if (env_valid(name, value))
            continue;
        refuse(req, 422,
               "env_vars: '%.64s' must be a name without '=', its value a string, and both "
               "together less than %u bytes",
               name, OPS_ARG_MAX);
        return false;
    }
    return true;
}

static bool get_timeout(struct http_req *req, const json_t *body, struct execute_request *ret)
{
    const json_t *v = json_object_get(body, "timeout");
    double seconds = json_number_value(v);

    ret->timeout_ms = 0;
    if (!v || json_is_null(v))
        return true;
    if (!json_is_number(v) || !(seconds >= 0 && seconds <= TIMEOUT_MAX_S)) {
        refuse(req, 422, "timeout must be a number of seconds");
        return false;
    }
    /* 0 means no limit, so a timeout below a millisecond must not be rounded to 0. */
    ret->timeout_ms = seconds > 0 && seconds < 0.001 ? 1 : (uint64_t)(seconds * 1000);
    return true;
}

static bool get_execute(struct http_req *req, struct execute_request *ret)
{
    const char *context;

    if (!get_code(req, ret->body, ret) || !get_language(req, ret->body, ret->language) ||
        !get_string(req, ret->body, "context_id", SIZE_MAX, &context) ||
        !get_envs(req, ret->body, ret) || !get_timeout(req, ret->body, ret))
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
    const char *cwd = "";
    bool ok = v && get_language(req, v, ret->language) &&
              get_string(req, v, "cwd", OPS_PATH_MAX - 1, &cwd);

    if (ok)
        snprintf(ret->cwd, sizeof(ret->cwd), "%s", cwd);
    json_decref(v);
    return ok;
}
