#include "front/core/output_filter.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/uv/handle.h"
#include "front/core/guard.h"
#include "front/telemetry/figures.h"

#define TEXT_MAX_   (16u * 1024 * 1024)
#define DETAIL_MAX  1024
#define REMEMBER_NS 1000000000ull

/* Compiled patterns. A call keeps those that were set when it began; the last user frees them. */
struct output_filter_patterns {
    struct sanitiser *sanitiser;
    unsigned refs;
    char *text;
};

static void patterns_unref(struct output_filter_patterns *p)
{
    if (!p || --p->refs)
        return;
    sanitiser_free(p->sanitiser);
    free(p->text);
    free(p);
}

int output_filter_set_patterns(struct front *f, const char *patterns, struct sg_error *e)
{
    struct sanitiser *s;

    if (f->patterns && strcmp(f->patterns->text, patterns) == 0)
        return 0;
    int r = sanitiser_new(patterns, &s, e);
    if (r < 0)
        return err_wrap(e, r, "sanitise_patterns");
    struct output_filter_patterns *p =
        NEW(struct output_filter_patterns, .sanitiser = s, .refs = 1, .text = xstrdup(patterns));
    patterns_unref(f->patterns);
    f->patterns = p;
    return 0;
}

/* ---- which mode ------------------------------------------------------------------------------ */

/* Converts a level from the store's form: 0 for not set, or the mode plus one. */
static struct sanitise_level level(uint8_t stored, bool no_off)
{
    bool set = stored > 0 && stored <= SANITISE_MODE_MAX_;

    return (struct sanitise_level){.set = set,
                                   .mode =
                                       set ? (enum sanitise_mode)(stored - 1) : SANITISE_ENFORCE,
                                   .no_off = no_off};
}

enum sanitise_mode output_filter_mode(const struct front *f, const struct store_tenant *tenant,
                                      bool own, const struct sanitise_level *call, bool *refused)
{
    const struct settings *s = &f->settings;
    struct sanitise_level levels[4] = {
        {.set = true,
         .mode = (enum sanitise_mode)(own ? s->sanitise : s->sanitise_streams),
         .no_off = s->sanitise_always},
        level(tenant->sanitise, tenant->sanitise_always),
        level(tenant->key_sanitise, false),
        call ? *call : (struct sanitise_level){0},
    };

    return sanitise_resolve(SANITISE_ENFORCE, levels, ARRAY_SIZE(levels), refused);
}

/* A tenant is looked up at most once a second, since cells come by the thousand. */
enum sanitise_mode output_filter_mode_of(struct front *f, const char *tenant, bool own)
{
    static struct store_tenant known;
    static uint64_t known_until;
    uint64_t now = clock_ns();

    if (now >= known_until || strcmp(known.id, tenant) != 0) {
        known_until = now + REMEMBER_NS;
        if (!f->store || store_tenant_get(f->store, tenant, &known) < 0) {
            known = (struct store_tenant){0};
            snprintf(known.id, sizeof(known.id), "%s", tenant);
        }
    }
    return output_filter_mode(f, &known, own, NULL, NULL);
}

/* ---- one call -------------------------------------------------------------------------------- */

struct output_filter {
    struct front *front;
    struct output_filter_patterns *patterns;
    enum sanitise_mode mode;
    char tenant[ID_LEN + 1], sandbox_id[ID_LEN + 1];
    struct sanitise_stream *streams[OUTPUT_FILTER_STREAMS_]; /* NULL until used */
    struct sanitise_counts texts;                            /* found in complete texts */
    struct strbuf out;
    uv_timer_t *timer; /* NULL: nobody waits */
    void (*on_quiet)(void *arg);
    void *arg;
};

struct output_filter *output_filter_new(struct front *f, enum sanitise_mode mode,
                                        const char *tenant, const char *sandbox_id,
                                        void (*on_quiet)(void *arg), void *arg)
{
    if (mode == SANITISE_OFF || !f->patterns)
        return NULL;
    struct output_filter *o =
        NEW(struct output_filter, .front = f, .patterns = f->patterns, .mode = mode,
            .on_quiet = on_quiet, .arg = arg, .out = strbuf_upto(TEXT_MAX_));
    o->patterns->refs++;
    snprintf(o->tenant, sizeof(o->tenant), "%s", tenant);
    snprintf(o->sandbox_id, sizeof(o->sandbox_id), "%s", sandbox_id);
    return o;
}

static uint64_t found(const struct output_filter *o, unsigned kind)
{
    uint64_t n = o->texts.of[kind];

    for (size_t i = 0; i < OUTPUT_FILTER_STREAMS_; i++)
        n += o->streams[i] ? sanitise_stream_counts(o->streams[i])->of[kind] : 0;
    return n;
}

