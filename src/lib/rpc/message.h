/* Messages described by tables, with an encoder and a decoder for each of the two forms they come
 * in: JSON as proto3 defines it, and binary protobuf.
 *
 * Between the two stands one canonical form, a jansson object, so that a handler never knows which
 * form its caller speaks:
 *
 *   message     object, keys are the fields' names in lowerCamelCase
 *   string      string: valid UTF-8 without NUL
 *   bytes       string of the raw bytes (json_stringn_nocheck): not printable, may hold NUL
 *   integers    integer;  bool: true, false;  enum: integer, even if the table has no such value
 *   repeated    array;  map: object
 *
 * A field that is absent, or has its default value and no presence of its own (RPC_PLAIN), is not
 * in the object; so both forms of a message decode to equal objects. Of a oneof at most one member
 * is there.
 *
 * Decoded bytes are hostile. The caller bounds their size, and the decoder the number of values and
 * the depth. Errors are SG_ERR_INVALID and name the field. */
#pragma once

#include <jansson.h>

#include "lib/base/err.h"
#include "lib/json/values.h"
#include "lib/text/strbuf.h"

#define RPC_DEPTH_MAX  16
#define RPC_VALUES_MAX 65536 /* in one decoded message */

enum rpc_codec { RPC_JSON, RPC_PROTO };

enum rpc_type {
    RPC_STRING,
    RPC_BYTES,
    RPC_BOOL,
    RPC_INT32,
    RPC_UINT32,
    RPC_SINT32,
    RPC_INT64,
    RPC_ENUM,
    RPC_MESSAGE,
    RPC_MAP, /* of strings to strings */
};

enum rpc_label {
    RPC_PLAIN,    /* the default value and absence are the same */
    RPC_OPTIONAL, /* default and absence differ; messages and members of a oneof are always of this
                   * kind */
    RPC_REPEATED,
};

struct rpc_value {
    const char *name;
    int32_t number;
};

struct rpc_enum {
    const struct rpc_value *values;
    size_t n;
};

struct rpc_field {
    const char *name; /* lowerCamelCase */
    uint32_t number;
    enum rpc_type type;
    enum rpc_label label;
    uint8_t oneof; /* not 0: at most one field of the message with this number is set */
    const struct rpc_message *message;
    const struct rpc_enum *values;
};

struct rpc_message {
    const char *name;
    const struct rpc_field *fields; /* by ascending number */
    size_t n;
    bool timestamp; /* google.protobuf.Timestamp: an RFC 3339 string in JSON */
};

#define RPC_TABLE(text, list)                               \
    {                                                       \
        .name = text, .fields = list, .n = ARRAY_SIZE(list) \
    }

/* { seconds, nanos } */
extern const struct rpc_message rpc_timestamp;

/* *ret is a new reference. An empty text is an empty message in both forms. */
int rpc_decode(const struct rpc_message *m, enum rpc_codec codec, const void *data, size_t len,
               json_t **ret, struct sg_error *e);
/* Appends the encoded message. `value` is canonical and our own. If it does not fit, out->truncated
 * is set. */
void rpc_encode(const struct rpc_message *m, enum rpc_codec codec, json_t *value,
                struct strbuf *out);

/* Writes a message with one repeated field of messages, element by element: for lists that are too
 * long to hold as objects. The result is the same as that of rpc_encode. */
struct rpc_list {
    const struct rpc_field *field;
    enum rpc_codec codec;
    struct strbuf *out;
    size_t n;
};
void rpc_list_begin(struct rpc_list *l, const struct rpc_message *m, enum rpc_codec codec,
                    struct strbuf *out);
void rpc_list_add(struct rpc_list *l, json_t *element);
void rpc_list_end(struct rpc_list *l);

/* A string from outside that may be no UTF-8: invalid bytes become U+FFFD. */
json_t *rpc_text(const char *s);
