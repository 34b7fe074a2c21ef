#include "front/tools/parsed.h"

#include <string.h>

#include "front/interpreter/json_text.h"

/* ---- the value of a cell --------------------------------------------------------------------- */

/* The end of the JSON value that begins at p. The text has been checked, and has no blanks. */
static const char *value_end(const char *p, const char *end)
{
    bool in_string = false;
    unsigned depth = 0;

    for (; p < end; p++) {
        if (in_string && *p == '\\') {
            p++;
            continue;
        }
        if (in_string) {
            in_string = *p != '"';
            continue;
        }
        if (depth == 0 && (*p == ',' || *p == ':' || *p == '}' || *p == ']'))
            return p;
        in_string = *p == '"';
        depth += *p == '{' || *p == '[';
        depth -= *p == '}' || *p == ']';
    }
    return end;
}

/* A field of the value. If several have the name, the last one counts. NULL: there is none. */
static const char *value_field(const struct gather *g, const char *name, size_t *ret_len)
{
    const char *p = g->results.buf + g->main_at + 1, *found = NULL;
    const char *end = g->results.buf + g->main_at + g->main_len;
    size_t len = strlen(name);

    while (g->main_len > 0 && p < end && *p == '"') {
        const char *key_end = value_end(p, end), *value = key_end + 1;
        const char *value_over = value < end ? value_end(value, end) : end;

        if ((size_t)(key_end - p) == len + 2 && memcmp(p + 1, name, len) == 0) {
            found = value;
            *ret_len = (size_t)(value_over - value);
        }
        p = value_over + 1;
    }
    return found && memcmp(found, "null", *ret_len < 4 ? *ret_len : 4) != 0 ? found : NULL;
}

const char *parsed_value(const struct gather *g, size_t *ret_len)
{
    const char *json = value_field(g, "json", ret_len);

    return json ? json : value_field(g, "text", ret_len);
}

/* ---- output ---------------------------------------------------------------------------------- */

static void on_write(void *owner, const char *p, size_t len)
{
    strbuf_add(owner, p, len);
}

/* Checks and writes JSON with the checker for results (json_text.h), which leaves numbers as they
 * are, however long. To say where an error is, another parser reads the text again. */
static int json_to_json(const char *text, size_t len, struct strbuf *ret, struct sg_error *e)
{
    AUTO(free_p) struct lines_buffer *buffer = xcalloc(1, sizeof(*buffer));
    struct lines lines = {.write = on_write, .owner = ret, .buffer = buffer};
    struct json_text j;
    json_error_t wrong;

    /* json_text takes objects and arrays only, so it gets an array with this one value. */
    json_text_begin(&j, &lines);
    bool ok =
        json_text_add(&j, "[", 1) && json_text_add(&j, text, len) && json_text_add(&j, "]", 1);
    ok &= json_text_close(&j);
    lines_flush(&lines);
    if (ok && ret->truncated)
        return 0; /* the caller looks at `truncated` */
    if (ok && value_end(ret->buf + 1, ret->buf + ret->len) == ret->buf + ret->len - 1) {
        strbuf_consume(ret, 1);
        ret->buf[--ret->len] = '\0';
        return 0;
    }
    json_t *v = json_loadb(text, len, JSON_DECODE_ANY | JSON_ALLOW_NUL, &wrong);
    bool too_deep = v != NULL;
    json_decref(v);
    if (too_deep)
        return err_invalid(e, "the output is JSON that is nested too deep");
    return err_invalid(e, "the output is not JSON: line %d, column %d: %s", wrong.line,
                       wrong.column, wrong.text);
}

static int text_to_json(enum tool_format format, const char *text, size_t len, struct strbuf *ret,
                        struct sg_error *e)
{
    struct json j = {.out = ret};
    int r = 0;

    switch (format) {
    case FORMAT_JSON:
        r = json_to_json(text, len, ret, e);
        break;
    case FORMAT_CSV:
        r = csv_to_json(text, len, ret, e);
        if (r < 0)
            r = err_wrap(e, r, "the output is not a table");
        break;
    case FORMAT_TEXT:
    case FORMAT_MAX_:
        jw_bytes(&j, text, len);
        break;
    }
    if (r == 0 && ret->truncated)
        r = err_set(e, SG_ERR_LIMIT, -E2BIG, "the output has more than %u bytes as JSON",
                    PARSED_MAX);
    return r;
}

static int parse_value(const struct gather *g, enum tool_format format, struct strbuf *ret,
                       struct sg_error *e)
{
    size_t len = 0;
    const char *json = format == FORMAT_JSON ? value_field(g, "json", &len) : NULL;

    if (json) {
        strbuf_add(ret, json, len);
        return ret->truncated ? err_set(e, SG_ERR_LIMIT, -E2BIG, "the value is too large") : 0;
    }
    const char *text = value_field(g, "text", &len);
    if (!text)
        return err_set(e, SG_ERR_INVALID, -ENODATA,
                       "there is no output: print it, or make it the last expression");
    json_t *v = json_loadb(text, len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    int r = text_to_json(format, json_is_string(v) ? json_string_value(v) : "",
                         json_string_length(v), ret, e);
    json_decref(v);
    return r;
}

static bool is_blank(const struct strbuf *s)
{
    return strspn(s->buf, " \t\r\n") == s->len;
}

int parsed_output(const struct gather *g, enum tool_format format, struct strbuf *ret,
                  struct sg_error *e)
{
    if (is_blank(&g->out))
        return parse_value(g, format, ret, e);
    if (g->out_cut)
        return err_set(e, SG_ERR_LIMIT, -E2BIG,
                       "the output has more than %u bytes and was cut: write it to a file",
                       TOOL_OUTPUT_MAX);
    return text_to_json(format, g->out.buf, g->out.len, ret, e);
}
