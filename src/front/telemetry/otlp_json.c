/* OTLP's JSON: ids are hexadecimal, 64-bit numbers are texts, enums are numbers. */
#include <inttypes.h>

#include "lib/text/json.h"
#include "front/telemetry/ids.h"
#include "front/telemetry/otlp.h"

static void put_id(struct json *j, const char *key, const uint8_t *id, size_t n)
{
    char text[33];

    trace_hex(id, n, text);
    jw_bytes(jw_key(j, key), text, 2 * n);
}

static void put_big(struct json *j, const char *key, int64_t v)
{
    char text[24];

    snprintf(text, sizeof(text), "%" PRId64, v);
    jw_string(jw_key(j, key), text);
}

/* Begin and end an attribute; between them comes its value, under the name of its type. */
static void begin_value(struct json *j, const char *key)
{
    jw_object_begin(j);
    jw_string(jw_key(j, "key"), key);
    jw_object_begin(jw_key(j, "value"));
}

static void end_value(struct json *j)
{
    jw_object_end(j);
    jw_object_end(j);
}

static void put_text(struct json *j, const char *key, const char *text)
{
    begin_value(j, key);
    jw_string(jw_key(j, "stringValue"), text);
    end_value(j);
}

static void put_value(struct json *j, const struct span_value *v)
{
    begin_value(j, span_key_text((enum span_key)v->key));
    if (v->type == SPAN_TEXT)
        jw_bytes(jw_key(j, "stringValue"), v->text, v->len);
    else if (v->type == SPAN_NUMBER)
        put_big(j, "intValue", v->number);
    else
        jw_bool(jw_key(j, "boolValue"), v->number != 0);
    end_value(j);
}

static void put_values(struct json *j, const struct span_value *v, size_t n,
                       const char *observation)
{
    jw_array_begin(jw_key(j, "attributes"));
    for (size_t i = 0; i < n; i++)
        put_value(j, &v[i]);
    if (observation)
        put_text(j, OTLP_OBSERVATION, observation);
    jw_array_end(j);
}

static void put_events(struct json *j, const struct span *s)
{
    if (list_empty(&s->events))
        return;
    jw_array_begin(jw_key(j, "events"));
    LIST_EACH(struct span_happening, h, &s->events, link) {
        jw_object_begin(j);
        put_big(j, "timeUnixNano", (int64_t)h->ns + s->wall_ns);
        jw_string(jw_key(j, "name"), h->name);
        put_values(j, h->values, h->n, NULL);
        jw_object_end(j);
    }
    jw_array_end(j);
}

static void put_lost(struct json *j, const char *key, uint32_t n)
{
    if (n > 0)
        jw_u64(jw_key(j, key), n);
}

static void put_status(struct json *j, const struct span *s)
{
    jw_object_begin(jw_key(j, "status"));
    if (s->failed) {
        jw_u64(jw_key(j, "code"), OTLP_STATUS_ERROR);
        if (s->message)
            jw_string(jw_key(j, "message"), s->message);
    }
    jw_object_end(j);
}

static void add_span(struct strbuf *out, const struct span *s, const char *observation)
{
    struct json j = {.out = out};

    jw_object_begin(&j);
    put_id(&j, "traceId", s->ref.trace, sizeof(s->ref.trace));
    put_id(&j, "spanId", s->ref.span, sizeof(s->ref.span));
    if (s->parent.set)
        put_id(&j, "parentSpanId", s->parent.span, sizeof(s->parent.span));
    jw_u64(jw_key(&j, "flags"), otlp_flags(s));
    jw_string(jw_key(&j, "name"), span_name_text(s->name));
    jw_u64(jw_key(&j, "kind"), (uint64_t)otlp_kind(s));
    put_big(&j, "startTimeUnixNano", (int64_t)s->begin_ns + s->wall_ns);
    put_big(&j, "endTimeUnixNano", (int64_t)s->end_ns + s->wall_ns);
    put_values(&j, s->values, s->n_values, observation);
    put_lost(&j, "droppedAttributesCount", s->lost_values);
    put_events(&j, s);
    put_lost(&j, "droppedEventsCount", s->lost_events);
    put_status(&j, s);
    jw_object_end(&j);
}

static void put_scope(struct json *j)
{
    jw_object_begin(jw_key(j, "scope"));
    jw_string(jw_key(j, "name"), "sandglass");
    jw_string(jw_key(j, "version"), SG_VERSION);
    jw_object_end(j);
}

static void add_request(struct strbuf *out, const struct otlp_who *who,
                        const struct otlp_piece *spans, size_t n)
{
    struct json j = {.out = out};

    jw_object_begin(&j);
    jw_array_begin(jw_key(&j, "resourceSpans"));
    jw_object_begin(&j);
    jw_object_begin(jw_key(&j, "resource"));
    jw_array_begin(jw_key(&j, "attributes"));
    for (size_t i = 0; i < ARRAY_SIZE(who->attributes); i++)
        put_text(&j, who->attributes[i].key, who->attributes[i].value);
    jw_array_end(&j);
    jw_object_end(&j);
    jw_array_begin(jw_key(&j, "scopeSpans"));
    jw_object_begin(&j);
    put_scope(&j);
    jw_array_begin(jw_key(&j, "spans"));
    for (size_t i = 0; i < n; i++)
        jw_raw(&j, spans[i].bytes, spans[i].len);
    jw_array_end(&j);
    jw_object_end(&j);
    jw_array_end(&j);
    jw_object_end(&j);
    jw_array_end(&j);
    jw_object_end(&j);
}

const struct otlp_form otlp_json_form = {
    .content_type = "application/json", .add_span = add_span, .add_request = add_request};
