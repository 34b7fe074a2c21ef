/* OTLP's JSON: ids are hexadecimal, 64-bit numbers are texts, enums are numbers. */
#include <inttypes.h>
#include <string.h>

#include "lib/text/json.h"
#include "front/telemetry/ids.h"
#include "front/telemetry/otlp.h"

static void put_id(struct json *j, const char *key, const uint8_t *id, size_t n)
{
    char text[33];

    trace_hex(id, n, text);
    jw_key(j, key);
    jw_bytes(j, text, 2 * n);
}

static void put_big(struct json *j, const char *key, int64_t v)
{
    char text[24];

    snprintf(text, sizeof text, "%" PRId64, v);
    jw_key(j, key);
    jw_string(j, text);
}

static void put_text(struct json *j, const char *key, const char *text, size_t len)
{
    jw_object_begin(j);
    jw_key(j, "key");
    jw_string(j, key);
    jw_key(j, "value");
    jw_object_begin(j);
    jw_key(j, "stringValue");
    jw_bytes(j, text, len);
    jw_object_end(j);
    jw_object_end(j);
}

static void put_value(struct json *j, const struct span_value *v)
{
    const char *key = span_key_text((enum span_key)v->key);

    if (v->type == SPAN_TEXT) {
        put_text(j, key, v->text, v->len);
        return;
    }
    jw_object_begin(j);
    jw_key(j, "key");
    jw_string(j, key);
    jw_key(j, "value");
    jw_object_begin(j);
    if (v->type == SPAN_NUMBER) {
        put_big(j, "intValue", v->number);
    } else {
        jw_key(j, "boolValue");
        jw_bool(j, v->number != 0);
    }
    jw_object_end(j);
    jw_object_end(j);
}

static void put_values(struct json *j, const struct span_value *v, size_t n,
                       const char *observation)
{
    jw_key(j, "attributes");
    jw_array_begin(j);
    for (size_t i = 0; i < n; i++)
        put_value(j, &v[i]);
    if (observation)
        put_text(j, OTLP_OBSERVATION, observation, strlen(observation));
    jw_array_end(j);
}

static void put_events(struct json *j, const struct span *s)
{
    if (!s->events)
        return;
    jw_key(j, "events");
    jw_array_begin(j);
    for (const struct span_happening *h = s->events; h; h = h->next) {
        jw_object_begin(j);
        put_big(j, "timeUnixNano", (int64_t)h->ns + s->wall_ns);
        jw_key(j, "name");
        jw_string(j, h->name);
        put_values(j, h->values, h->n, NULL);
        jw_object_end(j);
    }
    jw_array_end(j);
}

static void put_lost(struct json *j, const char *key, uint32_t n)
{
    if (n == 0)
        return;
    jw_key(j, key);
    jw_u64(j, n);
}

static void put_status(struct json *j, const struct span *s)
{
    jw_key(j, "status");
    jw_object_begin(j);
    if (s->failed) {
        jw_key(j, "code");
        jw_u64(j, OTLP_STATUS_ERROR);
        if (s->message) {
            jw_key(j, "message");
            jw_string(j, s->message);
        }
    }
    jw_object_end(j);
}

static void add_span(struct strbuf *out, const struct span *s, const char *observation)
{
    struct json j;

    jw_init(&j, out);
    jw_object_begin(&j);
    put_id(&j, "traceId", s->ref.trace, sizeof s->ref.trace);
    put_id(&j, "spanId", s->ref.span, sizeof s->ref.span);
    if (s->parent.set)
        put_id(&j, "parentSpanId", s->parent.span, sizeof s->parent.span);
    jw_key(&j, "flags");
    jw_u64(&j, otlp_flags(s));
    jw_key(&j, "name");
    jw_string(&j, span_name_text(s->name));
    jw_key(&j, "kind");
    jw_u64(&j, (uint64_t)otlp_kind(s));
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
    jw_key(j, "scope");
    jw_object_begin(j);
    jw_key(j, "name");
    jw_string(j, "sandglass");
    jw_key(j, "version");
    jw_string(j, SG_VERSION);
    jw_object_end(j);
}

static void add_request(struct strbuf *out, const struct otlp_who *who,
                        const struct otlp_piece *spans, size_t n)
{
    struct json j;

    jw_init(&j, out);
    jw_object_begin(&j);
    jw_key(&j, "resourceSpans");
    jw_array_begin(&j);
    jw_object_begin(&j);
    jw_key(&j, "resource");
    jw_object_begin(&j);
    jw_key(&j, "attributes");
    jw_array_begin(&j);
    for (size_t i = 0; i < ARRAY_SIZE(who->attributes); i++)
        put_text(&j, who->attributes[i].key, who->attributes[i].value,
                 strlen(who->attributes[i].value));
    jw_array_end(&j);
    jw_object_end(&j);
    jw_key(&j, "scopeSpans");
    jw_array_begin(&j);
    jw_object_begin(&j);
    put_scope(&j);
    jw_key(&j, "spans");
    jw_array_begin(&j);
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
