#include "front/mcp/message.h"

#include <string.h>

#include "lib/json/fields.h"
#include "lib/json/values.h"
#include "lib/text/json.h"

bool message_id_valid(const json_t *id)
{
    return json_is_integer(id) || (json_is_string(id) && json_string_length(id) <= MESSAGE_ID_MAX);
}

void message_put_id(struct json *j, const json_t *id)
{
    if (json_is_integer(id))
        jw_i64(j, json_integer_value(id));
    else
        jw_bytes(j, json_string_value(id), json_string_length(id));
}

int message_read(const json_t *v, struct message *ret, struct sg_error *e)
{
    struct fields in = {
        .object = v, .prefix = "Invalid request: ", .e = e, .bare = true, .strict = true};
    const json_t *id = json_object_get(v, "id");

    if (!json_is_object(v))
        field_wrong(&in, "a message is a JSON object");
    if (strcmp(jr_text(v, "jsonrpc"), "2.0") != 0)
        field_must(&in, "jsonrpc", "\"2.0\"");
    if (in.r == 0 && !json_object_get(v, "method") &&
        (json_object_get(v, "result") || json_object_get(v, "error"))) {
        *ret = (struct message){.kind = MESSAGE_RESPONSE, .id = id};
        return 0;
    }
    const char *method = field_text(&in, "method", SIZE_MAX, NULL);
    if (!method)
        field_must(&in, "method", "a string");
    if (id && !message_id_valid(id))
        field_must(&in, "id", "an integer, or a string of at most 256 bytes");
    *ret = (struct message){.kind = id ? MESSAGE_REQUEST : MESSAGE_NOTIFICATION,
                            .id = id,
                            .method = method,
                            .params = field_object(&in, "params").object};
    return in.r;
}

static void begin(struct json *j, const json_t *id)
{
    jw_object_begin(j);
    jw_string(jw_key(j, "jsonrpc"), "2.0");
    if (id)
        message_put_id(jw_key(j, "id"), id);
}

void message_error(struct strbuf *out, const json_t *id, enum message_code code,
                   const char *message, const char *data)
{
    struct json j = {.out = out};

    begin(&j, id);
    jw_object_begin(jw_key(&j, "error"));
    jw_i64(jw_key(&j, "code"), code);
    jw_bytes(jw_key(&j, "message"), message, strlen(message));
    if (data)
        jw_raw(jw_key(&j, "data"), data, strlen(data));
    jw_object_end(&j);
    jw_object_end(&j);
}

void message_result(struct strbuf *out, const json_t *id, const struct strbuf *result)
{
    struct json j = {.out = out};

    begin(&j, id);
    jw_raw(jw_key(&j, "result"), result->buf, result->len);
    jw_object_end(&j);
}
