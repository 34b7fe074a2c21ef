/* Whether text of unknown origin is JSON: for code that passes it on without looking inside. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* The text must be one object and nothing else, strictly by RFC 8259: valid UTF-8, no control
 * characters in strings, at most 64 levels. Blanks around the object are allowed. */
bool json_check_object(const char *text, size_t len);
/* How much memory a tree of this text would cost, before one is made: a tree of small values takes
 * a hundred times the memory of their text. Brackets in strings do not count. Does not check that
 * the text is JSON: a parser does. */
struct json_weight {
    size_t depth;
    size_t values; /* an object or array is as heavy as JSON_WEIGHT_NESTED others */
    size_t nested; /* objects and arrays */
};
#define JSON_WEIGHT_NESTED 4
struct json_weight json_weigh(const char *text, size_t len);
