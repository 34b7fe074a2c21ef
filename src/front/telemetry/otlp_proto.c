/* Protobuf, as opentelemetry/proto/trace/v1/trace.proto has it. A message comes after its length,
 * so lengths are worked out first: nothing is written twice. */
#include <string.h>

#include "front/telemetry/otlp.h"

enum wire { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 };

/* The numbers of fields, by message. All but the last of a span take one byte together with their
 * type. */
enum { REQUEST_RESOURCE_SPANS = 1 };
enum { RESOURCE_SPANS_RESOURCE = 1, RESOURCE_SPANS_SCOPE_SPANS };
enum { RESOURCE_ATTRIBUTES = 1 };
enum { SCOPE_SPANS_SCOPE = 1, SCOPE_SPANS_SPANS };
enum { SCOPE_NAME = 1, SCOPE_VERSION };
enum { KEY_VALUE_KEY = 1, KEY_VALUE_VALUE };
enum { ANY_STRING = 1, ANY_BOOL, ANY_INT };
enum { EVENT_TIME = 1, EVENT_NAME, EVENT_ATTRIBUTES };
enum { STATUS_MESSAGE = 2, STATUS_CODE };
enum field {
    FIELD_TRACE_ID = 1,
    FIELD_SPAN_ID,
    FIELD_PARENT = 4,
    FIELD_NAME,
    FIELD_KIND,
    FIELD_START,
    FIELD_END,
    FIELD_ATTRIBUTES,
    FIELD_LOST_ATTRIBUTES,
    FIELD_EVENTS,
    FIELD_LOST_EVENTS,
    FIELD_STATUS = 15,
    FIELD_FLAGS
};

/* ---- protobuf's encoding --------------------------------------------------------------------- */

static size_t varint_len(uint64_t v)
{
    size_t n = 1;

    for (; v >= 0x80; v >>= 7)
        n++;
    return n;
}

static void put_varint(struct strbuf *out, uint64_t v)
{
    char bytes[10];
    size_t n = 0;

    for (; v >= 0x80; v >>= 7)
        bytes[n++] = (char)(v | 0x80);
    bytes[n++] = (char)v;
    strbuf_add(out, bytes, n);
}

static void put_number(struct strbuf *out, unsigned field, uint64_t v)
{
    put_varint(out, field << 3 | VARINT);
    put_varint(out, v);
}

static void put_fixed(struct strbuf *out, unsigned field, uint64_t v, enum wire type)
{
    char bytes[8];
    size_t n = type == FIXED64 ? 8 : 4;

    for (size_t i = 0; i < n; i++)
        bytes[i] = (char)(v >> (8 * i));
    put_varint(out, field << 3 | type);
    strbuf_add(out, bytes, n);
}

/* Writes the field's number and the length that begin a message or a text. */
static void put_head(struct strbuf *out, unsigned field, size_t len)
{
    put_varint(out, field << 3 | BYTES);
    put_varint(out, len);
}

static void put_bytes(struct strbuf *out, unsigned field, const void *bytes, size_t len)
{
    put_head(out, field, len);
    strbuf_add(out, bytes, len);
}

/* The length of a field whose number takes one byte. */
static size_t bytes_len(size_t len)
{
    return 1 + varint_len(len) + len;
}

/* ---- attributes ------------------------------------------------------------------------------ */

static size_t any_len(const struct span_value *v)
{
    if (v->type == SPAN_TEXT)
        return bytes_len(v->len);
    return 1 + varint_len((uint64_t)v->number);
}

static size_t value_len(const struct span_value *v)
{
    return bytes_len(strlen(span_key_text((enum span_key)v->key))) + bytes_len(any_len(v));
}

static void put_value(struct strbuf *out, unsigned field, const struct span_value *v)
{
    const char *key = span_key_text((enum span_key)v->key);

    put_head(out, field, value_len(v));
    put_bytes(out, KEY_VALUE_KEY, key, strlen(key));
    put_head(out, KEY_VALUE_VALUE, any_len(v));
    if (v->type == SPAN_TEXT)
        put_bytes(out, ANY_STRING, v->text, v->len);
    else
        put_number(out, v->type == SPAN_FLAG ? ANY_BOOL : ANY_INT, (uint64_t)v->number);
}

static size_t text_len(const char *key, const char *value)
{
    return bytes_len(strlen(key)) + bytes_len(bytes_len(strlen(value)));
}

