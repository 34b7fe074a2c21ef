#include "front/mcp/shown.h"

#include <string.h>

#include "lib/json/values.h"
#include "lib/text/json_check.h"

#define FORM_MAX   (64u * 1024)  /* bytes of one form of a result, as data */
#define VALUES_MAX (256u * 1024) /* values in results: a tree of them takes much memory */
#define NOTHING    "(no output)"
#define LOST                                                                      \
    "Note: the sandbox of this path was lost and replaced. Variables, files and " \
    "processes from before are gone."
#define KEPT_LOST                                                                             \
    "Note: this server could not read the metadata, environment variables and network rules " \
    "of this path: the sandbox has none of them, and no network."

/* How a result is shown: as the first of these forms that it has. */
static const struct {
    const char *field, *image; /* image: its type, or NULL for a text */
} forms[] = {
    {"png", "image/png"}, {"jpeg", "image/jpeg"}, {"markdown", NULL}, {"text", NULL},
    {"json", NULL},       {"latex", NULL},        {"html", NULL},     {"javascript", NULL},
};

/* Forms that are added as resources, whatever other forms the result has. */
static const struct {
    const char *field, *type;
} resources[] = {
    {"svg", "image/svg+xml"},
    {"chart", "application/json"},
    {"pdf", "application/pdf"},
};

/* ---- texts ----------------------------------------------------------------------------------- */

static void put_text(struct result *r, const char *before, const char *text, size_t len, bool cut,
                     size_t max)
{
    size_t n = text_cut(text, len, max);
    AUTO(strbuf_done) struct strbuf all = strbuf_upto(n + 256);

    if (len == 0)
        return;
    strbuf_addstr(&all, before);
    strbuf_add(&all, text, n);
    if (cut || n < len)
        strbuf_addf(&all, "\n(cut after %zu bytes)", n);
    result_text(r, all.buf, all.len);
}

void shown_output(struct result *ret, const struct strbuf *out, bool out_cut,
                  const struct strbuf *err, bool err_cut, size_t max)
{
    put_text(ret, "", out->buf, out->len, out_cut, max);
    put_text(ret, "[stderr]\n", err->buf, err->len, err_cut, max);
}

/* Adds an error. A traceback ends with the error itself, so name and value are left out then. */
static void put_error(struct result *r, const char *json, size_t max)
{
    json_t *error = json ? json_loads(json, 0, NULL) : NULL;
    const char *traceback = jr_text(error, "traceback");

    if (traceback[0])
        put_text(r, "", traceback, strlen(traceback), false, max);
    else if (error)
        result_textf(r, "%s: %s", jr_text_or(error, "name", "Error"), jr_text(error, "value"));
    json_decref(error);
}

/* ---- results --------------------------------------------------------------------------------- */

static void put_json(struct result *r, const json_t *v, bool as_resource)
{
    AUTO(free_p) char *text = json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY);

    if (text && as_resource)
        result_resource(r, "application/json", NULL, text, NULL, strlen(text));
    else if (text)
        result_text(r, text, strlen(text));
}

static bool put_resources(struct result *r, const json_t *one)
{
    bool any = false;

    for (size_t i = 0; i < ARRAY_SIZE(resources); i++) {
        const json_t *v = json_object_get(one, resources[i].field);
        bool blob = strcmp(resources[i].field, "pdf") == 0;

        if (json_is_object(v))
            put_json(r, v, true);
        else if (json_is_string(v))
            result_resource(r, resources[i].type, NULL, blob ? NULL : json_string_value(v),
                            blob ? json_string_value(v) : NULL, json_string_length(v));
        any = any || json_is_object(v) || json_is_string(v);
    }
    return any;
}

/* Whether a text is like "<IPython.core.display.HTML object>", which only stands for another
 * form. */
static bool says_nothing(const json_t *text)
{
    static const char tail[] = " object>";
    const char *s = json_string_value(text);
    size_t len = json_string_length(text), n = sizeof(tail) - 1;

    return len > n && s[0] == '<' && memcmp(s + len - n, tail, n) == 0;
}

static bool put_form(struct result *r, const json_t *one)
{
    for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
        const json_t *v = json_object_get(one, forms[i].field);

        if (!v || json_is_null(v) || (strcmp(forms[i].field, "text") == 0 && says_nothing(v)))
            continue;
        if (forms[i].image && json_is_string(v))
            result_image(r, forms[i].image, json_string_value(v), json_string_length(v));
        else if (json_is_string(v))
            put_text(r, "", json_string_value(v), json_string_length(v), false, SIZE_MAX);
        else
            put_json(r, v, false);
        return true;
    }
    return false;
}

static void put_result(struct result *r, const json_t *one)
{
    const json_t *text = json_object_get(one, "text");
    bool form = put_form(r, one);

    if (!put_resources(r, one) && !form && json_is_string(text))
        result_text(r, json_string_value(text), json_string_length(text));
}

