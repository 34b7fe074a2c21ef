/* Spans: what travels as traceparent, what a span keeps, and the two forms it is written in. */
#include <jansson.h>

#include "lib/base/clock.h"
#include "trace_rig.h"

TAP_MAIN

#define JSON_ON "otlp_endpoint = http://127.0.0.1:1\notlp_protocol = json\n"

/* ---- traceparent ----------------------------------------------------------------------------- */

#define T "4bf92f3577b34da6a3ce929d0e0e4736"
#define S "00f067aa0ba902b7"

TEST(a_traceparent_comes_back)
{
    static const struct {
        const char *in, *out;
    } good[] = {
        {"00-" T "-" S "-01", "00-" T "-" S "-01"},
        {"00-" T "-" S "-00", "00-" T "-" S "-00"},
        {"00-" T "-" S "-03", "00-" T "-" S "-03"},
        {"00-" T "-" S "-ff", "00-" T "-" S "-03"}, /* unknown flags are not passed on */
        {"cc-" T "-" S "-01", "00-" T "-" S "-01"}, /* a later version */
        {"01-" T "-" S "-01-what-ever", "00-" T "-" S "-01"},
        {"fe-" T "-" S "-01-", "00-" T "-" S "-01"},
    };
    char text[TRACEPARENT_LEN + 1];
    struct trace_ref r;

    for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
        EXPECT(trace_parse(good[i].in, &r) && r.set && !r.ours);
        trace_format(&r, text);
        EXPECT_STR(text, good[i].out);
    }
}

TEST(nonsense_is_no_traceparent)
{
    static const char *const bad[] = {
        "",
        "0",
        "00",
        "00-",
        "-",
        "nonsense",
        "00-" T "-" S,
        "00-" T "-" S "-",
        "00-" T "-" S "-0",
        "00-" T "-" S "-0g",
        "00-" T "-" S "-01 ",
        "00-" T "-" S "-01-",
        "00-" T "-" S "-011",
        "00-" T "-" S "-01-more",
        "01-" T "-" S "-01more",
        "ff-" T "-" S "-01",
        "ff-" T "-" S "-01-more",
        "0-" T "-" S "-01",
        "000-" T "-" S "-01",
        "0x-" T "-" S "-01",
        " 00-" T "-" S "-01",
        "00-4BF92F3577B34DA6A3CE929D0E0E4736-" S "-01",
        "00-" T "-00F067AA0BA902B7-01",
        "CC-" T "-" S "-01",
        "00-00000000000000000000000000000000-" S "-01",
        "00-" T "-0000000000000000-01",
        "00-4bf92f3577b34da6a3ce929d0e0e473-" S "-01",
        "00-" T "0-" S "-01",
        "00_" T "-" S "-01",
        "00-" T "_" S "-01",
        "00-" T "-" S "_01",
        "00-" T "-00f067aa0ba902b-01",
        "00-" T "-" S S "-01",
        "00-\xff\xff" T "-" S "-01",
        "00-4bf92f3577b34da6a3ce929d0e0e473\n-" S "-01",
    };

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct trace_ref r = {.set = true};

        if (trace_parse(bad[i], &r) || r.set)
            printf("# taken: '%s'\n", bad[i]);
        EXPECT(!r.set);
    }
    char text[TRACEPARENT_LEN + 1] = "x";
    trace_format(&(struct trace_ref){0}, text);
    EXPECT_STR(text, "");
}

/* ---- who wants them -------------------------------------------------------------------------- */

TEST(nobody_wants_any)
{
    struct trace_ref none;

    rig_configure("");
    EXPECT(!trace_wanted() && !trace_content_wanted());
    struct span *s = span_begin(SPAN_CELL, NULL);
    EXPECT(s == NULL);
    /* Everything takes a span that is none. */
    span_text(s, KEY_TENANT, "t");
    span_number(s, KEY_COUNT, 1);
    span_flag(s, KEY_FORCED, true);
    span_event(s, "egress", NULL, 0);
    span_step(s, SPAN_STEP_FILES, 1, 2);
    span_fail(s, "timeout", "late");
    none = span_ref(s);
    EXPECT(!none.set);
    span_end(&s);
    span_drop(&s);
    rig_configure("otlp_endpoint = http://127.0.0.1:1\ntrace_content = yes\n");
    EXPECT(trace_wanted() && trace_content_wanted());
    rig_configure("");
}

