#include "front/core/webhooks.h"

#include <inttypes.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "lib/base/clock.h"
#include "front/core/events.h"
#include "lib/log/log.h"
#include "front/store/events.h"
#include "front/telemetry/figures.h"
#include "front/telemetry/exporter.h"

#define SLOTS       STORE_WEBHOOK_OPEN
#define MANY        16   /* waiting events from which on one at a time is too slow */
#define SCAN_MAX    1000 /* events looked at in one turn of the loop */
#define DELAY_MAX_S 300
#define SAVE_MS     100

uint64_t webhook_second_ms = 1000;

struct slot {
    uint64_t event; /* 0: the slot is free */
    uint32_t tries; /* failed tries */
    uint64_t due_ms;
    bool flying, stale; /* stale: forget the event once the post is answered */
};

enum mood { MOOD_GOOD, MOOD_FAILING, MOOD_GIVING_UP };

static struct {
    struct front *front;
    struct exporter *exporter;
    bool on;
    char url[sizeof(((struct settings *)0)->webhook_url)];
    uint32_t kinds;
    struct slot slots[SLOTS];
    uint64_t begun;
    uint64_t saved_ms;
    uv_timer_t timer, saver;
    struct event_watch watch;
    enum mood mood;
} hooks;

static void go_on(void);
static void on_timer(uv_timer_t *timer);

/* ---- what is remembered ---------------------------------------------------------------------- */

static void save(uv_timer_t *timer)
{
    struct store_webhook w = {.done = hooks.begun};

    hooks.saved_ms = uv_now(timer->loop);
    for (size_t i = 0; i < SLOTS; i++)
        if (hooks.slots[i].event && !hooks.slots[i].stale) {
            w.open[w.n].event = hooks.slots[i].event;
            w.open[w.n++].tries = hooks.slots[i].tries;
        }
    /* If this fails, some events are sent twice after a restart. The next change saves again. */
    store_webhook_set(hooks.front->store, &w, NULL);
}

static void changed(void)
{
    uint64_t since = uv_now(hooks.front->loop) - hooks.saved_ms;

    if (!uv_is_active((uv_handle_t *)&hooks.saver))
        uv_timer_start(&hooks.saver, save, since < SAVE_MS ? SAVE_MS - since : 0, 0);
}

/* ---- success and failure --------------------------------------------------------------------- */

/* Logs a line when the state changes, not one for each event. */
static void feel(enum mood mood, uint64_t event, const char *why)
{
    if (mood == hooks.mood || (mood == MOOD_FAILING && hooks.mood == MOOD_GIVING_UP))
        return;
    hooks.mood = mood;
    if (mood == MOOD_GOOD)
        log_line(LEVEL_INFO, "webhook: the receiver accepts events again");
    else
        log_line(LEVEL_WARN, "webhook: event %" PRIu64 " %s: %s", event,
                 mood == MOOD_FAILING ? "was not accepted and will be posted again" : "is dropped",
                 why);
}

static const char *why_not(int status, char *buf, size_t cap)
{
    if (status > 0)
        snprintf(buf, cap, "HTTP %d", status);
    else if (status == -ENOENT)
        snprintf(buf, cap, "it is no longer kept (event_keep)");
    else
        snprintf(buf, cap, "%s", strerror(-status));
    return buf;
}

static bool some_fail(void)
{
    for (size_t i = 0; i < SLOTS; i++)
        if (hooks.slots[i].event && hooks.slots[i].tries > 0)
            return true;
    return false;
}

static void end_slot(struct slot *s, bool taken, int status)
{
    uint64_t event = s->event;
    char why[64];

    figure_add(FIG_WEBHOOKS, taken ? "delivered" : "given up", 1);
    *s = (struct slot){0};
    if (!taken)
        feel(MOOD_GIVING_UP, event, why_not(status, why, sizeof(why)));
    else if (!some_fail())
        feel(MOOD_GOOD, event, NULL);
    changed();
}

uint64_t webhook_delay_ms(uint32_t tries, uint32_t random, uint64_t asked_ms)
{
    uint64_t most = DELAY_MAX_S * webhook_second_ms, ms = most;

    if (tries > 0 && tries < 10)
        ms = webhook_second_ms << (tries - 1);
    if (ms > most)
        ms = most;
    ms = ms - ms / 4 + random % (ms / 2 + 1); /* spread, so that many do not come at once */
    if (asked_ms > most)
        asked_ms = most;
    return ms > asked_ms ? ms : asked_ms;
}

static bool is_final(int status)
{
    return status >= 400 && status < 500 && status != 408 && status != 425 && status != 429;
}

