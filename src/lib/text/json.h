/* A streaming JSON writer (its functions are jw_*, since json_* belongs to jansson). It adds commas
 * and escapes; nesting errors are our bugs and assert. Strings of unknown bytes are written as
 * UTF-8: each invalid byte becomes U+FFFD. */
#pragma once

#include "lib/text/strbuf.h"

#define JSON_DEPTH_MAX 16

struct json {
    struct strbuf *out;
    unsigned depth;
    bool need_comma[JSON_DEPTH_MAX];
    bool after_key;
};

void jw_init(struct json *j, struct strbuf *out);
void jw_object_begin(struct json *j);
void jw_object_end(struct json *j);
void jw_array_begin(struct json *j);
void jw_array_end(struct json *j);
/* Returns j, for the value: jw_string(jw_key(j, "id"), id). */
struct json *jw_key(struct json *j, const char *key);
void jw_string(struct json *j, const char *s); /* NULL writes null */
void jw_bytes(struct json *j, const void *data, size_t len);
void jw_u64(struct json *j, uint64_t v);
void jw_i64(struct json *j, int64_t v);
void jw_fixed(struct json *j, uint64_t v, unsigned decimals); /* 1234, 3 -> 1.234 */
void jw_bool(struct json *j, bool v);
void jw_null(struct json *j);
void jw_raw(struct json *j, const char *json, size_t len); /* a value that is JSON already */

/* Length of the valid UTF-8 sequence at p, where len bytes are available; 0: the sequence is
 * invalid. */
size_t jw_utf8_sequence(const unsigned char *p, size_t len);
