#include "front/interpreter/json_text.h"

#include <math.h>
#include <string.h>

#define REPLACEMENT 0xfffdu

void json_text_begin(struct json_text *j, struct lines *l)
{
    memset(j, 0, sizeof(*j));
    j->lines = l;
    j->state = JSON_TEXT_VALUE;
}

static void put(struct json_text *j, char c)
{
    lines_put(j->lines, &c, 1);
}

static void put_unit(struct json_text *j, uint32_t unit)
{
    char text[6];

    escape_unit(text, unit);
    lines_put(j->lines, text, sizeof(text));
}

static bool in_object(const struct json_text *j)
{
    return j->depth > 0 && (j->objects >> (j->depth - 1) & 1);
}

static bool bad(struct json_text *j)
{
    j->wanted = j->state;
    j->state = JSON_TEXT_BAD;
    return false;
}

/* ---- strings --------------------------------------------------------------------------------- */

/* Half of a surrogate pair alone is no character: U+FFFD stands for it. */
static void drop_high(struct json_text *j)
{
    if (j->high)
        put_unit(j, REPLACEMENT);
    j->high = 0;
}

static void unit_done(struct json_text *j, uint16_t unit)
{
    bool low = unit >= 0xdc00 && unit <= 0xdfff;

    if (low && j->high) {
        put_unit(j, j->high);
        put_unit(j, unit);
        j->high = 0;
        return;
    }
    drop_high(j);
    if (unit >= 0xd800 && unit <= 0xdbff)
        j->high = unit;
    else
        put_unit(j, low ? REPLACEMENT : unit);
}

static void string_end(struct json_text *j)
{
    drop_high(j);
    lines_put_text_end(j->lines, &j->string);
    put(j, '"');
}

/* Returns the number of bytes used, or 0: the text is bad. */
static size_t string_run(struct json_text *j, const char *p, size_t len)
{
    size_t n = 0;

    while (n < len && p[n] != '"' && p[n] != '\\' && (unsigned char)p[n] >= 0x20)
        n++;
    if (n > 0) {
        drop_high(j);
        lines_put_text(j->lines, &j->string, p, n);
        return n;
    }
    if (*p == '"') {
        string_end(j);
        j->state = j->is_key ? JSON_TEXT_COLON : JSON_TEXT_AFTER;
    } else if (*p == '\\') {
        lines_put_text_end(j->lines, &j->string);
        j->state = JSON_TEXT_ESCAPE;
    } else {
        return 0;
    }
    return 1;
}

static bool escape_letter(struct json_text *j, char c)
{
    if (c == 'u') {
        j->state = JSON_TEXT_HEX;
        j->hex = j->n_hex = 0;
        return true;
    }
    if (c == '\0' || !strchr("\"\\/bfnrt", c))
        return bad(j);
    drop_high(j);
    put(j, '\\');
    put(j, c);
    j->state = JSON_TEXT_STRING;
    return true;
}

static bool hex_digit(struct json_text *j, char c)
{
    static const char digits[] = "0123456789abcdef0123456789ABCDEF";
    const char *at = c ? strchr(digits, c) : NULL;

    if (!at)
        return bad(j);
    j->hex = (uint16_t)(j->hex << 4 | ((at - digits) & 15));
    if (++j->n_hex == 4) {
        unit_done(j, j->hex);
        j->state = JSON_TEXT_STRING;
    }
    return true;
}

/* ---- numbers and words ----------------------------------------------------------------------- */

static bool is_token(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == '-' || c == '+' || c == '.' ||
           c == 'E';
}

static const char *skip_digits(const char *p)
{
    while (*p >= '0' && *p <= '9')
        p++;
    return p;
}

/* Whether this is a number as JSON writes it, and one that clients can hold in a double. */
static bool is_number(const char *p)
{
    const char *whole = p;
    const char *from = p += *p == '-';

    p = skip_digits(p);
    if (p == from || (*from == '0' && p - from > 1))
        return false;
    if (*p == '.') {
        from = ++p;
        p = skip_digits(p);
        if (p == from)
            return false;
    }
    if (*p == 'e' || *p == 'E') {
        p += p[1] == '+' || p[1] == '-' ? 2 : 1;
        from = p;
        p = skip_digits(p);
        if (p == from)
            return false;
    }
    return *p == '\0' && isfinite(strtod(whole, NULL));
}

static bool token_end(struct json_text *j)
{
    j->token[j->n_token] = '\0';
    if (strcmp(j->token, "true") != 0 && strcmp(j->token, "false") != 0 &&
        strcmp(j->token, "null") != 0 && !is_number(j->token))
        return bad(j);
    lines_put(j->lines, j->token, j->n_token);
    j->state = JSON_TEXT_AFTER;
    return true;
}

static bool token_char(struct json_text *j, char c)
{
    if (j->n_token == JSON_TEXT_TOKEN)
        return bad(j);
    j->token[j->n_token++] = c;
    return true;
}