TEST(the_callers_choice_counts)
{
    struct trace_ref yes, no;
    int kept = 0;

    trace_parse("00-" T "-" S "-01", &yes);
    trace_parse("00-" T "-" S "-00", &no);
    rig_configure(JSON_ON "trace_sample = 0\n");
    for (int i = 0; i < 100; i++) {
        struct span *s = span_begin(SPAN_CELL, NULL), *n = span_begin(SPAN_CELL, &no),
                    *y = span_begin(SPAN_CELL, &yes);
        EXPECT(!s && !n && y);
        span_drop(&y);
    }
    rig_configure(JSON_ON "trace_sample = 30\n");
    for (int i = 0; i < 10000; i++) {
        struct span *s = span_begin(SPAN_CELL, NULL);

        kept += s != NULL;
        span_drop(&s);
    }
    EXPECT(kept > 2500 && kept < 3500);
    rig_configure("");
}

TEST(numbers_differ)
{
    enum { N = 2000 };
    static struct trace_ref refs[N];
    int same = 0;

    rig_configure(JSON_ON);
    for (int i = 0; i < N; i++) {
        struct span *s = span_begin(SPAN_CELL, NULL);

        refs[i] = span_ref(s);
        span_drop(&s);
        for (int k = 0; k < i; k++)
            same += memcmp(refs[k].span, refs[i].span, 8) == 0 ||
                    memcmp(refs[k].trace, refs[i].trace, 16) == 0;
    }
    EXPECT(same == 0);
    rig_configure("");
}

/* ---- as JSON --------------------------------------------------------------------------------- */

/* The spans of the only post, and their root, which the caller releases. */
static json_t *posted_spans(json_t **ret_root)
{
    json_error_t e;
    json_t *spans = NULL;

    rig_flush();
    EXPECT(rig.n == 1);
    *ret_root = rig.n ? json_loadb(rig.posts[0].body, rig.posts[0].len, 0, &e) : NULL;
    EXPECT(*ret_root);
    json_t *of = json_array_get(json_object_get(*ret_root, "resourceSpans"), 0);
    json_t *scope = json_array_get(json_object_get(of, "scopeSpans"), 0);
    spans = json_object_get(scope, "spans");
    EXPECT(json_is_array(spans));
    return spans;
}

static const char *text_of(json_t *o, const char *key)
{
    const char *s = json_string_value(json_object_get(o, key));

    return s ? s : "(none)";
}

/* The value of an attribute, as {"stringValue": ...}. */
static json_t *attribute(json_t *span, const char *key)
{
    json_t *a, *found = NULL;
    size_t i;

    json_array_foreach(json_object_get(span, "attributes"), i, a)
    {
        if (strcmp(text_of(a, "key"), key) != 0)
            continue;
        EXPECT(!found);
        found = json_object_get(a, "value");
    }
    return found;
}

static uint64_t time_of(json_t *o, const char *key)
{
    return strtoull(text_of(o, key), NULL, 10);
}

TEST(a_span_as_json)
{
    struct trace_ref parent;
    json_t *root, *span;
    int64_t before = clock_wall_ms();

    rig_configure(JSON_ON);
    trace_parse("00-" T "-" S "-01", &parent);
    struct span *s = span_begin(SPAN_TOOL_CALL, &parent);
    struct trace_ref ref = span_ref(s);
    EXPECT(ref.set && ref.ours && ref.flags == 1 && memcmp(ref.trace, parent.trace, 16) == 0 &&
           memcmp(ref.span, parent.span, 8) != 0);
    span_text(s, KEY_TENANT, "first");
    span_text(s, KEY_TENANT, "acme \"quoted\" \xff \xe2\x82\xac");
    span_text(s, KEY_TOOL, NULL);
    span_number(s, KEY_EXIT_CODE, INT64_MIN);
    span_flag(s, KEY_FORCED, true);
    span_fail(s, "timeout", "it took too long");
    span_end(&s);
    EXPECT(s == NULL);
    span = json_array_get(posted_spans(&root), 0);
    EXPECT_STR(rig.posts[0].type, "application/json");
    EXPECT_STR(text_of(span, "traceId"), T);
    EXPECT_STR(text_of(span, "parentSpanId"), S);
    EXPECT(strlen(text_of(span, "spanId")) == 16);
    EXPECT_STR(text_of(span, "name"), "tool.call");
    EXPECT(json_integer_value(json_object_get(span, "kind")) == 2);
    EXPECT(json_integer_value(json_object_get(span, "flags")) == 0x301);
    EXPECT_STR(text_of(attribute(span, "sandglass.tenant"), "stringValue"),
               "acme \"quoted\" \xef\xbf\xbd \xe2\x82\xac");
    EXPECT(!attribute(span, "sandglass.tool"));
    EXPECT(!attribute(span, "langfuse.observation.type"));
    EXPECT_STR(text_of(attribute(span, "process.exit.code"), "intValue"), "-9223372036854775808");
    EXPECT(json_is_true(json_object_get(attribute(span, "sandglass.forced"), "boolValue")));
    EXPECT_STR(text_of(attribute(span, "error.type"), "stringValue"), "timeout");
    json_t *status = json_object_get(span, "status");
    EXPECT(json_integer_value(json_object_get(status, "code")) == 2);
    EXPECT_STR(text_of(status, "message"), "it took too long");
    uint64_t begin = time_of(span, "startTimeUnixNano"), end = time_of(span, "endTimeUnixNano");
    EXPECT(begin <= end && begin / 1000000 + 5 >= (uint64_t)before &&
           end / 1000000 <= (uint64_t)clock_wall_ms() + 5);
    json_decref(root);
    rig_forget();
    rig_configure("");
}

