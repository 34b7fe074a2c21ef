#include "front/telemetry/span.h"

#include <string.h>
#include <time.h>

#include "lib/base/clock.h"
#include "lib/text/json.h"
#include "front/telemetry/export.h"
#include "front/telemetry/ids.h"

#define SAMPLED      0x01
#define REPLACEMENT  "\xef\xbf\xbd"
#define WALL_EACH_NS 1000000000ull

#define NAME_TEXT(id, name) name,
static const char *const names[] = {SPAN_NAMES(NAME_TEXT)};
static const char *const keys[] = {SPAN_KEYS(NAME_TEXT)};
_Static_assert(ARRAY_SIZE(names) == SPAN_NAME_MAX_ && ARRAY_SIZE(keys) == KEY_MAX_,
               "a text for each");

const char *span_name_text(enum span_name name)
{
    return names[name];
}

const char *span_key_text(enum span_key key)
{
    return keys[key];
}

/* The difference between wall time and clock_ns. It is looked up only once in a while: the wall
 * clock is corrected in small steps, and one look-up costs half as much as a span. */
static int64_t wall_offset(uint64_t now)
{
    static int64_t offset;
    static uint64_t read_ns;
    struct timespec t;

    if (read_ns == 0 || now - read_ns > WALL_EACH_NS) {
        clock_gettime(CLOCK_REALTIME, &t);
        offset = (int64_t)t.tv_sec * 1000000000 + t.tv_nsec - (int64_t)clock_ns();
        read_ns = now;
    }
    return offset;
}

/* ---- texts ----------------------------------------------------------------------------------- */

/* The length of a text that is cut at max, but not within a character. */
static size_t cut_length(const char *text, size_t max)
{
    size_t len = strnlen(text, max + 1);

    if (len <= max)
        return len;
    for (len = max; len > 0 && max - len < 3 && ((unsigned char)text[len] & 0xc0) == 0x80;)
        len--;
    return len;
}

/* Counts the bytes that are no UTF-8. Each takes two bytes more when it is replaced. */
static size_t count_bad(const char *text, size_t len)
{
    const unsigned char *p = (const unsigned char *)text, *end = p + len;
    size_t bad = 0;

    while (p < end) {
        size_t n = *p < 0x80 ? 1 : jw_utf8_sequence(p, (size_t)(end - p));

        bad += n == 0;
        p += n > 0 ? n : 1;
    }
    return bad;
}

static char *copy_clean(const char *text, size_t len, uint32_t *ret_len)
{
    size_t bad = count_bad(text, len);
    size_t room = len + bad * (sizeof(REPLACEMENT) - 2);
    char *copy = xcalloc(1, room + 1), *out = copy;

    for (size_t i = 0; bad > 0 && i < len;) {
        size_t n = jw_utf8_sequence((const unsigned char *)text + i, len - i);

        if (n > 0)
            memcpy(out, text + i, n);
        else
            memcpy(out, REPLACEMENT, sizeof(REPLACEMENT) - 1);
        out += n > 0 ? n : sizeof(REPLACEMENT) - 1;
        i += n > 0 ? n : 1;
    }
    if (bad == 0)
        memcpy(copy, text, len);
    *ret_len = (uint32_t)room;
    return copy;
}

/* False: this span has no room for any more text. */
static bool take_text(struct span *s, struct span_value *v, const char *text, size_t max)
{
    size_t left = SPAN_TEXTS_MAX - s->texts;
    size_t len = cut_length(text, max < left ? max : left);

    if (len == 0 && text[0])
        return false;
    v->text = copy_clean(text, len, &v->len);
    s->texts += len;
    return true;
}

/* ---- attributes ------------------------------------------------------------------------------ */

static void free_texts(struct span_value *values, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (values[i].type == SPAN_TEXT)
            free(values[i].text);
}

/* The place of a key. A key occurs once, so a second value takes the place of the first. */
static struct span_value *place_of(struct span *s, enum span_key key)
{
    for (size_t i = 0; i < s->n_values; i++)
        if (s->values[i].key == key) {
            free_texts(&s->values[i], 1);
            return &s->values[i];
        }
    if (s->n_values == SPAN_ATTRS_MAX) {
        s->lost_values++;
        return NULL;
    }
    return &s->values[s->n_values++];
}

void span_text(struct span *s, enum span_key key, const char *value)
{
    struct span_value v = {.key = (uint8_t)key, .type = SPAN_TEXT}, *place;

    if (!s || !value)
        return;
    if (!take_text(s, &v, value, SPAN_VALUE_MAX)) {
        s->lost_values++;
        return;
    }
    place = place_of(s, key);
    if (place)
        *place = v;
    else
        free(v.text);
}

static void put_number(struct span *s, enum span_key key, enum span_value_type type, int64_t value)
{
    struct span_value *place = s ? place_of(s, key) : NULL;

    if (place)
        *place = (struct span_value){.key = (uint8_t)key, .type = (uint8_t)type, .number = value};
}