/* ---- the same as data ------------------------------------------------------------------------ */

/* Whether the data leaves out a form: pictures and PDFs as base64 are of no use in data, and are in
 * the content already. */
static bool is_left_out(const char *field, const json_t *v)
{
    static const char *const bytes[] = {"png", "jpeg", "pdf"};

    for (size_t i = 0; i < ARRAY_SIZE(bytes); i++)
        if (strcmp(bytes[i], field) == 0)
            return true;
    return json_is_string(v) && json_string_length(v) > FORM_MAX;
}

static void thin_out(json_t *one)
{
    json_t *omitted = json_array(), *v;
    const char *field;
    void *next;

    json_object_foreach_safe(one, next, field, v)
    {
        if (is_left_out(field, v)) {
            json_array_append_new(omitted, json_string(field));
            json_object_del(one, field);
        }
    }
    if (json_array_size(omitted) > 0)
        json_object_set(one, "omitted", omitted);
    json_decref(omitted);
}

/* The result as data; the caller frees it. NULL: it is too large. */
static char *data_of(enum tool t, const struct tool_result *r)
{
    AUTO(strbuf_done) struct strbuf whole = strbuf_upto(TOOL_ANSWER_MAX);
    struct json j = {.out = &whole};

    tool_result_json(&j, t, r, NULL);
    json_t *tree = whole.truncated ? NULL : json_loadb(whole.buf, whole.len, 0, NULL);
    const json_t *results = json_object_get(tree, "results");
    for (size_t i = 0; i < json_array_size(results); i++)
        thin_out(json_array_get(results, i));
    char *text = tree ? json_dumps(tree, JSON_COMPACT) : NULL;
    json_decref(tree);
    return text;
}

/* ---- the whole answer ------------------------------------------------------------------------ */

static void put_notes(struct result *r, enum tool t, const struct tool_result *run)
{
    if (run->replaced)
        result_text(r, LOST, strlen(LOST));
    if (run->kept_lost)
        result_text(r, KEPT_LOST, strlen(KEPT_LOST));
    if (t == TOOL_RUN_ANALYSIS && run->parse_error)
        result_textf(r, "The output does not have the declared format: %s", run->parse_error);
    if (run->exit_code == 124)
        result_textf(r, "It ran out of time.");
}

static void build(struct result *ret, enum mcp_version version, enum tool t,
                  const struct tool_result *r, bool whole)
{
    json_t *results = whole ? json_loads(r->results, 0, NULL) : NULL;
    AUTO(free_p) char *data = whole ? data_of(t, r) : NULL;
    size_t max = whole ? SIZE_MAX : SHOWN_SHORT_MAX;

    result_begin(ret, version);
    size_t empty = ret->out.len;
    shown_output(ret, r->out, r->out_cut, r->err, r->err_cut, max);
    for (size_t i = 0; i < json_array_size(results); i++)
        put_result(ret, json_array_get(results, i));
    json_decref(results);
    if (!whole)
        result_textf(ret,
                     "Results and parts of the output were left out: the answer would be "
                     "longer than %u bytes. Write them to files, and read those in parts.",
                     MESSAGE_MAX);
    put_error(ret, r->error, max);
    put_notes(ret, t, r);
    if (ret->out.len == empty)
        result_text(ret, NOTHING, strlen(NOTHING));
    result_end(ret, !r->success, data, data ? strlen(data) : 0);
}

static void build_refusal(struct result *ret, enum mcp_version version, enum tool t,
                          const struct tool_result *r)
{
    AUTO(strbuf_done) struct strbuf data = strbuf_upto(MESSAGE_MAX);
    struct json j = {.out = &data};

    result_begin(ret, version);
    if (r->elsewhere)
        result_textf(ret, RESULT_ELSEWHERE, r->elsewhere);
    else if (tool_unavailable(r->status))
        result_textf(ret, RESULT_UNAVAILABLE, tool_name(t), r->refusal.message);
    else
        result_textf(ret, "%s", r->refusal.message);
    tool_result_json(&j, t, r, NULL);
    result_end(ret, true, data.buf, data.len);
}

static bool too_heavy(const struct tool_result *r)
{
    const char *const texts[] = {r->results, r->result, r->parsed};
    size_t values = 0;

    for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
        if (texts[i])
            values += json_weigh(texts[i], strlen(texts[i])).values;
    return values > VALUES_MAX;
}

void shown_run(struct result *ret, enum mcp_version version, enum tool t,
               const struct tool_result *r)
{
    if (r->status != 200) {
        build_refusal(ret, version, t, r);
        return;
    }
    if (!too_heavy(r)) {
        build(ret, version, t, r, true);
        if (!ret->out.truncated)
            return;
        result_done(ret);
    }
    build(ret, version, t, r, false);
}
