/* Reads values of JSON objects that need no check: our own notes, and answers to ourselves. Every
 * value may be missing or of another type; these functions then return a default. (They are jr_*,
 * since json_* belongs to jansson.) Objects whose writer must hear what is wrong with them are read
 * with lib/json/fields.h. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

static inline const char *jr_text_or(const json_t *object, const char *key, const char *fallback)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text ? text : fallback;
}

static inline const char *jr_text(const json_t *object, const char *key)
{
    return jr_text_or(object, key, "");
}

static inline json_int_t jr_int(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

static inline bool jr_flag(const json_t *object, const char *key)
{
    return json_is_true(json_object_get(object, key));
}