static void put_text(struct strbuf *out, unsigned field, const char *key, const char *value)
{
    put_head(out, field, text_len(key, value));
    put_bytes(out, KEY_VALUE_KEY, key, strlen(key));
    put_head(out, KEY_VALUE_VALUE, bytes_len(strlen(value)));
    put_bytes(out, ANY_STRING, value, strlen(value));
}

/* ---- a span ---------------------------------------------------------------------------------- */

static void put_event(struct strbuf *out, const struct span *s, const struct span_happening *h)
{
    size_t len = 1 + 8 + bytes_len(strlen(h->name));

    for (size_t i = 0; i < h->n; i++)
        len += bytes_len(value_len(&h->values[i]));
    put_head(out, FIELD_EVENTS, len);
    put_fixed(out, EVENT_TIME, h->ns + (uint64_t)s->wall_ns, FIXED64);
    put_bytes(out, EVENT_NAME, h->name, strlen(h->name));
    for (size_t i = 0; i < h->n; i++)
        put_value(out, EVENT_ATTRIBUTES, &h->values[i]);
}

static void put_status(struct strbuf *out, const struct span *s)
{
    size_t message = s->message ? strlen(s->message) : 0;

    if (!s->failed)
        return;
    put_head(out, FIELD_STATUS, (message ? bytes_len(message) : 0) + 2);
    if (message)
        put_bytes(out, STATUS_MESSAGE, s->message, message);
    put_number(out, STATUS_CODE, OTLP_STATUS_ERROR);
}

static void add_span(struct strbuf *out, const struct span *s, const char *observation)
{
    const char *name = span_name_text(s->name);

    put_bytes(out, FIELD_TRACE_ID, s->ref.trace, sizeof(s->ref.trace));
    put_bytes(out, FIELD_SPAN_ID, s->ref.span, sizeof(s->ref.span));
    if (s->parent.set)
        put_bytes(out, FIELD_PARENT, s->parent.span, sizeof(s->parent.span));
    put_bytes(out, FIELD_NAME, name, strlen(name));
    put_number(out, FIELD_KIND, (uint64_t)otlp_kind(s));
    put_fixed(out, FIELD_START, s->begin_ns + (uint64_t)s->wall_ns, FIXED64);
    put_fixed(out, FIELD_END, s->end_ns + (uint64_t)s->wall_ns, FIXED64);
    for (size_t i = 0; i < s->n_values; i++)
        put_value(out, FIELD_ATTRIBUTES, &s->values[i]);
    if (observation)
        put_text(out, FIELD_ATTRIBUTES, OTLP_OBSERVATION, observation);
    if (s->lost_values > 0)
        put_number(out, FIELD_LOST_ATTRIBUTES, s->lost_values);
    LIST_EACH(struct span_happening, h, &s->events, link)
        put_event(out, s, h);
    if (s->lost_events > 0)
        put_number(out, FIELD_LOST_EVENTS, s->lost_events);
    put_status(out, s);
    put_fixed(out, FIELD_FLAGS, otlp_flags(s), FIXED32);
}

/* ---- a request ------------------------------------------------------------------------------- */

static void add_request(struct strbuf *out, const struct otlp_who *who,
                        const struct otlp_piece *spans, size_t n)
{
    static const char name[] = "sandglass", version[] = SG_VERSION;
    size_t resource = 0, scope = bytes_len(strlen(name)) + bytes_len(strlen(version));
    size_t in_scope = bytes_len(scope);

    for (size_t i = 0; i < ARRAY_SIZE(who->attributes); i++)
        resource += bytes_len(text_len(who->attributes[i].key, who->attributes[i].value));
    for (size_t i = 0; i < n; i++)
        in_scope += bytes_len(spans[i].len);
    put_head(out, REQUEST_RESOURCE_SPANS, bytes_len(resource) + bytes_len(in_scope));
    put_head(out, RESOURCE_SPANS_RESOURCE, resource);
    for (size_t i = 0; i < ARRAY_SIZE(who->attributes); i++)
        put_text(out, RESOURCE_ATTRIBUTES, who->attributes[i].key, who->attributes[i].value);
    put_head(out, RESOURCE_SPANS_SCOPE_SPANS, in_scope);
    put_head(out, SCOPE_SPANS_SCOPE, scope);
    put_bytes(out, SCOPE_NAME, name, strlen(name));
    put_bytes(out, SCOPE_VERSION, version, strlen(version));
    for (size_t i = 0; i < n; i++)
        put_bytes(out, SCOPE_SPANS_SPANS, spans[i].bytes, spans[i].len);
}

const struct otlp_form otlp_proto_form = {
    .content_type = "application/x-protobuf", .add_span = add_span, .add_request = add_request};
