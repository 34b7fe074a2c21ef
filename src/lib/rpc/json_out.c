/* Canonical objects to proto3 JSON: 64-bit integers as strings, enums by name, bytes in base64. */
#include <inttypes.h>

#include "lib/json/values.h"
#include "lib/text/json.h"
#include "lib/text/base64.h"
#include "lib/rpc/codec.h"

void json_put_quoted(struct strbuf *out, const char *p, size_t len)
{
    struct json j = {.out = out};

    jw_bytes(&j, p, len);
}

static void put_string(struct strbuf *out, json_t *value)
{
    json_put_quoted(out, json_string_value(value), json_string_length(value));
}

static void put_enum(const struct rpc_enum *values, int64_t number, struct strbuf *out)
{
    for (size_t i = 0; i < values->n; i++)
        if (values->values[i].number == number) {
            strbuf_addf(out, "\"%s\"", values->values[i].name);
            return;
        }
    strbuf_addf(out, "%" PRIi64, number);
}

static void put_map(json_t *map, struct strbuf *out)
{
    const char *key;
    json_t *value;
    char before = '{';

    json_object_foreach(map, key, value)
    {
        strbuf_addch(out, before);
        json_put_quoted(out, key, strlen(key));
        strbuf_addch(out, ':');
        put_string(out, value);
        before = ',';
    }
    strbuf_addstr(out, before == '{' ? "{}" : "}");
}

static void put_message(const struct rpc_message *m, json_t *value, struct strbuf *out)
{
    char text[TIMESTAMP_TEXT];

    if (!m->timestamp) {
        json_encode(m, value, out);
        return;
    }
    timestamp_format(jr_int(value, "seconds"), (int32_t)jr_int(value, "nanos"), text);
    strbuf_addf(out, "\"%s\"", text);
}

void json_put_value(const struct rpc_field *f, json_t *value, struct strbuf *out)
{
    switch (f->type) {
    case RPC_STRING:
        put_string(out, value);
        break;
    case RPC_BYTES:
        strbuf_addch(out, '"');
        base64_encode(out, json_string_value(value), json_string_length(value));
        strbuf_addch(out, '"');
        break;
    case RPC_BOOL:
        strbuf_addstr(out, json_is_true(value) ? "true" : "false");
        break;
    case RPC_INT32:
    case RPC_UINT32:
    case RPC_SINT32:
        strbuf_addf(out, "%" PRIi64, (int64_t)json_integer_value(value));
        break;
    case RPC_INT64:
        strbuf_addf(out, "\"%" PRIi64 "\"", (int64_t)json_integer_value(value));
        break;
    case RPC_ENUM:
        put_enum(f->values, json_integer_value(value), out);
        break;
    case RPC_MESSAGE:
        put_message(f->message, value, out);
        break;
    case RPC_MAP:
        put_map(value, out);
        break;
    }
}

static void put_field(const struct rpc_field *f, json_t *value, struct strbuf *out)
{
    size_t n = json_array_size(value);

    if (f->label != RPC_REPEATED) {
        json_put_value(f, value, out);
        return;
    }
    strbuf_addch(out, '[');
    for (size_t i = 0; i < n; i++) {
        if (i > 0)
            strbuf_addch(out, ',');
        json_put_value(f, json_array_get(value, i), out);
    }
    strbuf_addch(out, ']');
}

void json_encode(const struct rpc_message *m, json_t *value, struct strbuf *out)
{
    char before = '{';

    for (size_t i = 0; i < m->n; i++) {
        json_t *v = json_object_get(value, m->fields[i].name);
        if (!v)
            continue;
        strbuf_addf(out, "%c\"%s\":", before, m->fields[i].name);
        put_field(&m->fields[i], v, out);
        before = ',';
    }
    strbuf_addstr(out, before == '{' ? "{}" : "}");
}