TEST(who_speaks)
{
    json_t *root;

    rig_configure(JSON_ON);
    struct span *s = span_begin(SPAN_CELL, NULL);
    span_end(&s);
    json_t *span = json_array_get(posted_spans(&root), 0);
    json_t *of = json_array_get(json_object_get(root, "resourceSpans"), 0);
    json_t *resource = json_object_get(of, "resource");
    json_t *scope = json_object_get(json_array_get(json_object_get(of, "scopeSpans"), 0), "scope");
    EXPECT_STR(text_of(attribute(resource, "service.name"), "stringValue"), "sandglass");
    EXPECT_STR(text_of(attribute(resource, "service.version"), "stringValue"), SG_VERSION);
    EXPECT(strlen(text_of(attribute(resource, "service.instance.id"), "stringValue")) == 36);
    EXPECT(attribute(resource, "host.name"));
    EXPECT_STR(text_of(scope, "name"), "sandglass");
    EXPECT(!json_object_get(span, "parentSpanId"));
    EXPECT(json_object_size(json_object_get(span, "status")) == 0);
    json_decref(root);
    rig_forget();
    rig_configure("");
}

TEST(steps_and_events)
{
    const struct span_detail detail[] = {{.key = KEY_VERDICT, .text = "blocked"},
                                         {.key = KEY_DESTINATION, .text = "evil.example"},
                                         {.key = KEY_DESTINATION_PORT, .number = 443},
                                         {.key = KEY_REASON, .text = "no rule"},
                                         {.key = KEY_COUNT, .number = 5}};
    json_t *root, *spans, *span = NULL, *step;

    rig_configure(JSON_ON "langfuse_host = http://127.0.0.1:2\n");
    struct span *s = span_begin(SPAN_SANDBOX_CREATE, NULL);
    usleep(2000);
    uint64_t now = clock_ns();
    span_step(s, SPAN_STEP_FILES, now - 1000, now);
    span_step(s, SPAN_STEP_READY, now - 500, now - 2000); /* never ends before it begins */
    span_step(s, SPAN_STEP_ORDER, 1, now + 1000000000);   /* nor goes beyond what it is a step of */
    span_text(s, KEY_SESSION, "conversation-1");
    span_text(s, KEY_TEMPLATE, "base");
    span_event(s, "egress", detail, ARRAY_SIZE(detail));
    span_end(&s);
    rig.flushed = false;
    trace_flush(rig_flushed, NULL);
    rig_turn();
    EXPECT(rig.n == 2); /* both targets */
    rig_answer(0, 200, 0);
    EXPECT(!rig.flushed);
    rig_answer(1, 200, 0);
    EXPECT(rig.flushed);
    root = json_loadb(rig.posts[1].body, rig.posts[1].len, 0, NULL);
    spans = json_object_get(
        json_array_get(json_object_get(json_array_get(json_object_get(root, "resourceSpans"), 0),
                                       "scopeSpans"),
                       0),
        "spans");
    EXPECT(json_array_size(spans) == 4);
    span = json_array_get(spans, 3);
    step = json_array_get(spans, 0);
    EXPECT_STR(text_of(span, "name"), "sandbox.create");
    EXPECT_STR(text_of(step, "name"), "sandbox.create.files");
    EXPECT_STR(text_of(step, "parentSpanId"), text_of(span, "spanId"));
    EXPECT_STR(text_of(step, "traceId"), text_of(span, "traceId"));
    EXPECT(json_integer_value(json_object_get(step, "kind")) == 1);
    EXPECT_STR(text_of(attribute(step, "session.id"), "stringValue"), "conversation-1");
    EXPECT(!attribute(step, "sandglass.template"));
    EXPECT_STR(text_of(attribute(step, "langfuse.observation.type"), "stringValue"), "span");
    EXPECT(time_of(step, "endTimeUnixNano") - time_of(step, "startTimeUnixNano") == 1000);
    step = json_array_get(spans, 1);
    EXPECT(time_of(step, "endTimeUnixNano") == time_of(step, "startTimeUnixNano"));
    step = json_array_get(spans, 2);
    EXPECT(time_of(step, "startTimeUnixNano") == time_of(span, "startTimeUnixNano"));
    EXPECT(time_of(step, "endTimeUnixNano") == time_of(span, "endTimeUnixNano"));
    json_t *events = json_object_get(span, "events"), *event = json_array_get(events, 0);
    EXPECT(json_array_size(events) == 1);
    EXPECT_STR(text_of(event, "name"), "egress");
    EXPECT(json_array_size(json_object_get(event, "attributes")) == 4);
    EXPECT_STR(text_of(attribute(event, "destination.port"), "intValue"), "443");
    EXPECT_STR(text_of(attribute(event, "destination.address"), "stringValue"), "evil.example");
    json_decref(root);
    rig_forget();
    rig_configure("");
}

