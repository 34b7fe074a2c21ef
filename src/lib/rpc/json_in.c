/* Proto3 JSON to canonical objects. Names are lowerCamelCase or snake_case, null means absent,
 * unknown fields are ignored, 64-bit integers may be strings, and every integer may be written as a
 * number with a fraction of zero. */
#include <math.h>

#include "lib/text/base64.h"
#include "lib/text/json_check.h"
#include "lib/rpc/codec.h"

#define TEXT_DEPTH_MAX 32
#define NAME_MAX_      64

/* Counts what will become values before jansson reads the text: jansson makes an object of every
 * value, at worst 50 times the size of the text. */
static int check_shape(struct rpc_decoder *d, const char *p, size_t len)
{
    struct json_weight w = json_weigh(p, len);

    if (w.depth > TEXT_DEPTH_MAX)
        return decoder_error(d, "is nested more than %d deep", TEXT_DEPTH_MAX);
    if (w.values - (JSON_WEIGHT_NESTED - 1) * w.nested > RPC_VALUES_MAX)
        return decoder_error(d, "has more than %d values", RPC_VALUES_MAX);
    return 0;
}

static void snake_case(const char *camel, char ret[NAME_MAX_])
{
    size_t n = 0;

    for (; *camel && n < NAME_MAX_ - 2; camel++) {
        bool upper = *camel >= 'A' && *camel <= 'Z';
        if (upper)
            ret[n++] = '_';
        ret[n++] = (char)(upper ? *camel - 'A' + 'a' : *camel);
    }
    ret[n] = '\0';
}

static int read_object(struct rpc_decoder *d, const struct rpc_message *m, json_t *in, json_t *ret);

static int read_integer(struct rpc_decoder *d, enum rpc_type type, json_t *in, json_t **ret)
{
    int64_t v = 0;
    bool ok = false;

    if (json_is_integer(in)) {
        v = json_integer_value(in);
        ok = true;
    } else if (json_is_real(in)) {
        double real = json_real_value(in);
        ok = real >= -0x1p63 && real < 0x1p63 && real == trunc(real);
        v = ok ? (int64_t)real : 0;
    } else if (json_is_string(in)) {
        const char *text = json_string_value(in);
        const char *digits = text + (*text == '-');
        char *end;
        errno = 0;
        v = strtoll(text, &end, 10);
        ok = *digits >= '0' && *digits <= '9' && *end == '\0' && errno == 0 &&
             strlen(text) == json_string_length(in);
    }
    if (!ok || !integer_fits(type, v))
        return decoder_error(d, "must be an integer%s",
                             type == RPC_INT64    ? " of 64 bits"
                             : type == RPC_UINT32 ? " from 0 to 4294967295"
                                                  : " of 32 bits");
    *ret = json_integer(v);
    return 0;
}

static int read_enum(struct rpc_decoder *d, const struct rpc_enum *values, json_t *in, json_t **ret)
{
    const char *name = json_string_value(in);

    if (!name)
        return read_integer(d, RPC_INT32, in, ret);
    for (size_t i = 0; i < values->n; i++)
        if (strcmp(values->values[i].name, name) == 0) {
            *ret = json_integer(values->values[i].number);
            return 0;
        }
    return decoder_error(d, "has no value '%.60s'", name);
}

static int read_string(struct rpc_decoder *d, json_t *in, json_t **ret)
{
    if (!json_is_string(in))
        return decoder_error(d, "must be a string");
    *ret = json_incref(in); /* jansson has checked it: UTF-8, no NUL */
    return 0;
}

static int read_bytes(struct rpc_decoder *d, json_t *in, json_t **ret)
{
    AUTO(strbuf_done) struct strbuf out = {0};

    if (!json_is_string(in))
        return decoder_error(d, "must be a string of base64");
    strbuf_init(&out, json_string_length(in));
    if (base64_decode(&out, json_string_value(in), json_string_length(in)) < 0)
        return decoder_error(d, "is not valid base64");
    if (out.truncated)
        return decoder_error(d, "does not fit into memory");
    *ret = json_stringn_nocheck(out.buf, out.len);
    return 0;
}

static int read_map(struct rpc_decoder *d, json_t *in, json_t **ret)
{
    json_t *map, *value;
    const char *key;

    if (!json_is_object(in))
        return decoder_error(d, "must be an object of strings");
    map = json_object();
    json_object_foreach(in, key, value)
    {
        if (!json_is_string(value)) {
            json_decref(map);
            return decoder_error(d, "must be an object of strings");
        }
        json_object_set_nocheck(map, key, value);
    }
    *ret = map;
    return 0;
}

