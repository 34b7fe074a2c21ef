/* Shared by the files of the codec: message.c and timestamp.c, and json_in.c, json_out.c,
 * proto_in.c and proto_out.c, which read and write the two forms. */
#pragma once

#include "lib/rpc/message.h"

/* The state of one decoding: its place, for error messages, and how many values it has made. */
struct rpc_decoder {
    const char *name; /* of the message */
    struct sg_error *e;
    unsigned depth, values;
    const char *path[RPC_DEPTH_MAX]; /* names of the fields that led here */
};

/* Enters a field; -EINVAL if that nests too deep. Every success is undone with decoder_leave. */
int decoder_enter(struct rpc_decoder *d, const struct rpc_field *f);
void decoder_leave(struct rpc_decoder *d);
/* Counts a value. -EINVAL: the message has too many. */
int decoder_count(struct rpc_decoder *d);
/* Sets the error "StartRequest <what>", or "field 'a.b' <what>" inside a field. Returns -EINVAL. */
int decoder_error(struct rpc_decoder *d, const char *fmt, ...) PRINTF(2, 3);

/* Puts a value (stolen) into a canonical object by the rules of presence and oneof: the default of
 * a plain field removes the field, a member of a oneof removes the others. */
void canonical_set(json_t *obj, const struct rpc_message *m, const struct rpc_field *f,
                   json_t *value);
/* The array of a repeated field, made if it is not there. */
json_t *canonical_array(json_t *obj, const struct rpc_field *f);
/* A string that may come from outside: NULL if it holds a NUL or is no UTF-8. */
json_t *canonical_string(const char *p, size_t len);
/* Whether an integer fits the field's type. */
bool integer_fits(enum rpc_type type, int64_t v);

int json_decode(struct rpc_decoder *d, const struct rpc_message *m, const char *text, size_t len,
                json_t *ret);
void json_encode(const struct rpc_message *m, json_t *value, struct strbuf *out);
int proto_decode(struct rpc_decoder *d, const struct rpc_message *m, const void *data, size_t len,
                 json_t *ret);
void proto_encode(const struct rpc_message *m, json_t *value, struct strbuf *out);
/* Writes a field that is no map, with its tag. Of a repeated field: one value. */
void proto_put_value(const struct rpc_field *f, json_t *value, struct strbuf *out);
void json_put_value(const struct rpc_field *f, json_t *value, struct strbuf *out);

/* Appends a quoted JSON string. Bytes that are no UTF-8 become U+FFFD. */
void json_put_quoted(struct strbuf *out, const char *p, size_t len);

/* "2024-05-06T07:08:09.123Z" and back. nanos is 0..999999999. */
#define TIMESTAMP_TEXT 40
void timestamp_format(int64_t seconds, int32_t nanos, char ret[TIMESTAMP_TEXT]);
int timestamp_parse(const char *text, int64_t *ret_seconds, int32_t *ret_nanos);