/* ---- bounds ---------------------------------------------------------------------------------- */

TEST(a_span_is_bounded)
{
    static char large[SPAN_VALUE_MAX + 100];
    json_t *root, *span;

    rig_configure(JSON_ON);
    memset(large, 'x', sizeof(large) - 1);
    /* A character of three bytes over the cut. */
    memcpy(large + SPAN_VALUE_MAX - 1, "\xe2\x82\xac", 3);
    struct span *s = span_begin(SPAN_CELL, NULL);
    span_text(s, KEY_INPUT, large);
    for (int i = 0; i < SPAN_EVENTS_MAX + 7; i++)
        span_event(s, "egress", NULL, 0);
    for (int i = 0; i < 100; i++)
        span_step(s, SPAN_STEP_FILES, 1, 2);
    span_end(&s);
    json_t *spans = posted_spans(&root);
    EXPECT(json_array_size(spans) == SPAN_STEPS_MAX + 1);
    span = json_array_get(spans, SPAN_STEPS_MAX);
    EXPECT(strlen(text_of(attribute(span, "langfuse.observation.input"), "stringValue")) ==
           SPAN_VALUE_MAX - 1);
    EXPECT(json_array_size(json_object_get(span, "events")) == SPAN_EVENTS_MAX);
    EXPECT(json_integer_value(json_object_get(span, "droppedEventsCount")) == 7);
    json_decref(root);
    rig_forget();
    rig_configure("");
}

TEST(the_worst_span_fits)
{
    static char worst[SPAN_VALUE_MAX + 1];
    static const char *const on[] = {JSON_ON, "otlp_endpoint = http://127.0.0.1:1\n"};

    memset(worst, '\x01', sizeof(worst) - 1); /* six bytes each in JSON */
    for (size_t k = 0; k < ARRAY_SIZE(on); k++) {
        rig_configure(on[k]);
        struct span *s = span_begin(SPAN_CELL, NULL);
        for (enum span_key key = 0; key < KEY_MAX_; key++)
            span_text(s, key, worst);
        for (int i = 0; i < SPAN_EVENTS_MAX; i++)
            span_event(s, "egress",
                       (struct span_detail[]){{.key = KEY_REASON, .text = worst},
                                              {.key = KEY_TOOL, .text = worst}},
                       2);
        span_fail(s, worst, worst);
        double dropped = rig_counted("dropped");
        span_end(&s);
        rig_flush();
        EXPECT(rig.n == 1 && rig.posts[0].len < EXPORTER_BODY_MAX);
        EXPECT(rig_counted("dropped") == dropped);
        if (k == 0) {
            json_t *root = json_loadb(rig.posts[0].body, rig.posts[0].len, 0, NULL);

            EXPECT(root);
            json_decref(root);
        }
        rig_forget();
    }
    rig_configure("");
}

/* ---- as protobuf ----------------------------------------------------------------------------- */

/* A reader of any protobuf: fields one after the other. tests/e2e has OpenTelemetry's own decoder;
 * this one finds what is cut or nested wrongly. */
struct field {
    unsigned number, type;
    uint64_t value;
    const unsigned char *bytes;
    size_t len;
};

static uint64_t read_varint(const unsigned char **at, const unsigned char *end)
{
    uint64_t v = 0;

    for (unsigned shift = 0; shift < 64 && *at < end; shift += 7) {
        unsigned char c = *(*at)++;

        v |= (uint64_t)(c & 0x7f) << shift;
        if (!(c & 0x80))
            return v;
    }
    EXPECT(!"a whole varint");
    return 0;
}