static int read_message(struct rpc_decoder *d, const struct rpc_message *m, json_t *in,
                        json_t **ret)
{
    json_t *value = json_object();
    int r = 0;

    if (m->timestamp) {
        int64_t seconds;
        int32_t nanos;
        const char *text = json_string_value(in);
        if (!text || timestamp_parse(text, &seconds, &nanos) < 0) {
            r = decoder_error(d, "must be a time such as 2024-05-06T07:08:09Z");
        } else {
            canonical_set(value, m, &m->fields[0], json_integer(seconds));
            canonical_set(value, m, &m->fields[1], json_integer(nanos));
        }
    } else {
        r = read_object(d, m, in, value);
    }
    if (r < 0)
        json_decref(value);
    else
        *ret = value;
    return r;
}

static int read_value(struct rpc_decoder *d, const struct rpc_field *f, json_t *in, json_t **ret)
{
    switch (f->type) {
    case RPC_STRING:
        return read_string(d, in, ret);
    case RPC_BYTES:
        return read_bytes(d, in, ret);
    case RPC_BOOL:
        if (!json_is_boolean(in))
            return decoder_error(d, "must be true or false");
        *ret = json_incref(in);
        return 0;
    case RPC_INT32:
    case RPC_UINT32:
    case RPC_SINT32:
    case RPC_INT64:
        return read_integer(d, f->type, in, ret);
    case RPC_ENUM:
        return read_enum(d, f->values, in, ret);
    case RPC_MESSAGE:
        return read_message(d, f->message, in, ret);
    case RPC_MAP:
        return read_map(d, in, ret);
    }
    return -EINVAL;
}

static int read_array(struct rpc_decoder *d, const struct rpc_field *f, json_t *in, json_t *ret)
{
    json_t *array;

    if (!json_is_array(in))
        return decoder_error(d, "must be an array");
    if (json_array_size(in) == 0)
        return 0;
    array = canonical_array(ret, f);
    for (size_t i = 0; i < json_array_size(in); i++) {
        json_t *value;
        int r = read_value(d, f, json_array_get(in, i), &value);
        if (r < 0)
            return r;
        json_array_append_new(array, value);
    }
    return 0;
}

/* Finds the field's value in the object, under either of its names; NULL if there is none. */
static int find(struct rpc_decoder *d, const struct rpc_field *f, json_t *in, json_t **ret)
{
    char snake[NAME_MAX_];
    json_t *value = json_object_get(in, f->name), *other;

    snake_case(f->name, snake);
    other = strcmp(snake, f->name) != 0 ? json_object_get(in, snake) : NULL;
    if (value && other)
        return decoder_error(d, "is given twice, also as '%s'", snake);
    value = value ? value : other;
    *ret = json_is_null(value) ? NULL : value;
    return 0;
}

static int read_field(struct rpc_decoder *d, const struct rpc_message *m, const struct rpc_field *f,
                      json_t *in, json_t *ret)
{
    json_t *text = NULL, *value;
    int r = find(d, f, in, &text);

    if (r < 0 || !text)
        return r;
    if (f->label == RPC_REPEATED)
        return read_array(d, f, text, ret);
    for (size_t i = 0; f->oneof && i < m->n; i++)
        if (m->fields[i].oneof == f->oneof && json_object_get(ret, m->fields[i].name))
            return decoder_error(d, "excludes '%s'", m->fields[i].name);
    r = read_value(d, f, text, &value);
    if (r < 0)
        return r;
    if (f->type == RPC_MAP && json_object_size(value) == 0)
        json_decref(value);
    else
        canonical_set(ret, m, f, value);
    return 0;
}

static int read_object(struct rpc_decoder *d, const struct rpc_message *m, json_t *in, json_t *ret)
{
    int r = 0;

    if (!json_is_object(in))
        return decoder_error(d, "must be an object");
    for (size_t i = 0; r == 0 && i < m->n; i++) {
        r = decoder_enter(d, &m->fields[i]);
        if (r < 0)
            break;
        r = read_field(d, m, &m->fields[i], in, ret);
        decoder_leave(d);
    }
    return r;
}

int json_decode(struct rpc_decoder *d, const struct rpc_message *m, const char *text, size_t len,
                json_t *ret)
{
    json_error_t error;
    json_t *in;
    int r = check_shape(d, text, len);

    if (r < 0)
        return r;
    in = json_loadb(text, len, JSON_REJECT_DUPLICATES, &error);
    if (!in)
        return decoder_error(d, "is not valid JSON: %.100s, line %d", error.text, error.line);
    r = read_object(d, m, in, ret);
    json_decref(in);
    return r;
}
