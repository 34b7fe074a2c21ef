/* Binary protobuf to canonical objects. Unknown fields, and known ones in another wire type, are
 * skipped; groups are refused. Of several values the last counts, and messages are merged, as
 * protobuf demands. */

#include "lib/rpc/proto.h"

#define NUMBER_MAX ((1u << 29) - 1)

struct reader {
    const uint8_t *p, *end;
};

/* A field of any kind, as it is on the wire. */
struct item {
    uint32_t number;
    enum wire_type type;
    uint64_t varint;
    struct reader bytes;
};

static bool get_varint(struct reader *r, uint64_t *ret)
{
    uint64_t v = 0;

    for (unsigned shift = 0; shift < 70 && r->p < r->end; shift += 7) {
        uint8_t byte = *r->p++;
        if (shift == 63 && byte > 1)
            return false;
        v |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *ret = v;
            return true;
        }
    }
    return false;
}

static bool get_bytes(struct reader *r, uint64_t len, struct reader *ret)
{
    if (len > (size_t)(r->end - r->p))
        return false;
    *ret = (struct reader){r->p, r->p + len};
    r->p += len;
    return true;
}

static bool get_item(struct reader *r, struct item *ret)
{
    uint64_t tag, len;

    if (!get_varint(r, &tag) || tag >> 3 == 0 || tag >> 3 > NUMBER_MAX)
        return false;
    ret->number = (uint32_t)(tag >> 3);
    ret->type = (enum wire_type)(tag & 7);
    switch (ret->type) {
    case WIRE_VARINT:
        return get_varint(r, &ret->varint);
    case WIRE_FIXED64:
        return get_bytes(r, 8, &ret->bytes);
    case WIRE_BYTES:
        return get_varint(r, &len) && get_bytes(r, len, &ret->bytes);
    case WIRE_FIXED32:
        return get_bytes(r, 4, &ret->bytes);
    case WIRE_GROUP:
    case WIRE_GROUP_END:
        break;
    }
    return false;
}

static int read_message(struct rpc_decoder *d, const struct rpc_message *m, struct reader r,
                        json_t *ret);

static json_t *integer_of(enum rpc_type type, uint64_t v)
{
    uint32_t low = (uint32_t)v;

    if (type == RPC_BOOL)
        return json_boolean(v != 0);
    if (type == RPC_INT64)
        return json_integer((json_int_t)v);
    if (type == RPC_UINT32)
        return json_integer((json_int_t)low);
    if (type == RPC_SINT32)
        return json_integer((int32_t)(low >> 1 ^ (0 - (low & 1))));
    return json_integer((int32_t)low); /* int32, enum */
}

static int read_string(struct rpc_decoder *d, struct reader r, json_t **ret)
{
    *ret = canonical_string((const char *)r.p, (size_t)(r.end - r.p));
    return *ret ? 0 : decoder_error(d, "must be UTF-8 without NUL");
}

/* Reads one value of the field. A message is merged with `into`, unless that is NULL. */
static int read_value(struct rpc_decoder *d, const struct rpc_field *f, const struct item *item,
                      json_t *into, json_t **ret)
{
    int r = decoder_count(d);

    if (r < 0)
        return r;
    if (is_varint(f->type)) {
        *ret = integer_of(f->type, item->varint);
        return 0;
    }
    if (f->type == RPC_STRING)
        return read_string(d, item->bytes, ret);
    if (f->type == RPC_BYTES) {
        *ret = json_stringn_nocheck((const char *)item->bytes.p,
                                    (size_t)(item->bytes.end - item->bytes.p));
        return 0;
    }
    json_t *value = into ? json_incref(into) : json_object();
    r = read_message(d, f->message, item->bytes, value);
    if (r < 0)
        json_decref(value);
    else
        *ret = value;
    return r;
}

static int read_packed(struct rpc_decoder *d, const struct rpc_field *f, struct reader bytes,
                       json_t *array)
{
    while (bytes.p < bytes.end) {
        struct item item = {.type = WIRE_VARINT};
        json_t *value;
        if (!get_varint(&bytes, &item.varint))
            return decoder_error(d, "has a broken number");
        int r = read_value(d, f, &item, NULL, &value);
        if (r < 0)
            return r;
        json_array_append_new(array, value);
    }
    return 0;
}

static int read_map_entry(struct rpc_decoder *d, struct reader bytes, json_t *map)
{
    json_t *parts[2] = {NULL, NULL};
    int r = decoder_count(d);

    while (r == 0 && bytes.p < bytes.end) {
        struct item item;
        json_t *text;
        if (!get_item(&bytes, &item)) {
            r = decoder_error(d, "is cut short or broken");
            break;
        }
        if (item.type != WIRE_BYTES || item.number < MAP_KEY || item.number > MAP_VALUE)
            continue;
        r = read_string(d, item.bytes, &text);
        if (r < 0)
            break;
        json_decref(parts[item.number - 1]);
        parts[item.number - 1] = text;
    }
    if (r == 0)
        json_object_set_new_nocheck(map, parts[0] ? json_string_value(parts[0]) : "",
                                    parts[1] ? json_incref(parts[1]) : json_stringn("", 0));
    json_decref(parts[0]);
    json_decref(parts[1]);
    return r;
}

static int read_field(struct rpc_decoder *d, const struct rpc_message *m, const struct rpc_field *f,
                      const struct item *item, json_t *ret)
{
    json_t *value;
    int r;

    if (f->type == RPC_MAP) {
        json_t *map = json_object_get(ret, f->name);
        if (!map) {
            map = json_object();
            json_object_set_new_nocheck(ret, f->name, map);
        }
        return read_map_entry(d, item->bytes, map);
    }
    if (f->label == RPC_REPEATED) {
        if (is_varint(f->type) && item->type == WIRE_BYTES && item->bytes.p == item->bytes.end)
            return 0;
        json_t *array = canonical_array(ret, f);
        if (is_varint(f->type) && item->type == WIRE_BYTES)
            return read_packed(d, f, item->bytes, array);
        r = read_value(d, f, item, NULL, &value);
        if (r == 0)
            json_array_append_new(array, value);
        return r;
    }
    r = read_value(d, f, item, json_object_get(ret, f->name), &value);
    if (r == 0)
        canonical_set(ret, m, f, value);
    return r;
}

/* The field that the item holds, from the table, or NULL. */
static const struct rpc_field *field_of(const struct rpc_message *m, const struct item *item)
{
    for (size_t i = 0; i < m->n; i++) {
        const struct rpc_field *f = &m->fields[i];
        if (f->number != item->number)
            continue;
        enum wire_type want = is_varint(f->type) ? WIRE_VARINT : WIRE_BYTES;
        bool packed = f->label == RPC_REPEATED && item->type == WIRE_BYTES;
        return item->type == want || packed ? f : NULL;
    }
    return NULL;
}

static int read_message(struct rpc_decoder *d, const struct rpc_message *m, struct reader r,
                        json_t *ret)
{
    while (r.p < r.end) {
        struct item item = {0};
        if (!get_item(&r, &item))
            return decoder_error(d, "is cut short or broken");
        const struct rpc_field *f = field_of(m, &item);
        if (!f)
            continue;
        int res = decoder_enter(d, f);
        if (res < 0)
            return res;
        res = read_field(d, m, f, &item, ret);
        decoder_leave(d);
        if (res < 0)
            return res;
    }
    return 0;
}

int proto_decode(struct rpc_decoder *d, const struct rpc_message *m, const void *data, size_t len,
                 json_t *ret)
{
    struct reader r = {data, (const uint8_t *)data + len};

    return read_message(d, m, r, ret);
}
