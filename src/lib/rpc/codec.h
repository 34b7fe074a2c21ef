/* What the four halves of the codec share. */
#pragma once

#include "lib/rpc/message.h"

/* One decoding: where it is, for errors, and how much it has made. */
struct rpc_decoder {
    const char *name; /* of the message */
    struct sg_error *e;
    unsigned depth, values;
    const char *path[RPC_DEPTH_MAX]; /* names of the fields that led here */
};

/* Enters a field; -EINVAL if that is too deep. Every success is undone with decoder_leave. */
int decoder_enter(struct rpc_decoder *d, const struct rpc_field *f);
void decoder_leave(struct rpc_decoder *d);
/* Counts a value. */
int decoder_count(struct rpc_decoder *d);
/* "StartRequest <what>", or "field 'a.b' <what>" inside one. Returns -EINVAL. */
int decoder_error(struct rpc_decoder *d, const char *fmt, ...) PRINTF(2, 3);

/* Puts a value (stolen) into a canonical object as presence and oneof demand: a default of a plain
 * field removes it, a member of a oneof removes the others. */
void canonical_set(json_t *obj, const struct rpc_message *m, const struct rpc_field *f,
                   json_t *value);
/* The array of a repeated field, made if it is not there. */
json_t *canonical_array(json_t *obj, const struct rpc_field *f);
/* A string that may come from outside: NULL if it holds NUL or is no UTF-8. */
json_t *canonical_string(const char *p, size_t len);
/* Whether an integer fits the field's type. */
bool integer_fits(enum rpc_type type, int64_t v);

int json_decode(struct rpc_decoder *d, const struct rpc_message *m, const char *text, size_t len,
                json_t *ret);
void json_encode(const struct rpc_message *m, json_t *value, struct strbuf *out);
int proto_decode(struct rpc_decoder *d, const struct rpc_message *m, const void *data, size_t len,
                 json_t *ret);
void proto_encode(const struct rpc_message *m, json_t *value, struct strbuf *out);
/* A field that is no map, with its tag: one value of it if it is repeated. */
void proto_put_value(const struct rpc_field *f, json_t *value, struct strbuf *out);
void json_put_value(const struct rpc_field *f, json_t *value, struct strbuf *out);

/* A quoted JSON string. What is no UTF-8 becomes U+FFFD. */
void json_put_quoted(struct strbuf *out, const char *p, size_t len);

/* "2024-05-06T07:08:09.123Z" and back. nanos is 0..999999999. */
#define TIMESTAMP_TEXT 40
void timestamp_format(int64_t seconds, int32_t nanos, char ret[TIMESTAMP_TEXT]);
int timestamp_parse(const char *text, int64_t *ret_seconds, int32_t *ret_nanos);
