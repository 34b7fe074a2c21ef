/* Whether text of unknown origin is JSON, for what passes it on without looking inside. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* One object and nothing else, strictly as RFC 8259 has it: valid UTF-8, no control characters in
 * strings, at most 64 levels. Blanks around it are allowed. */
bool json_check_object(const char *text, size_t len);
/* How much a tree of this text would cost, before it is made: a tree of small values takes a
 * hundred times the memory of their text. Brackets in strings do not count; whether it is JSON at
 * all, a parser says. */
struct json_weight {
    size_t depth;
    size_t values; /* an object or array is as heavy as JSON_WEIGHT_NESTED others */
};
#define JSON_WEIGHT_NESTED 4
struct json_weight json_weigh(const char *text, size_t len);
