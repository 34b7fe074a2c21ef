/* Messages of JSON-RPC 2.0, as the Model Context Protocol restricts them. */
#pragma once

#include <jansson.h>

#include "lib/base/err.h"
#include "lib/text/json.h"

#define MESSAGE_MAX    (8u * 1024 * 1024) /* bytes of a message that we send: clients take 10 MiB */
#define MESSAGE_ID_MAX 256                /* bytes of an id, or of a token, that is a text */

enum message_code {
    MESSAGE_PARSE_ERROR = -32700,
    MESSAGE_INVALID_REQUEST = -32600,
    MESSAGE_NO_METHOD = -32601,
    MESSAGE_INVALID_PARAMS = -32602,
    MESSAGE_INTERNAL = -32603,
    MESSAGE_HEADER_MISMATCH = -32020,
    MESSAGE_BAD_VERSION = -32022,
};

enum message_kind { MESSAGE_REQUEST, MESSAGE_NOTIFICATION, MESSAGE_RESPONSE };

struct message {
    enum message_kind kind;
    const json_t *id;     /* of a request: an integer or a string */
    const char *method;   /* NULL for a response */
    const json_t *params; /* an object, or NULL */
};

/* -EINVAL: `v` is no message. *ret points into v. */
int message_read(const json_t *v, struct message *ret, struct sg_error *e);
/* Whether `id` can be an id, or a progress token. */
bool message_id_valid(const json_t *id);
void message_put_id(struct json *j, const json_t *id);

/* Writes {"jsonrpc":"2.0","id":...,"error":{...}}. id NULL: the error belongs to no request, and
 * has no id. data: JSON, or NULL. */
void message_error(struct strbuf *out, const json_t *id, enum message_code code,
                   const char *message, const char *data);
/* Writes {"jsonrpc":"2.0","id":...,"result":...}; `result` is JSON. */
void message_result(struct strbuf *out, const json_t *id, const struct strbuf *result);