static void on_posted(void *arg, int status, uint64_t retry_after_ms)
{
    struct slot *s = arg;
    uint32_t random = 0;
    char why[64];

    s->flying = false;
    if (s->stale) {
        *s = (struct slot){0};
        go_on();
        return;
    }
    if (status >= 200 && status < 300) {
        end_slot(s, true, status);
    } else if (is_final(status) || ++s->tries >= WEBHOOK_TRIES) {
        end_slot(s, false, status);
    } else {
        if (getrandom(&random, sizeof(random), 0) < 0)
            random = 0;
        s->due_ms = uv_now(hooks.front->loop) + webhook_delay_ms(s->tries, random, retry_after_ms);
        figure_add(FIG_WEBHOOKS, "retried", 1);
        feel(MOOD_FAILING, s->event, why_not(status, why, sizeof(why)));
        changed();
    }
    go_on();
}

/* ---- sending --------------------------------------------------------------------------------- */

/* Sets a header to a text that is no secret; headers hold struct hidden. */
static void set_header(struct exporter_header *h, const char *name, struct hidden *value,
                       const char *text)
{
    hidden_set(value, text, strlen(text));
    *h = (struct exporter_header){name, value};
}

static void sign(const struct hidden *secret, const char *json, struct strbuf *ret)
{
    AUTO(strbuf_done) struct strbuf text = strbuf_upto(strlen(json) + 32);
    unsigned char mac[EVP_MAX_MD_SIZE];
    const char *key = hidden_reveal(secret);
    int64_t t = clock_wall_ms() / 1000;
    unsigned len = 0;

    strbuf_addf(&text, "%" PRId64 ".%s", t, json);
    if (!HMAC(EVP_sha256(), key, (int)strlen(key), (const unsigned char *)text.buf, text.len, mac,
              &len))
        abort(); /* no memory */
    strbuf_addf(ret, "t=%" PRId64 ",v1=", t);
    for (unsigned i = 0; i < len; i++)
        strbuf_addf(ret, "%02x", mac[i]);
}

static int post(struct slot *s, enum event_kind kind, const char *json)
{
    AUTO(strbuf_done) struct strbuf signature = strbuf_upto(128);
    const struct hidden *secret = &hooks.front->settings.webhook_secret;
    struct hidden values[3];
    char number[24];
    struct exporter_post p = {.url = hooks.url,
                              .content_type = "application/json",
                              .body = json,
                              .len = strlen(json),
                              .done = on_posted,
                              .arg = s};

    snprintf(number, sizeof(number), "%" PRIu64, s->event);
    set_header(&p.headers[0], "Sandglass-Event", &values[0], event_kind_text(kind));
    set_header(&p.headers[1], "Sandglass-Delivery", &values[1], number);
    if (!hidden_empty(secret)) {
        sign(secret, json, &signature);
        set_header(&p.headers[2], "Sandglass-Signature", &values[2], signature.buf);
    }
    return exporter_post(hooks.exporter, &p);
}

struct sending {
    struct slot *slot;
    int r;
};

static bool send_found(const struct event *e, void *arg)
{
    struct sending *s = arg;

    if (e->id == s->slot->event)
        s->r = post(s->slot, e->kind, e->json);
    return false;
}

static void send_slot(struct slot *slot)
{
    struct sending s = {.slot = slot, .r = -ENOENT};
    bool gap;

    events_since(hooks.front, NULL, slot->event - 1, send_found, &s, &gap);
    if (s.r == 0)
        slot->flying = true;
    else if (s.r == -ENOENT || s.r == -EINVAL || s.r == -E2BIG)
        end_slot(slot, false, s.r);
    else /* not the event's fault: the exporter is busy, or descriptors or memory are short */
        slot->due_ms = uv_now(hooks.front->loop) + webhook_second_ms;
}

/* ---- choosing the next event ----------------------------------------------------------------- */

struct search {
    uint64_t found;
    size_t scanned;
};

static bool look_at(const struct event *e, void *arg)
{
    struct search *s = arg;

    if (s->scanned++ == SCAN_MAX)
        return false;
    hooks.begun = e->id;
    if (e->kind < EVENT_KIND_MAX_ && (hooks.kinds & (1u << e->kind)))
        s->found = e->id;
    return !s->found;
}

/* Returns the next event that the webhook wants; 0: none, or not yet. */
static uint64_t next_event(void)
{
    uint64_t gone = events_gone(hooks.front, NULL), last = events_last(hooks.front);
    struct search s = {0};
    char why[64];
    bool gap;

    if (hooks.begun < gone) {
        figure_add(FIG_WEBHOOKS, "given up", (double)(gone - hooks.begun));
        feel(MOOD_GIVING_UP, gone, why_not(-ENOENT, why, sizeof(why)));
        hooks.begun = gone;
    }
    if (hooks.begun > last)
        hooks.begun = last; /* the store's file was removed: numbers start over */
    events_since(hooks.front, NULL, hooks.begun, look_at, &s, &gap);
    if (s.scanned > SCAN_MAX)
        uv_timer_start(&hooks.timer, on_timer, 0, 0);
    return s.found;
}

