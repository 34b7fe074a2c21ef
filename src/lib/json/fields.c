#include "lib/json/fields.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- errors ---------------------------------------------------------------------------------- */

int *fields_result(struct fields *in)
{
    while (in->outer)
        in = in->outer;
    return &in->r;
}

bool fields_ok(const struct fields *in)
{
    while (in->outer)
        in = in->outer;
    return in->r == 0;
}

PRINTF(5, 0)
static int fail(struct fields *in, const char *prefix, enum sg_error_kind kind, int code,
                const char *fmt, va_list ap)
{
    /* Longer than the error's own, which knows how to cut a text. */
    char message[sizeof(in->e->message) + 8];

    vsnprintf(message, sizeof(message), fmt, ap);
    fields_check(in, err_set(in->e, kind, code, "%s%s", prefix, message));
    return *fields_result(in);
}

int fields_fail(struct fields *in, enum sg_error_kind kind, int code, const char *fmt, ...)
{
    va_list ap;
    int r;

    va_start(ap, fmt);
    r = fail(in, "", kind, code, fmt, ap);
    va_end(ap);
    return r;
}

int field_wrong(struct fields *in, const char *fmt, ...)
{
    va_list ap;
    int r;

    va_start(ap, fmt);
    r = fail(in, in->prefix, SG_ERR_INVALID, -EINVAL, fmt, ap);
    va_end(ap);
    return r;
}

int field_must(struct fields *in, const char *name, const char *what)
{
    const char *mark = in->bare ? "" : "'";

    return field_wrong(in, "%s%s%s must be %s", mark, name, mark, what);
}

/* ---- values ---------------------------------------------------------------------------------- */

json_t *field_get(const struct fields *in, const char *name)
{
    json_t *v = json_object_get(in->object, name);

    return json_is_null(v) && !in->strict ? NULL : v;
}

/* The value if it is of this type. NULL: there is none, or there is an error. */
static json_t *typed(struct fields *in, const char *name, json_type type, const char *what)
{
    json_t *v = fields_ok(in) ? field_get(in, name) : NULL;

    if (!v || json_typeof(v) == type)
        return v;
    field_must(in, name, what);
    return NULL;
}

int field_tristate(struct fields *in, const char *name)
{
    const json_t *v = fields_ok(in) ? field_get(in, name) : NULL;

    if (v && !json_is_boolean(v))
        field_must(in, name, "true or false");
    return v && fields_ok(in) ? json_is_true(v) : -1;
}

bool field_flag(struct fields *in, const char *name, bool fallback)
{
    int v = field_tristate(in, name);

    return v < 0 ? fallback : v > 0;
}

int32_t field_int(struct fields *in, const char *name, int32_t fallback)
{
    const json_t *v = typed(in, name, JSON_INTEGER, "a whole number");
    json_int_t n = json_integer_value(v);

    if (n < INT32_MIN || n > INT32_MAX)
        field_must(in, name, "a number of at most 32 bits");
    return v && fields_ok(in) ? (int32_t)n : fallback;
}

uint64_t field_count(struct fields *in, const char *name, uint64_t min, uint64_t max,
                     uint64_t fallback)
{
    const json_t *v = typed(in, name, JSON_INTEGER, "a whole number");
    json_int_t n = json_integer_value(v);

    if (max <= INT32_MAX)
        n = field_int(in, name, 0);
    if (v && fields_ok(in) && (n < 0 || (uint64_t)n < min || (uint64_t)n > max))
        field_wrong(in, "'%s' must be from %llu to %llu", name, (unsigned long long)min,
                    (unsigned long long)max);
    return v && fields_ok(in) ? (uint64_t)n : fallback;
}

double field_real(struct fields *in, const char *name, double min, double max, double fallback)
{
    const json_t *v = fields_ok(in) ? field_get(in, name) : NULL;
    double number = json_number_value(v);

    if (v && (!json_is_number(v) || !(number >= min && number <= max)))
        field_wrong(in, "'%s' must be a number from %g to %g", name, min, max);
    return v && fields_ok(in) ? number : fallback;
}

const char *field_text(struct fields *in, const char *name, size_t max, const char *fallback)
{
    const json_t *v = typed(in, name, JSON_STRING, "a string");

    if (json_string_length(v) > max)
        field_wrong(in, "'%s' has more than %zu bytes", name, max);
    return v && fields_ok(in) ? json_string_value(v) : fallback;
}

void field_copy(struct fields *in, const char *name, char *ret, size_t cap)
{
    const char *text = field_text(in, name, cap - 1, NULL);

    if (text)
        memcpy(ret, text, strlen(text) + 1);
    else
        field_wrong(in, "'%s' is missing", name);
}

size_t field_word(struct fields *in, const char *name, const char *const *words, size_t n,
                  size_t fallback, const char *what)
{
    const char *text = field_text(in, name, SIZE_MAX, NULL);

    for (size_t i = 0; text && i < n; i++)
        if (strcmp(text, words[i]) == 0)
            return i;
    if (text)
        field_must(in, name, what);
    return fallback;
}

json_t *field_array(struct fields *in, const char *name, size_t max)
{
    json_t *v = typed(in, name, JSON_ARRAY, "an array");

    if (json_array_size(v) > max)
        field_wrong(in, "'%s' has more than %zu entries", name, max);
    return fields_ok(in) ? v : NULL;
}

struct fields fields_within(struct fields *in, const json_t *object)
{
    return (struct fields){.object = object,
                           .prefix = in->prefix,
                           .e = in->e,
                           .bare = in->bare,
                           .strict = in->strict,
                           .outer = in};
}

struct fields field_object(struct fields *in, const char *name)
{
    return fields_within(in, typed(in, name, JSON_OBJECT, "an object"));
}

json_t *field_texts(struct fields *in, const char *name, size_t max)
{
    json_t *v = typed(in, name, JSON_OBJECT, "an object"), *value;
    size_t bytes = 0;
    const char *key;

    json_object_foreach(v, key, value)
    {
        if (!json_is_string(value))
            field_must(in, name, "an object of strings");
        bytes += strlen(key) + json_string_length(value);
    }
    if (bytes > max && fields_ok(in))
        fields_fail(in, SG_ERR_INVALID, -E2BIG, "%s'%s' has more than %zu bytes", in->prefix, name,
                    max);
    return fields_ok(in) ? v : NULL;
}

void fields_only(struct fields *in, const char *const *names)
{
    json_t *object = (json_t *)(uintptr_t)in->object, *value;
    const char *key;

    json_object_foreach(object, key, value)
    {
        size_t i = 0;

        while (names[i] && strcmp(names[i], key) != 0)
            i++;
        if (!names[i])
            field_wrong(in, "unknown field '%.64s'", key);
    }
}
