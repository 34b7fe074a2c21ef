#include "front/interpreter/results.h"

#include <string.h>

enum field_type { TEXT, BASE64, OBJECT, OBJECT_OR_ARRAY };

static const struct {
    const char *name;
    enum field_type type;
} fields[] = {
    {"text", TEXT},       {"html", TEXT},   {"markdown", TEXT},        {"svg", TEXT},
    {"png", BASE64},      {"jpeg", BASE64}, {"pdf", BASE64},           {"latex", TEXT},
    {"javascript", TEXT}, {"data", OBJECT}, {"json", OBJECT_OR_ARRAY}, {"chart", OBJECT},
    {"extra", OBJECT},
};

static const char *const error_parts[] = {"name", "value", "traceback"};
_Static_assert(ARRAY_SIZE(error_parts) == ERROR_PARTS_, "a name for each part");

void results_init(struct results *r, struct lines *l, struct output_filter *o)
{
    memset(r, 0, sizeof(*r));
    r->lines = l;
    r->output_filter = o;
    r->field = -1;
    for (size_t i = 0; i < ERROR_PARTS_; i++)
        strbuf_init(&r->error[i], RESULT_ERROR);
}

void results_done(struct results *r)
{
    for (size_t i = 0; i < ERROR_PARTS_; i++)
        strbuf_done(&r->error[i]);
}

bool results_open(const struct results *r)
{
    return r->begun;
}

/* ---- fields ---------------------------------------------------------------------------------- */

static bool is_text(enum field_type type)
{
    return type == TEXT || type == BASE64;
}

static int field_find(const char *key, size_t len, bool json)
{
    for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
        if (strlen(fields[i].name) == len && memcmp(fields[i].name, key, len) == 0)
            return json == !is_text(fields[i].type) ? (int)i : -1;
    return -1;
}

static void put_key(struct results *r)
{
    if (!r->begun) {
        lines_put_str(r->lines, "{\"type\":\"result\",\"is_main_result\":");
        lines_put_str(r->lines, r->main ? "true" : "false");
        r->begun = true;
    }
    lines_put_str(r->lines, ",\"");
    lines_put_str(r->lines, fields[r->field].name);
    lines_put_str(r->lines, "\":");
}

/* Ends the field. Bytes of it that the output filter still holds back are dropped. */
static void field_over(struct results *r)
{
    if (r->field >= 0 && is_text(fields[r->field].type)) {
        lines_put_text_end(r->lines, &r->text);
        lines_put_str(r->lines, "\"");
    } else if (r->field >= 0 && r->json_begun && !json_text_close(&r->json)) {
        put_key(r);
        lines_put_str(r->lines, "null");
    }
    r->field = -1;
    output_filter_flush(r->output_filter, OUTPUT_FILTER_RESULT);
}

static void field_begin(struct results *r, int field)
{
    r->field = field;
    r->seen |= 1u << field;
    r->text = (struct escape){0};
    r->json_begun = false;
    r->json_bytes = 0;
    if (is_text(fields[field].type)) {
        put_key(r);
        lines_put_str(r->lines, "\"");
    }
}

/* Whether JSON that starts with this character can be a value of the field. If not, the field is
 * not begun. */
static bool json_may_begin(const struct results *r, char c)
{
    return c == '{' || (c == '[' && fields[r->field].type == OBJECT_OR_ARRAY);
}

static void json_piece(struct results *r, const char *p, size_t len)
{
    r->json_bytes += len;
    if (!r->json_begun) {
        size_t blank = 0;
        while (blank < len && strchr(" \t\r\n", p[blank]) && p[blank])
            blank++;
        p += blank;
        len -= blank;
        if (len == 0)
            return;
        if (!json_may_begin(r, *p)) {
            field_over(r);
            return;
        }
        put_key(r);
        json_text_begin(&r->json, r->lines);
        r->json_begun = true;
    }
    if (r->json_bytes > RESULT_JSON || !json_text_add(&r->json, p, len))
        field_over(r);
}

static void field_piece(struct results *r, struct output_filter_text text)
{
    if (is_text(fields[r->field].type))
        lines_put_text(r->lines, &r->text, text.p, text.len);
    else
        json_piece(r, text.p, text.len);
}

static void field_end(struct results *r)
{
    if (r->field >= 0)
        field_piece(r, output_filter_flush(r->output_filter, OUTPUT_FILTER_RESULT));
    field_over(r);
}

/* ---- packets --------------------------------------------------------------------------------- */

static void begin(struct results *r, const char *p, size_t len)
{
    char kind = len == 1 ? *p : '\0';

    results_close(r);
    r->main = kind == 'm';
    r->kind = kind == 'm' || kind == 'd'  ? RESULT_VALUE
              : kind == 'e' && !r->failed ? RESULT_FAILURE
                                          : RESULT_IGNORED;
    r->failed |= r->kind == RESULT_FAILURE;
}

static void value_piece(struct results *r, const char *key, size_t key_len, const char *p,
                        size_t len, bool json)
{
    int field = field_find(key, key_len, json);

    if (field < 0 || field != r->field) {
        field_end(r);
        if (field < 0 || r->seen & 1u << field)
            return;
        field_begin(r, field);
    }
    /* The output filter does not look at pictures. */
    if (fields[field].type == BASE64)
        field_piece(r, (struct output_filter_text){p, len});
    else
        field_piece(r, output_filter_feed(r->output_filter, OUTPUT_FILTER_RESULT, p, len));
}

static void error_piece(struct results *r, const char *key, size_t key_len, const char *p,
                        size_t len)
{
    for (size_t i = 0; i < ERROR_PARTS_; i++)
        if (strlen(error_parts[i]) == key_len && memcmp(error_parts[i], key, key_len) == 0)
            strbuf_add(&r->error[i], p, len);
}

static void piece(struct results *r, const char *p, size_t len, bool json)
{
    const char *nul = memchr(p, '\0', len);

    r->bytes += len;
    if (!nul || r->bytes > RESULT_MAX)
        return;
    size_t key_len = (size_t)(nul - p);
    if (r->kind == RESULT_VALUE)
        value_piece(r, p, key_len, nul + 1, len - key_len - 1, json);
    else if (r->kind == RESULT_FAILURE && !json)
        error_piece(r, p, key_len, nul + 1, len - key_len - 1);
}

void results_packet(struct results *r, const void *packet, size_t len)
{
    const char *p = packet;

    if (len == 0)
        return;
    switch (p[0]) {
    case 'R':
        begin(r, p + 1, len - 1);
        break;
    case 'T':
    case 'J':
        piece(r, p + 1, len - 1, p[0] == 'J');
        break;
    case 'r':
        results_close(r);
        break;
    default:
        break;
    }
    lines_flush(r->lines);
}

void results_close(struct results *r)
{
    field_end(r);
    if (r->begun)
        lines_put_str(r->lines, "}\n");
    r->begun = false;
    r->kind = RESULT_NONE;
    r->seen = 0;
    r->bytes = 0;
    lines_flush(r->lines);
}