void span_number(struct span *s, enum span_key key, int64_t value)
{
    put_number(s, key, SPAN_NUMBER, value);
}

void span_flag(struct span *s, enum span_key key, bool value)
{
    put_number(s, key, SPAN_FLAG, value);
}

void span_event(struct span *s, const char *name, const struct span_detail *detail, size_t n)
{
    if (!s)
        return;
    if (s->n_events == SPAN_EVENTS_MAX) {
        s->lost_events++;
        return;
    }
    struct span_happening *h = NEW(struct span_happening, .ns = clock_ns(), .name = name);
    for (size_t i = 0; i < n && i < SPAN_DETAILS_MAX; i++) {
        struct span_value v = {.key = (uint8_t)detail[i].key, .type = SPAN_NUMBER};

        v.number = detail[i].number;
        if (detail[i].text) {
            v.type = SPAN_TEXT;
            if (!take_text(s, &v, detail[i].text, SPAN_DETAIL_MAX))
                continue;
        }
        h->values[h->n++] = v;
    }
    list_append(&s->events, &h->link);
    s->n_events++;
}

void span_step(struct span *s, enum span_name name, uint64_t begin_ns, uint64_t end_ns)
{
    if (s && s->n_steps < SPAN_STEPS_MAX)
        s->steps[s->n_steps++] = (struct span_lap){
            .name = name, .begin_ns = begin_ns, .end_ns = end_ns < begin_ns ? begin_ns : end_ns};
}

void span_fail(struct span *s, const char *type, const char *message)
{
    struct span_value v = {0};

    if (!s)
        return;
    s->failed = true;
    span_text(s, KEY_ERROR_TYPE, type);
    if (message && take_text(s, &v, message, SPAN_DETAIL_MAX)) {
        free(s->message);
        s->message = v.text;
    }
}

/* ---- begin and end --------------------------------------------------------------------------- */

static bool sampled(const struct trace_ref *parent)
{
    if (parent && parent->set)
        return parent->flags & SAMPLED;
    return trace_random() % 100 < export_sample();
}

struct span *span_begin(enum span_name name, const struct trace_ref *parent)
{
    if (!trace_wanted() || !sampled(parent))
        return NULL;

    struct span *s = xcalloc(1, sizeof(*s));
    s->name = name;
    s->ref = (struct trace_ref){.flags = SAMPLED, .set = true, .ours = true};
    if (parent && parent->set) {
        s->parent = *parent;
        s->ref.flags = parent->flags;
        memcpy(s->ref.trace, parent->trace, sizeof(s->ref.trace));
    } else {
        trace_random_bytes(s->ref.trace, sizeof(s->ref.trace));
    }
    trace_random_bytes(s->ref.span, sizeof(s->ref.span));
    s->begin_ns = clock_ns();
    return s;
}

struct trace_ref span_ref(const struct span *s)
{
    return s ? s->ref : (struct trace_ref){0};
}

static void span_free(struct span *s)
{
    free_texts(s->values, s->n_values);
    LIST_EACH(struct span_happening, h, &s->events, link) {
        free_texts(h->values, h->n);
        free(h);
    }
    free(s->message);
    free(s);
}

/* Whether steps get this attribute of their span too: Langfuse looks at each span by itself, so a
 * step must also show whose it is. */
static bool is_inherited(const struct span_value *v)
{
    static const bool these[KEY_MAX_] = {
        [KEY_TENANT] = true,  [KEY_CONVERSATION] = true, [KEY_PATH] = true,
        [KEY_SANDBOX] = true, [KEY_SESSION] = true,      [KEY_USER] = true,
    };

    return these[v->key];
}

static uint64_t within(const struct span *s, uint64_t ns)
{
    return ns < s->begin_ns ? s->begin_ns : ns > s->end_ns ? s->end_ns : ns;
}

/* Queues a step. It borrows the span's texts, and lies within the span's time. */
static void queue_step(const struct span *s, const struct span_lap *lap)
{
    struct span step = {.name = lap->name, .is_step = true, .wall_ns = s->wall_ns};

    step.begin_ns = within(s, lap->begin_ns);
    step.end_ns = within(s, lap->end_ns);
    step.ref = step.parent = s->ref;
    trace_random_bytes(step.ref.span, sizeof(step.ref.span));
    for (size_t i = 0; i < s->n_values; i++)
        if (is_inherited(&s->values[i]))
            step.values[step.n_values++] = s->values[i];
    export_span(&step);
}

void span_end(struct span **span)
{
    struct span *s = *span;

    if (!s)
        return;
    *span = NULL;
    s->end_ns = clock_ns();
    s->wall_ns = wall_offset(s->end_ns);
    if (trace_wanted()) {
        for (size_t i = 0; i < s->n_steps; i++)
            queue_step(s, &s->steps[i]);
        export_span(s);
    }
    span_free(s);
}

void span_drop(struct span **span)
{
    if (*span)
        span_free(*span);
    *span = NULL;
}
