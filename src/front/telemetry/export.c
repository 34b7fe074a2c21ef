/* Each target has its own place in the queue, and one batch under way at a time. A batch that could
 * not be delivered is put together again from the spans that are still there: meanwhile the queue
 * moves on, and the pauses grow. OTLP says what may be tried again: 429, 502, 503, 504, and a post
 * without an answer. A target would refuse anything else again, so those spans are given up.
 *
 * span_end sends nothing itself: it only sets the timer. */
#include "front/telemetry/export.h"

#include <stdio.h>
#include <string.h>
#include <uv.h>

#include "lib/base/clock.h"
#include "lib/log/log.h"
#include "front/telemetry/figures.h"
#include "front/telemetry/ids.h"
#include "front/telemetry/queue.h"
#include "front/telemetry/target.h"

#define NS_PER_MS    1000000ull
#define FLUSH_MS     1000
#define SPAN_MAX     (2u * 1024 * 1024) /* of a span: twice the most that texts in JSON can take */
#define SCRATCH_KEEP (64u * 1024)
#define BODY_MAX     (EXPORT_BATCH_SIZE + SPAN_MAX + HEAD_MAX + 16 * EXPORT_BATCH_SPANS)
#define HEAD_MAX     4096 /* of a request, without its spans */

enum state { FINE, DOWN, REFUSING };

struct target {
    const char *name; /* of the setting */
    bool (*read)(const struct settings *s, char url[TARGET_URL_MAX], struct target_headers *ret);
    bool wanted, under_way;
    char url[TARGET_URL_MAX];
    struct target_headers headers;
    uint64_t next, until; /* the batch that is under way, or the next one, is [next, until) */
    unsigned failures;
    uint64_t not_before_ns;
    enum state state;
};

static struct target targets[] = {
    {.name = "otlp_endpoint", .read = target_otlp},
    {.name = "langfuse_host", .read = target_langfuse},
};
#define LANGFUSE (&targets[1])

static struct {
    const struct otlp_form *form;
    struct exporter *exporter;
    uv_loop_t *loop;
    uv_timer_t timer, flush_timer;
    uint64_t due_ns; /* of the timer; 0: the timer is not set */
    bool wanted, content;
    uint32_t sample;
    struct strbuf scratch;
    struct otlp_who who;
    char host[256], instance[37];
    void (*flushed)(void *arg);
    void *flush_arg;
} export;

bool trace_wanted(void)
{
    return export.wanted;
}

bool trace_content_wanted(void)
{
    return export.wanted && export.content;
}

uint32_t export_sample(void)
{
    return export.sample;
}

/* ---- the timer ------------------------------------------------------------------------------- */

static void on_timer(uv_timer_t *timer);

static bool waits(const struct target *t)
{
    return t->wanted && !t->under_way && t->next < queue_next();
}

/* When the next batch of a target is due. The target must have spans that wait. */
static uint64_t due_of(const struct target *t)
{
    uint64_t due;

    if (export.flushed)
        return 0;
    if (queue_next() - t->next >= EXPORT_BATCH_SPANS ||
        queue_bytes_from(t->next) >= EXPORT_BATCH_SIZE)
        due = 0;
    else
        due = queue_get(t->next)->came_ns + EXPORT_AGE_MS * NS_PER_MS;
    return due > t->not_before_ns ? due : t->not_before_ns;
}

static void set_timer(uint64_t now)
{
    uint64_t due = UINT64_MAX;

    for (size_t i = 0; i < ARRAY_SIZE(targets); i++)
        if (waits(&targets[i]) && due_of(&targets[i]) < due)
            due = due_of(&targets[i]);
    /* A timer that fires too early finds nothing to do, and is set again. */
    if (due == UINT64_MAX || (export.due_ns && export.due_ns <= due))
        return;
    export.due_ns = due > now ? due : now;
    uv_timer_start(&export.timer, on_timer, due > now ? (due - now) / NS_PER_MS + 1 : 0, 0);
}

/* ---- what becomes of spans ------------------------------------------------------------------- */

static void count(const char *fate, uint64_t n)
{
    if (n > 0)
        figure_add(FIG_SPANS, fate, (double)n);
}

/* Counts the spans that the queue dropped before this target got to them. */
static void catch_up(struct target *t)
{
    if (!t->wanted || t->under_way || t->next >= queue_first())
        return;
    count("dropped", queue_first() - t->next);
    t->next = queue_first();
}

static void release(void)
{
    uint64_t least = queue_next();

    for (size_t i = 0; i < ARRAY_SIZE(targets); i++)
        if (targets[i].wanted && targets[i].next < least)
            least = targets[i].next;
    queue_release(least);
}

