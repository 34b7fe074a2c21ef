#include "front/core/starting.h"

#include "front/core/defaults.h"
#include "front/core/shell.h"
#include "lib/base/clock.h"
#include "lib/uv/handle.h"

#define NS_PER_MS 1000000ull
#define SHOWN     200 /* bytes of a command in an error */

struct starting {
    struct sandbox *sandbox;
    struct starting_plan plan;
    struct call start, ready_call;
    uv_timer_t *pause, *limit;
    bool ready;                   /* done, and watched since */
    bool started;                 /* the agent has told so: what it tells again is of no account */
    char last[MEMORY_LIMIT_TEXT]; /* how the last ready command ended */
};

static void starting_free(struct starting *s)
{
    call_cancel(&s->start);
    call_cancel(&s->ready_call);
    alarm_drop(&s->pause);
    alarm_drop(&s->limit);
    sandbox_unref(s->sandbox);
    free(s);
}

static void finish(struct starting *s, int r, const struct sg_error *e)
{
    struct starting_plan plan = s->plan;

    if (r == 0 && plan.failed) {
        s->ready = true;
        call_cancel(&s->ready_call);
        alarm_drop(&s->pause);
        alarm_drop(&s->limit);
    } else {
        starting_free(s);
    }
    plan.done(plan.arg, r, e);
}

PRINTF(3, 4)
static void fail(struct starting *s, const char *command, const char *fmt, ...)
{
    struct sg_error e;
    char why[256];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(why, sizeof(why), fmt, ap);
    va_end(ap);
    bool start = command == defaults_start(s->sandbox->spec.defaults);
    err_set(&e, SG_ERR_GONE, -EBUSY, "failed to run %s command '%.*s': %s",
            start ? "start" : "ready", SHOWN, command, why);
    finish(s, e.code, &e);
}

static void on_limit(uv_timer_t *t)
{
    struct starting *s = t->data;
    const char *ready = defaults_ready(s->sandbox->spec.defaults);

    if (ready)
        fail(s, ready, "not ready within %g s%s%s", (double)s->plan.limit_ms / 1000,
             s->last[0] ? ": " : "", s->last);
    else
        finish(s, 0, NULL);
}

static void try_ready(struct starting *s);

static void on_pause(uv_timer_t *t)
{
    try_ready(t->data);
}

static void drop_data(struct call *c, uint8_t sub UNUSED, const void *p UNUSED, size_t len)
{
    call_consumed(c, len);
}

static void ignore_event(struct call *c UNUSED, uint8_t what UNUSED, const void *p UNUSED,
                         size_t len UNUSED)
{
}

static void on_ready_end(struct call *c, int status, const char *message, const void *result,
                         size_t len)
{
    struct starting *s = c->owner;
    struct shell_end end;

    if (status != 0 || shell_end_read(result, len, &end) < 0) {
        fail(s, defaults_ready(s->sandbox->spec.defaults), "%s",
             status ? message : "malformed answer");
    } else if (end.text[0] == '\0' && !end.timed_out) {
        finish(s, 0, NULL);
    } else {
        snprintf(s->last, sizeof(s->last), "%s", end.text);
        alarm_set(s->pause, s->plan.every_ms * NS_PER_MS, on_pause);
    }
}

static int run(struct starting *s, struct call *c, const char *command, uint32_t flags)
{
    const json_t *defaults = s->sandbox->spec.defaults;
    struct shell sh = {.command = command,
                       .user = defaults_user(defaults),
                       .cwd = defaults_workdir(defaults),
                       .flags = flags,
                       .timeout_ms = flags ? 0 : s->plan.limit_ms};
    struct sg_error e = {0};
    int r = shell_begin(c, s->sandbox, &sh, &e);

    if (r < 0)
        fail(s, command, "%s", e.message);
    return r;
}

/* E2B's waitForPort and its relatives need programs that an image may not have: ours are tried
 * last. */
#define READY_PATH "PATH=$PATH:/usr/local/lib/sandglass-tools\n"

static void try_ready(struct starting *s)
{
    AUTO(free_p) char *command = NULL;

    if (asprintf(&command, READY_PATH "%s", defaults_ready(s->sandbox->spec.defaults)) < 0)
        abort();
    s->ready_call = (struct call){.owner = s,
                                  .uncounted = true,
                                  .on_event = ignore_event,
                                  .on_data = drop_data,
                                  .on_end = on_ready_end};
    run(s, &s->ready_call, command, 0);
}

/* ---- the start command ----------------------------------------------------------------------- */

static void wait_for_ready(struct starting *s)
{
    if (defaults_ready(s->sandbox->spec.defaults))
        try_ready(s);
    else
        alarm_set(s->limit, s->plan.blind_ms * NS_PER_MS, on_limit);
}

static void on_start_event(struct call *c, uint8_t what, const void *p UNUSED, size_t len UNUSED)
{
    struct starting *s = c->owner;

    if (what != EVENT_STARTED || s->started)
        return;
    s->started = true;
    wait_for_ready(s);
}

static void on_start_data(struct call *c, uint8_t sub, const void *p, size_t len)
{
    struct starting *s = c->owner;

    if (s->plan.on_output)
        s->plan.on_output(s->plan.arg, sub == CHAN_STDERR, p, len);
    call_consumed(c, len);
}

static void on_start_end(struct call *c, int status, const char *message, const void *result,
                         size_t len)
{
    struct starting *s = c->owner;
    struct shell_end end;

    if (s->ready) {
        if (status != 0 || shell_end_read(result, len, &end) < 0 || end.text[0])
            s->plan.failed(s->plan.arg);
        return;
    }
    if (status != 0 || shell_end_read(result, len, &end) < 0)
        fail(s, defaults_start(s->sandbox->spec.defaults), "%s",
             status ? message : "malformed answer");
    else if (end.text[0])
        fail(s, defaults_start(s->sandbox->spec.defaults), "%s", end.text);
}

bool starting_needed(const json_t *defaults)
{
    return defaults_start(defaults) || defaults_ready(defaults);
}

static void on_begin(uv_timer_t *t)
{
    struct starting *s = t->data;

    alarm_set(s->limit, s->plan.limit_ms * NS_PER_MS, on_limit);
    if (!defaults_start(s->sandbox->spec.defaults)) {
        try_ready(s);
        return;
    }
    s->start = (struct call){.owner = s,
                             .uncounted = true,
                             .lasting = true,
                             .on_event = on_start_event,
                             .on_data = on_start_data,
                             .on_end = on_start_end};
    run(s, &s->start, defaults_start(s->sandbox->spec.defaults), PROC_DETACH);
}

struct starting *starting_begin(struct sandbox *b, const struct starting_plan *plan)
{
    struct starting *s = NEW(struct starting, .sandbox = sandbox_ref(b), .plan = *plan);

    s->limit = alarm_new(b->front->loop, s);
    s->pause = alarm_new(b->front->loop, s);
    alarm_set(s->pause, 0, on_begin);
    return s;
}

void starting_cancel(struct starting *s)
{
    starting_free(s);
}