/* Returns a slot for another event; NULL: not now. */
static struct slot *free_slot(void)
{
    uint64_t waiting = events_last(hooks.front) - hooks.begun;
    size_t first_tries = 0, most = waiting > MANY ? SLOTS : 1;
    struct slot *found = NULL;

    for (size_t i = 0; i < SLOTS; i++) {
        struct slot *s = &hooks.slots[i];

        if (!s->event)
            found = s;
        else if (s->tries == 0)
            first_tries++;
        else if (s->tries < WEBHOOK_HOLD)
            return NULL;
    }
    return first_tries < most ? found : NULL;
}

static void wake_at(uint64_t due_ms)
{
    uint64_t now = uv_now(hooks.front->loop);

    uv_timer_start(&hooks.timer, on_timer, due_ms > now ? due_ms - now : 0, 0);
}

static void go_on(void)
{
    uint64_t now = uv_now(hooks.front->loop), due = UINT64_MAX, before = hooks.begun, event;
    struct slot *s;

    if (!hooks.on)
        return;
    uv_timer_stop(&hooks.timer);
    for (s = hooks.slots; s < hooks.slots + SLOTS; s++)
        if (s->event && !s->flying && s->due_ms <= now)
            send_slot(s);
    while ((s = free_slot()) && (event = next_event())) {
        *s = (struct slot){.event = event};
        send_slot(s);
    }
    for (s = hooks.slots; s < hooks.slots + SLOTS; s++)
        if (s->event && !s->flying && s->due_ms < due)
            due = s->due_ms;
    if (due != UINT64_MAX && !uv_is_active((uv_handle_t *)&hooks.timer))
        wake_at(due);
    if (hooks.begun != before)
        changed();
}

static void on_timer(uv_timer_t *timer UNUSED)
{
    go_on();
}

static void on_event(struct event_watch *w UNUSED, const struct event *e UNUSED)
{
    /* Sent from the loop, not in the middle of the operation that the event is about. */
    if (hooks.on)
        wake_at(0);
}

/* ---- from start to end ----------------------------------------------------------------------- */

static void forget_all(void)
{
    for (size_t i = 0; i < SLOTS; i++)
        if (hooks.slots[i].flying)
            hooks.slots[i].stale = true;
        else
            hooks.slots[i] = (struct slot){0};
}

static void take_up(const struct store_webhook *w)
{
    hooks.begun = w->done;
    for (size_t i = 0; i < w->n; i++)
        hooks.slots[i] = (struct slot){.event = w->open[i].event, .tries = w->open[i].tries};
}

/* Makes all open events due now: the new target may accept them. */
static void try_anew(void)
{
    for (size_t i = 0; i < SLOTS; i++) {
        hooks.slots[i].tries = 0;
        hooks.slots[i].due_ms = 0;
    }
}

void webhooks_configure(struct front *f)
{
    const struct settings *s = &f->settings;
    struct sg_error e = {0};
    bool was_on = hooks.on;

    if (!hooks.front)
        return;
    hooks.on = s->webhook_url[0] && hooks.exporter;
    if (hooks.on &&
        event_types_parse("webhook_events", s->webhook_events[0] ? s->webhook_events : "*",
                          &hooks.kinds, &e) < 0) {
        log_line(LEVEL_ERROR, "no events are posted: %s", e.message);
        hooks.on = false;
    }
    if (!hooks.on) {
        forget_all();
        hooks.begun = 0;
        uv_timer_stop(&hooks.timer);
        changed();
        return;
    }
    if (hidden_empty(&s->webhook_secret))
        log_line(LEVEL_WARN, "webhook_secret is not set: events are posted without a signature");
    if (!was_on && hooks.begun == 0)
        hooks.begun = events_last(f);
    if (strcmp(hooks.url, s->webhook_url) != 0) {
        if (hooks.url[0])
            try_anew();
        memcpy(hooks.url, s->webhook_url, sizeof(hooks.url));
    }
    go_on();
}

void webhooks_start(struct front *f, struct exporter *h)
{
    struct store_webhook w;

    if (!hooks.front) {
        uv_timer_init(f->loop, &hooks.timer);
        uv_timer_init(f->loop, &hooks.saver);
        uv_unref((uv_handle_t *)&hooks.timer);
        uv_unref((uv_handle_t *)&hooks.saver);
    }
    hooks.front = f;
    hooks.exporter = h;
    hooks.on = false;
    hooks.begun = 0;
    hooks.mood = MOOD_GOOD;
    memset(hooks.slots, 0, sizeof(hooks.slots));
    events_unwatch(&hooks.watch);
    hooks.watch.on_event = on_event;
    events_watch(f, &hooks.watch);
    if (f->settings.webhook_url[0] && store_webhook_get(f->store, &w, NULL) == 0)
        take_up(&w);
    webhooks_configure(f);
}

void webhooks_flush(void)
{
    if (hooks.front && uv_is_active((uv_handle_t *)&hooks.saver)) {
        uv_timer_stop(&hooks.saver);
        save(&hooks.saver);
    }
}
