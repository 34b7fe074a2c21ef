/* Canonical objects to binary protobuf. */

#include "lib/rpc/proto.h"

static void put_varint(struct strbuf *out, uint64_t v)
{
    char bytes[10];
    size_t n = 0;

    for (; v >= 0x80; v >>= 7)
        bytes[n++] = (char)(v | 0x80);
    bytes[n++] = (char)v;
    strbuf_add(out, bytes, n);
}

static void put_tag(struct strbuf *out, uint32_t number, enum wire_type type)
{
    put_varint(out, (uint64_t)number << 3 | type);
}

static void put_bytes(struct strbuf *out, uint32_t number, const char *p, size_t len)
{
    put_tag(out, number, WIRE_BYTES);
    put_varint(out, len);
    strbuf_add(out, p, len);
}

static void put_map(const struct rpc_field *f, json_t *map, struct strbuf *out)
{
    const char *key;
    json_t *value;

    json_object_foreach(map, key, value)
    {
        AUTO(strbuf_done) struct strbuf entry = strbuf_upto(out->max);
        put_bytes(&entry, MAP_KEY, key, strlen(key));
        put_bytes(&entry, MAP_VALUE, json_string_value(value), json_string_length(value));
        out->truncated |= entry.truncated;
        put_bytes(out, f->number, entry.buf, entry.len);
    }
}

static void put_message(const struct rpc_field *f, json_t *value, struct strbuf *out)
{
    AUTO(strbuf_done) struct strbuf inner = strbuf_upto(out->max);

    proto_encode(f->message, value, &inner);
    out->truncated |= inner.truncated;
    put_bytes(out, f->number, inner.buf, inner.len);
}

static uint64_t varint_of(enum rpc_type type, json_t *value)
{
    int64_t v = json_is_boolean(value) ? json_is_true(value) : json_integer_value(value);

    return type == RPC_SINT32 ? (uint64_t)v << 1 ^ (uint64_t)(v >> 63) : (uint64_t)v;
}

void proto_put_value(const struct rpc_field *f, json_t *value, struct strbuf *out)
{
    if (is_varint(f->type)) {
        put_tag(out, f->number, WIRE_VARINT);
        put_varint(out, varint_of(f->type, value));
    } else if (f->type == RPC_MESSAGE) {
        put_message(f, value, out);
    } else if (f->type == RPC_MAP) {
        put_map(f, value, out);
    } else {
        put_bytes(out, f->number, json_string_value(value), json_string_length(value));
    }
}

static void put_repeated(const struct rpc_field *f, json_t *array, struct strbuf *out)
{
    AUTO(strbuf_done) struct strbuf packed = strbuf_upto(out->max);
    size_t n = json_array_size(array);

    for (size_t i = 0; i < n; i++) {
        if (is_varint(f->type))
            put_varint(&packed, varint_of(f->type, json_array_get(array, i)));
        else
            proto_put_value(f, json_array_get(array, i), out);
    }
    out->truncated |= packed.truncated;
    if (packed.len > 0)
        put_bytes(out, f->number, packed.buf, packed.len);
}

void proto_encode(const struct rpc_message *m, json_t *value, struct strbuf *out)
{
    for (size_t i = 0; i < m->n; i++) {
        json_t *v = json_object_get(value, m->fields[i].name);
        if (!v)
            continue;
        if (m->fields[i].label == RPC_REPEATED)
            put_repeated(&m->fields[i], v, out);
        else
            proto_put_value(&m->fields[i], v, out);
    }
}
