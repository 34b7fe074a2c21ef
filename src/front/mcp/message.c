#include "front/mcp/message.h"

#include <string.h>

#include "lib/text/json.h"

bool message_id_valid(const json_t *id)
{
    return json_is_integer(id) || (json_is_string(id) && json_string_length(id) <= MESSAGE_ID_MAX);
}

static int no_message(struct sg_error *e, const char *why)
{
    return err_set(e, SG_ERR_INVALID, -EINVAL, "Invalid request: %s", why);
}

int message_read(const json_t *v, struct message *ret, struct sg_error *e)
{
    const json_t *version = json_object_get(v, "jsonrpc"), *id = json_object_get(v, "id"),
                 *method = json_object_get(v, "method"), *params = json_object_get(v, "params");

    if (!json_is_object(v))
        return no_message(e, "a message is a JSON object");
    if (!json_is_string(version) || strcmp(json_string_value(version), "2.0") != 0)
        return no_message(e, "jsonrpc must be \"2.0\"");
    if (!method && (json_object_get(v, "result") || json_object_get(v, "error"))) {
        *ret = (struct message){.kind = MESSAGE_RESPONSE, .id = id};
        return 0;
    }
    if (!json_is_string(method))
        return no_message(e, "method must be a string");
    if (id && !message_id_valid(id))
        return no_message(e, "id must be an integer, or a string of at most 256 bytes");
    if (params && !json_is_object(params))
        return no_message(e, "params must be an object");
    *ret = (struct message){.kind = id ? MESSAGE_REQUEST : MESSAGE_NOTIFICATION,
                            .id = id,
                            .method = json_string_value(method),
                            .params = params};
    return 0;
}

static void begin(struct json *j, struct strbuf *out, const json_t *id)
{
    jw_init(j, out);
    jw_object_begin(j);
    jw_string(jw_key(j, "jsonrpc"), "2.0");
    if (!id)
        return;
    jw_key(j, "id");
    if (json_is_integer(id))
        jw_i64(j, json_integer_value(id));
    else
        jw_bytes(j, json_string_value(id), json_string_length(id));
}

void message_error(struct strbuf *out, const json_t *id, enum message_code code,
                   const char *message, const char *data)
{
    struct json j;

    begin(&j, out, id);
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
    struct json j;

    begin(&j, out, id);
    jw_raw(jw_key(&j, "result"), result->buf, result->len);
    jw_object_end(&j);
}