bool output_filter_found(const struct output_filter *o)
{
    for (unsigned k = 0; o && k < SANITISE_KINDS; k++)
        if (found(o, k))
            return true;
    return false;
}

void output_filter_put_counts(const struct output_filter *o, struct json *j)
{
    jw_object_begin(j);
    for (unsigned k = 0; o && k < SANITISE_KINDS; k++) {
        if (!found(o, k))
            continue;
        jw_u64(jw_key(j, sanitiser_kind_name(o->patterns->sanitiser, k)), found(o, k));
    }
    jw_object_end(j);
}

static void record(const struct output_filter *o)
{
    AUTO(strbuf_done) struct strbuf detail = strbuf_upto(DETAIL_MAX);
    AUTO(strbuf_done) struct strbuf payload = strbuf_upto(2 * DETAIL_MAX);
    struct json j = {.out = &payload};

    for (unsigned k = 0; k < SANITISE_KINDS; k++)
        if (found(o, k)) {
            const char *kind = sanitiser_kind_name(o->patterns->sanitiser, k);

            strbuf_addf(&detail, "%s%s=%llu", detail.len ? " " : "", kind,
                        (unsigned long long)found(o, k));
            figure_add(FIG_SANITISED, kind, (double)found(o, k));
        }
    jw_object_begin(&j);
    jw_string(jw_key(&j, "kind"), "sanitise");
    jw_string(jw_key(&j, "verdict"), o->mode == SANITISE_ENFORCE ? "deny" : "report");
    jw_string(jw_key(&j, "detail"), detail.buf);
    jw_object_end(&j);
    guard_ask(o->front, ASK_RECORD, o->tenant, o->sandbox_id, payload.buf, payload.len, NULL, NULL);
}

void output_filter_free(struct output_filter *o)
{
    if (!o)
        return;
    if (output_filter_found(o))
        record(o);
    alarm_drop(&o->timer);
    for (size_t i = 0; i < OUTPUT_FILTER_STREAMS_; i++)
        sanitise_stream_free(o->streams[i]);
    strbuf_done(&o->out);
    patterns_unref(o->patterns);
    free(o);
}

static void on_timer(uv_timer_t *t)
{
    struct output_filter *o = t->data;

    o->on_quiet(o->arg);
}

/* Starts the timer if a stream holds back the end of a line, so that it is not held for long. */
static void watch(struct output_filter *o, bool holds)
{
    if (!o->on_quiet || (!holds && !o->timer))
        return;
    if (!o->timer)
        o->timer = alarm_new(o->front->loop, o);
    if (holds)
        uv_timer_start(o->timer, on_timer, OUTPUT_FILTER_QUIET_MS, 0);
    else
        uv_timer_stop(o->timer);
}

struct output_filter_text output_filter_feed(struct output_filter *o,
                                             enum output_filter_stream stream, const void *p,
                                             size_t len)
{
    if (!o)
        return (struct output_filter_text){p, len};
    struct sanitise_stream **st = &o->streams[stream];
    if (!*st)
        *st = sanitise_stream_new(o->patterns->sanitiser, o->mode);
    strbuf_reset(&o->out);
    sanitise_feed(*st, p, len, &o->out);
    if (stream != OUTPUT_FILTER_RESULT)
        watch(o,
              (o->streams[OUTPUT_FILTER_OUT] && sanitise_holds(o->streams[OUTPUT_FILTER_OUT])) ||
                  (o->streams[OUTPUT_FILTER_ERR] && sanitise_holds(o->streams[OUTPUT_FILTER_ERR])));
    return (struct output_filter_text){o->out.buf, o->out.len};
}

struct output_filter_text output_filter_flush(struct output_filter *o,
                                              enum output_filter_stream stream)
{
    if (!o || !o->streams[stream])
        return (struct output_filter_text){"", 0};
    strbuf_reset(&o->out);
    sanitise_flush(o->streams[stream], &o->out);
    return (struct output_filter_text){o->out.buf, o->out.len};
}

void output_filter_clean(struct output_filter *o, struct strbuf *text)
{
    if (!o || !text->len)
        return;
    strbuf_reset(&o->out);
    sanitise_text(o->patterns->sanitiser, o->mode, text->buf, text->len, &o->out, &o->texts);
    strbuf_reset(text);
    strbuf_add(text, o->out.buf, o->out.len);
}

void output_filter_stored_message(struct front *f, const char *text, char *ret, size_t cap)
{
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(cap);

    if (f->patterns)
        sanitise_text(f->patterns->sanitiser, SANITISE_ENFORCE, text, strlen(text), &out, NULL);
    snprintf(ret, cap, "%s", f->patterns ? out.buf : text);
}