static bool read_field(const unsigned char **at, const unsigned char *end, struct field *f)
{
    if (*at >= end)
        return false;
    uint64_t tag = read_varint(at, end);
    *f = (struct field){.number = (unsigned)(tag >> 3), .type = tag & 7};
    if (f->type == 0) {
        f->value = read_varint(at, end);
        return true;
    }
    f->len = f->type == 1 ? 8 : f->type == 5 ? 4 : (size_t)read_varint(at, end);
    f->bytes = *at;
    EXPECT(f->type == 1 || f->type == 2 || f->type == 5);
    EXPECT((size_t)(end - *at) >= f->len);
    if ((size_t)(end - *at) < f->len)
        return false;
    *at += f->len;
    return true;
}

/* The nth field of that number. */
static struct field find(struct field in, unsigned number, unsigned nth)
{
    const unsigned char *at = in.bytes, *end = at ? at + in.len : at;
    struct field f;

    while (read_field(&at, end, &f))
        if (f.number == number && nth-- == 0)
            return f;
    return (struct field){0};
}

static bool is_text(struct field f, const char *text)
{
    return f.type == 2 && f.len == strlen(text) && memcmp(f.bytes, text, f.len) == 0;
}

TEST(a_span_as_protobuf)
{
    struct trace_ref parent;

    rig_configure("otlp_endpoint = http://127.0.0.1:1\n");
    trace_parse("00-" T "-" S "-01", &parent);
    struct span *s = span_begin(SPAN_CELL, &parent);
    struct trace_ref ref = span_ref(s);
    span_text(s, KEY_TENANT, "\xc3\x28");
    span_number(s, KEY_EXIT_CODE, -1);
    span_flag(s, KEY_FORCED, false);
    span_event(s, "egress", (struct span_detail[]){{.key = KEY_VERDICT, .text = "allowed"}}, 1);
    span_fail(s, "exit", "status 1");
    span_end(&s);
    s = span_begin(SPAN_SANDBOX_PAUSE, &ref);
    span_end(&s);
    rig_flush();
    EXPECT(rig.n == 1);
    EXPECT_STR(rig.posts[0].type, "application/x-protobuf");
    struct field request = {.bytes = (unsigned char *)rig.posts[0].body, .len = rig.posts[0].len};
    struct field of = find(request, 1, 0), scope = find(of, 2, 0);
    EXPECT(is_text(find(find(find(of, 1, 0), 1, 0), 1, 0), "service.name"));
    EXPECT(is_text(find(find(find(find(of, 1, 0), 1, 0), 2, 0), 1, 0), "sandglass"));
    EXPECT(is_text(find(find(scope, 1, 0), 1, 0), "sandglass"));
    struct field span = find(scope, 2, 0), second = find(scope, 2, 1);
    EXPECT(find(span, 1, 0).len == 16 && memcmp(find(span, 1, 0).bytes, parent.trace, 16) == 0);
    EXPECT(find(span, 2, 0).len == 8 && memcmp(find(span, 2, 0).bytes, ref.span, 8) == 0);
    EXPECT(find(span, 4, 0).len == 8 && memcmp(find(span, 4, 0).bytes, parent.span, 8) == 0);
    EXPECT(is_text(find(span, 5, 0), "cell.execute"));
    EXPECT(find(span, 6, 0).value == 2 && find(second, 6, 0).value == 1);
    EXPECT(find(span, 7, 0).type == 1 && find(span, 8, 0).type == 1);
    struct field value = find(find(span, 9, 0), 2, 0);
    EXPECT(is_text(find(find(span, 9, 0), 1, 0), "sandglass.tenant"));
    EXPECT(is_text(find(value, 1, 0), "\xef\xbf\xbd("));
    EXPECT(find(find(find(span, 9, 1), 2, 0), 3, 0).value == UINT64_MAX);
    EXPECT(find(find(find(span, 9, 2), 2, 0), 2, 0).number == 2);
    EXPECT(is_text(find(find(span, 11, 0), 2, 0), "egress"));
    EXPECT(is_text(find(find(span, 15, 0), 2, 0), "status 1"));
    EXPECT(find(find(span, 15, 0), 3, 0).value == 2);
    EXPECT(find(span, 16, 0).type == 5);
    EXPECT(memcmp(find(second, 4, 0).bytes, ref.span, 8) == 0);
    rig_forget();
    rig_configure("");
}