/* ---- structure ------------------------------------------------------------------------------- */

static bool open_bracket(struct json_text *j, char c)
{
    if (j->depth == JSON_TEXT_DEPTH)
        return bad(j);
    uint64_t bit = 1ull << j->depth++;
    j->objects = c == '{' ? j->objects | bit : j->objects & ~bit;
    j->state = c == '{' ? JSON_TEXT_FIRST_KEY : JSON_TEXT_FIRST_VALUE;
    put(j, c);
    return true;
}

static bool close_bracket(struct json_text *j, char c)
{
    if (j->depth == 0 || c != (in_object(j) ? '}' : ']'))
        return bad(j);
    put(j, c);
    j->depth--;
    j->state = j->depth == 0 ? JSON_TEXT_WHOLE : JSON_TEXT_AFTER;
    return true;
}

static bool open_string(struct json_text *j, bool is_key)
{
    j->is_key = is_key;
    j->state = JSON_TEXT_STRING;
    put(j, '"');
    return true;
}

static bool value_begins(struct json_text *j, char c)
{
    if (c == '{' || c == '[')
        return open_bracket(j, c);
    if (j->depth == 0) /* the outermost value must be an object or an array */
        return bad(j);
    if (c == '"')
        return open_string(j, false);
    if (!is_token(c))
        return bad(j);
    j->state = JSON_TEXT_TOKEN_;
    j->n_token = 0;
    return token_char(j, c);
}

static bool after_value(struct json_text *j, char c)
{
    if (c != ',')
        return close_bracket(j, c);
    put(j, c);
    j->state = in_object(j) ? JSON_TEXT_KEY : JSON_TEXT_VALUE;
    return true;
}

/* Takes a character outside of strings that is no white space. */
static bool structure(struct json_text *j, char c)
{
    switch (j->state) {
    case JSON_TEXT_FIRST_VALUE:
        return c == ']' ? close_bracket(j, c) : value_begins(j, c);
    case JSON_TEXT_VALUE:
        return value_begins(j, c);
    case JSON_TEXT_FIRST_KEY:
    case JSON_TEXT_KEY:
        if (c == '}' && j->state == JSON_TEXT_FIRST_KEY)
            return close_bracket(j, c);
        return c == '"' ? open_string(j, true) : bad(j);
    case JSON_TEXT_COLON:
        if (c != ':')
            return bad(j);
        put(j, c);
        j->state = JSON_TEXT_VALUE;
        return true;
    case JSON_TEXT_AFTER:
        return after_value(j, c);
    case JSON_TEXT_STRING:
    case JSON_TEXT_ESCAPE:
    case JSON_TEXT_HEX:
    case JSON_TEXT_TOKEN_:
    case JSON_TEXT_WHOLE:
    case JSON_TEXT_BAD:
        break;
    }
    return bad(j);
}

static bool one(struct json_text *j, char c)
{
    if (j->state == JSON_TEXT_ESCAPE)
        return escape_letter(j, c);
    if (j->state == JSON_TEXT_HEX)
        return hex_digit(j, c);
    if (j->state == JSON_TEXT_TOKEN_) {
        if (is_token(c))
            return token_char(j, c);
        if (!token_end(j))
            return false;
    }
    return c == ' ' || c == '\t' || c == '\n' || c == '\r' || structure(j, c);
}

bool json_text_add(struct json_text *j, const char *p, size_t len)
{
    size_t n;

    if (j->state == JSON_TEXT_BAD)
        return false;
    for (; len > 0; p += n, len -= n) {
        n = j->state == JSON_TEXT_STRING ? string_run(j, p, len) : one(j, *p) ? 1 : 0;
        if (n == 0 && j->state != JSON_TEXT_BAD)
            bad(j);
        if (n == 0)
            return false;
    }
    return true;
}

bool json_text_close(struct json_text *j)
{
    if (j->state == JSON_TEXT_WHOLE)
        return true;
    if (j->state != JSON_TEXT_BAD)
        bad(j);
    switch (j->wanted) {
    case JSON_TEXT_STRING:
    case JSON_TEXT_ESCAPE:
    case JSON_TEXT_HEX:
        string_end(j);
        lines_put_str(j->lines, j->is_key ? ":null" : "");
        break;
    case JSON_TEXT_COLON:
        lines_put_str(j->lines, ":null");
        break;
    case JSON_TEXT_KEY:
        lines_put_str(j->lines, "\"\":null");
        break;
    case JSON_TEXT_VALUE:
    case JSON_TEXT_TOKEN_:
        lines_put_str(j->lines, "null");
        break;
    case JSON_TEXT_FIRST_VALUE:
    case JSON_TEXT_FIRST_KEY:
    case JSON_TEXT_AFTER:
    case JSON_TEXT_WHOLE: /* text after the end of the value */
    case JSON_TEXT_BAD:
        break;
    }
    for (; j->depth > 0; j->depth--)
        put(j, in_object(j) ? '}' : ']');
    return false;
}
