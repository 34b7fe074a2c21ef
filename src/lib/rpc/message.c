#include "lib/rpc/message.h"

#include <assert.h>

#include "lib/rpc/codec.h"

static const struct rpc_field timestamp_fields[] = {
    {.name = "seconds", .number = 1, .type = RPC_INT64},
    {.name = "nanos", .number = 2, .type = RPC_INT32},
};
const struct rpc_message rpc_timestamp = {.name = "Timestamp",
                                          .fields = timestamp_fields,
                                          .n = ARRAY_SIZE(timestamp_fields),
                                          .timestamp = true};

/* ---- decoding -------------------------------------------------------------------------------- */

int decoder_error(struct rpc_decoder *d, const char *fmt, ...)
{
    AUTO(strbuf_done) struct strbuf s = {0};
    va_list ap;
    char what[200];

    va_start(ap, fmt);
    vsnprintf(what, sizeof(what), fmt, ap);
    va_end(ap);
    if (d->depth == 0)
        return err_invalid(d->e, "%s %s", d->name, what);
    strbuf_init(&s, 200);
    for (unsigned i = 0; i < d->depth; i++)
        strbuf_addf(&s, "%s%s", i > 0 ? "." : "", d->path[i]);
    return err_invalid(d->e, "field '%s' %s", s.buf, what);
}

int decoder_enter(struct rpc_decoder *d, const struct rpc_field *f)
{
    if (d->depth == RPC_DEPTH_MAX)
        return decoder_error(d, "is nested more than %d deep", RPC_DEPTH_MAX);
    d->path[d->depth++] = f->name;
    return 0;
}

void decoder_leave(struct rpc_decoder *d)
{
    d->depth--;
}

int decoder_count(struct rpc_decoder *d)
{
    if (++d->values <= RPC_VALUES_MAX)
        return 0;
    return decoder_error(d, "gives the message more than %d values", RPC_VALUES_MAX);
}

int rpc_decode(const struct rpc_message *m, enum rpc_codec codec, const void *data, size_t len,
               json_t **ret, struct sg_error *e)
{
    struct rpc_decoder d = {.name = m->name, .e = e};
    json_t *value = json_object();
    int r;

    if (codec == RPC_PROTO)
        r = proto_decode(&d, m, data, len, value);
    else
        r = len == 0 ? 0 : json_decode(&d, m, data, len, value);
    if (r < 0) {
        json_decref(value);
        return r;
    }
    *ret = value;
    return 0;
}

/* ---- the canonical form ---------------------------------------------------------------------- */

static bool is_default(const json_t *value)
{
    if (json_is_string(value))
        return json_string_length(value) == 0;
    return json_is_false(value) || (json_is_integer(value) && json_integer_value(value) == 0);
}

void canonical_set(json_t *obj, const struct rpc_message *m, const struct rpc_field *f,
                   json_t *value)
{
    for (size_t i = 0; f->oneof && i < m->n; i++)
        if (m->fields[i].oneof == f->oneof && &m->fields[i] != f)
            json_object_del(obj, m->fields[i].name);
    if (f->label == RPC_PLAIN && !f->oneof && is_default(value)) {
        json_object_del(obj, f->name);
        json_decref(value);
        return;
    }
    json_object_set_new_nocheck(obj, f->name, value);
}

json_t *canonical_array(json_t *obj, const struct rpc_field *f)
{
    json_t *array = json_object_get(obj, f->name);

    if (!array) {
        array = json_array();
        json_object_set_new_nocheck(obj, f->name, array);
    }
    return array;
}

json_t *canonical_string(const char *p, size_t len)
{
    return memchr(p, '\0', len) ? NULL : json_stringn(p, len);
}

bool integer_fits(enum rpc_type type, int64_t v)
{
    if (type == RPC_INT64)
        return true;
    return type == RPC_UINT32 ? v >= 0 && v <= UINT32_MAX : v >= INT32_MIN && v <= INT32_MAX;
}

json_t *rpc_text(const char *s)
{
    size_t len = strlen(s);
    json_t *text = json_stringn(s, len);
    AUTO(strbuf_done) struct strbuf quoted = {0};

    if (text)
        return text;
    /* Goes through JSON's writer, which knows how to replace bytes that are no UTF-8; this is rare
     * enough. Each byte becomes at most the 3 bytes of U+FFFD or the 6 of an escape. */
    strbuf_init(&quoted, 6 * len + 3);
    json_put_quoted(&quoted, s, len);
    text = json_loadb(quoted.buf, quoted.len, JSON_DECODE_ANY, NULL);
    return text ? text : json_stringn("", 0);
}

/* ---- encoding -------------------------------------------------------------------------------- */

void rpc_encode(const struct rpc_message *m, enum rpc_codec codec, json_t *value,
                struct strbuf *out)
{
    if (codec == RPC_PROTO)
        proto_encode(m, value, out);
    else
        json_encode(m, value, out);
}

void rpc_list_begin(struct rpc_list *l, const struct rpc_message *m, enum rpc_codec codec,
                    struct strbuf *out)
{
    *l = (struct rpc_list){.field = &m->fields[0], .codec = codec, .out = out};
    assert(m->n == 1 && l->field->type == RPC_MESSAGE && l->field->label == RPC_REPEATED);
    if (codec == RPC_JSON)
        strbuf_addch(out, '{');
}

void rpc_list_add(struct rpc_list *l, json_t *element)
{
    if (l->codec == RPC_PROTO) {
        proto_put_value(l->field, element, l->out);
    } else {
        if (l->n == 0)
            strbuf_addf(l->out, "\"%s\":[", l->field->name);
        else
            strbuf_addch(l->out, ',');
        json_put_value(l->field, element, l->out);
    }
    l->n++;
}

void rpc_list_end(struct rpc_list *l)
{
    if (l->codec == RPC_JSON)
        strbuf_addstr(l->out, l->n > 0 ? "]}" : "}");
}