static void tell(struct target *t, enum state state, int status)
{
    char why[64];

    if (t->state == state)
        return;
    t->state = state;
    if (status < 0)
        snprintf(why, sizeof(why), "%s", strerror(-status));
    else
        snprintf(why, sizeof(why), "status %d", status);
    switch (state) {
    case FINE:
        log_line(LEVEL_INFO, "traces: %s accepts them again", t->name);
        break;
    case DOWN:
        log_line(LEVEL_WARN, "traces: %s cannot be reached (%s): they wait, the oldest are dropped",
                 t->name, why);
        break;
    case REFUSING:
        log_line(LEVEL_WARN, "traces: %s refuses them (%s): they are dropped", t->name, why);
        break;
    }
}

static void flush_over(void)
{
    void (*flushed)(void *arg) = export.flushed;

    export.flushed = NULL;
    uv_timer_stop(&export.flush_timer);
    flushed(export.flush_arg);
}

static void look_if_flushed(void)
{
    if (!export.flushed)
        return;
    for (size_t i = 0; i < ARRAY_SIZE(targets); i++)
        if (targets[i].under_way || waits(&targets[i]))
            return;
    flush_over();
}

static bool may_try_again(int status)
{
    return status < 0 || status == 429 || status == 502 || status == 503 || status == 504;
}

/* Pauses the target, for a time that varies by half, so that servers that failed together do not
 * come back together. */
static void pause_target(struct target *t, uint64_t asked_ms)
{
    uint64_t ms = (uint64_t)EXPORT_PAUSE_MS << (t->failures < 10 ? t->failures : 10);

    t->failures++;
    if (ms > EXPORT_PAUSE_MAX)
        ms = EXPORT_PAUSE_MAX;
    ms = ms / 2 + trace_random() % ms;
    if (asked_ms > EXPORT_ASKED_MAX)
        asked_ms = EXPORT_ASKED_MAX;
    t->not_before_ns = clock_ns() + (ms > asked_ms ? ms : asked_ms) * NS_PER_MS;
}

static void on_posted(void *arg, int status, uint64_t retry_after_ms)
{
    struct target *t = arg;
    uint64_t n = t->until - t->next;

    t->under_way = false;
    if (!t->wanted) {
        release();
        look_if_flushed();
        return;
    }
    if (!may_try_again(status)) {
        bool sent = status >= 200 && status < 300;

        count(sent ? "sent" : "refused", n);
        tell(t, sent ? FINE : REFUSING, status);
        t->next = t->until;
        t->failures = 0;
    } else {
        tell(t, DOWN, status);
        pause_target(t, retry_after_ms);
        /* A server that ends does not wait for another attempt. */
        if (export.flushed) {
            count("dropped", queue_next() - t->next);
            t->next = queue_next();
        }
    }
    catch_up(t);
    release();
    look_if_flushed();
    set_timer(clock_ns());
}

/* ---- a batch --------------------------------------------------------------------------------- */

/* Collects the spans of a batch. All have one form; the setting may have changed between two
 * spans. */
static size_t gather(const struct target *t, struct otlp_piece pieces[EXPORT_BATCH_SPANS])
{
    const struct otlp_form *form = queue_get(t->next)->form;
    size_t n = 0, size = 0;

    while (n < EXPORT_BATCH_SPANS && t->next + n < queue_next()) {
        const struct queue_record *r = queue_get(t->next + n);

        if (r->form != form || (n > 0 && size + r->len > EXPORT_BATCH_SIZE))
            break;
        pieces[n++] = (struct otlp_piece){.bytes = r->bytes, .len = r->len};
        size += r->len;
    }
    return n;
}

static int post(struct target *t, const struct otlp_form *form, const struct strbuf *body)
{
    struct exporter_post p = {.url = t->url,
                              .content_type = form->content_type,
                              .body = body->buf,
                              .len = body->len,
                              .done = on_posted,
                              .arg = t};

    for (size_t i = 0; i < t->headers.n; i++)
        p.headers[i] =
            (struct exporter_header){.name = t->headers.names[i], .value = &t->headers.values[i]};
    return exporter_post(export.exporter, &p);
}

static void send_batch(struct target *t)
{
    static struct otlp_piece pieces[EXPORT_BATCH_SPANS];
    AUTO(strbuf_done) struct strbuf body = strbuf_upto(BODY_MAX);
    const struct otlp_form *form = queue_get(t->next)->form;
    size_t n = gather(t, pieces);

    form->add_request(&body, &export.who, pieces, n);
    int r = body.truncated ? -E2BIG : post(t, form, &body);
    if (r == 0) {
        t->until = t->next + n;
        t->under_way = true;
    } else if (r == -EAGAIN) {
        pause_target(t, 0);
    } else {
        count("refused", n);
        tell(t, REFUSING, r);
        t->next += n;
        release();
    }
}

static void on_timer(uv_timer_t *timer UNUSED)
{
    uint64_t now = clock_ns();

    export.due_ns = 0;
    for (size_t i = 0; i < ARRAY_SIZE(targets); i++)
        if (waits(&targets[i]) && due_of(&targets[i]) <= now)
            send_batch(&targets[i]);
    look_if_flushed();
    set_timer(now);
}

/* Langfuse's word for the kind of a span: spans that do what the user asked for have screens of
 * their own there. */
static const char *observation_of(const struct span *s)
{
    static const char *const words[SPAN_NAME_MAX_] = {[SPAN_TOOL_CALL] = "tool",
                                                      [SPAN_CELL] = "tool",
                                                      [SPAN_PROCESS] = "tool",
                                                      [SPAN_AGENT] = "agent"};

    if (!LANGFUSE->wanted)
        return NULL;
    return words[s->name] ? words[s->name] : "span";
}

void export_span(const struct span *s)
{
    uint64_t now = clock_ns();

    strbuf_reset(&export.scratch);
    export.form->add_span(&export.scratch, s, observation_of(s));
    if (export.scratch.truncated)
        count("dropped", 1);
    else
        queue_push(export.form, export.scratch.buf, export.scratch.len, now);
    if (export.scratch.cap > SCRATCH_KEEP)
        strbuf_done(&export.scratch);
    for (size_t i = 0; i < ARRAY_SIZE(targets); i++)
        catch_up(&targets[i]);
    set_timer(now);
}

/* ---- settings -------------------------------------------------------------------------------- */

static void name_ourselves(void)
{
    uint8_t id[16];
    char hex[33] = "";

    trace_random_bytes(id, sizeof(id));
    id[6] = (uint8_t)((id[6] & 0x0f) | 0x40); /* makes it a UUID of version 4 */
    id[8] = (uint8_t)((id[8] & 0x3f) | 0x80);
    trace_hex(id, sizeof(id), hex);
    snprintf(export.instance, sizeof(export.instance), "%.8s-%.4s-%.4s-%.4s-%.12s", hex, hex + 8,
             hex + 12, hex + 16, hex + 20);
    if (gethostname(export.host, sizeof(export.host) - 1) < 0)
        snprintf(export.host, sizeof(export.host), "unknown");
    export.who = (struct otlp_who){{{"service.name", "sandglass"},
                                    {"service.version", SG_VERSION},
                                    {"service.instance.id", export.instance},
                                    {"host.name", export.host}}};
}

static void start(uv_loop_t *loop)
{
    export.loop = loop;
    uv_timer_init(loop, &export.timer);
    uv_timer_init(loop, &export.flush_timer);
    strbuf_init(&export.scratch, SPAN_MAX);
    name_ourselves();
}

void trace_configure(const struct settings *s, struct exporter *h, struct uv_loop_s *loop)
{
    if (!export.loop)
        start(loop);
    export.exporter = h;
    export.form = s->otlp_protocol == OTLP_JSON ? &otlp_json_form : &otlp_proto_form;
    export.sample = s->trace_sample;
    export.content = s->trace_content;
    export.wanted = false;
    for (size_t i = 0; i < ARRAY_SIZE(targets); i++) {
        struct target *t = &targets[i];
        bool had = t->wanted;

        t->wanted = t->read(s, t->url, &t->headers) && h;
        /* A new target does not get the spans from before. */
        if (!had)
            t->next = t->until = queue_next();
        t->failures = 0;
        t->not_before_ns = 0;
        export.wanted |= t->wanted;
    }
    release();
    set_timer(clock_ns());
}

static void on_flush_late(uv_timer_t *timer UNUSED)
{
    if (export.flushed)
        flush_over();
}

void trace_flush(void (*done)(void *arg), void *arg)
{
    bool anything = false;

    for (size_t i = 0; i < ARRAY_SIZE(targets); i++)
        anything |= targets[i].under_way || waits(&targets[i]);
    if (!export.loop || !anything) {
        done(arg);
        return;
    }
    export.flushed = done;
    export.flush_arg = arg;
    uv_timer_start(&export.flush_timer, on_flush_late, FLUSH_MS, 0);
    set_timer(clock_ns());
}
