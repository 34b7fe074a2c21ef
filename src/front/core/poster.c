#include "front/core/poster.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "front/telemetry/figures.h"
#include "lib/log/log.h"
#include "lib/uv/handle.h"

#define SLOTS       STORE_WEBHOOK_OPEN
#define MANY        16   /* waiting events from which on one at a time is too slow */
#define SCAN_MAX    1000 /* events looked at in one turn of the loop */
#define DELAY_MAX_S 300
#define SAVE_MS     100

uint64_t webhook_second_ms = 1000;

static struct {
    struct list all;
    uv_timer_t saver;
    uint64_t saved_ms;
} posters;

struct list *posters_all(void)
{
    return &posters.all;
}

/* ---- what is remembered ---------------------------------------------------------------------- */

static void save(struct poster *p)
{
    struct store_webhook w = {.done = p->begun};

    p->unsaved = false;
    for (size_t i = 0; i < SLOTS; i++)
        if (p->slots[i].event && !p->slots[i].stale) {
            w.open[w.n].event = p->slots[i].event;
            w.open[w.n++].tries = p->slots[i].tries;
        }
    /* If this fails, some events are sent twice after a restart. The next change saves again. */
    store_webhook_set(p->front->store, p->id, &w, NULL);
}

static void save_all(void)
{
    LIST_EACH(struct poster, p, &posters.all, link)
        if (p->unsaved)
            save(p);
}

static void on_saver(uv_timer_t *timer)
{
    posters.saved_ms = uv_now(timer->loop);
    save_all();
}

static void changed(struct poster *p)
{
    uint64_t since = uv_now(p->front->loop) - posters.saved_ms;

    p->unsaved = true;
    if (!posters.saver.loop) {
        uv_timer_init(p->front->loop, &posters.saver);
        uv_unref((uv_handle_t *)&posters.saver);
    }
    if (!uv_is_active((uv_handle_t *)&posters.saver))
        uv_timer_start(&posters.saver, on_saver, since < SAVE_MS ? SAVE_MS - since : 0, 0);
}

void posters_save(void)
{
    if (posters.saver.loop)
        uv_timer_stop(&posters.saver);
    save_all();
}

/* ---- success and failure --------------------------------------------------------------------- */

PRINTF(2, 3)
static void say(const struct poster *p, const char *fmt, ...)
{
    char text[256];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    if (!p->id[0])
        log_line(p->mood == POSTER_GOOD ? LEVEL_INFO : LEVEL_WARN, "webhook: %s", text);
    else
        log_with(LEVEL_INFO, &(struct log_about){.fault = FAULT_CLIENT, .tenant = p->tenant},
                 "webhook %s: %s", p->id, text);
}

/* Logs a line when the state changes, not one for each event. */
static void feel(struct poster *p, enum poster_mood mood, uint64_t event, const char *why)
{
    if (mood == p->mood || (mood == POSTER_FAILING && p->mood == POSTER_GIVING_UP))
        return;
    p->mood = mood;
    if (mood == POSTER_GOOD)
        say(p, "the receiver accepts events again");
    else
        say(p, "event %" PRIu64 " %s: %s", event,
            mood == POSTER_FAILING ? "was not accepted and will be posted again" : "is dropped",
            why);
}

static const char *why_not(int status, char *buf, size_t cap)
{
    if (status > 0)
        snprintf(buf, cap, "HTTP %d", status);
    else if (status == -ENOENT)
        snprintf(buf, cap, "it is no longer kept (event_keep)");
    else if (status == -EACCES)
        snprintf(buf, cap, "the operator does not allow its target (webhook_targets)");
    else
        snprintf(buf, cap, "%s", strerror(-status));
    return buf;
}

static bool some_fail(const struct poster *p)
{
    for (size_t i = 0; i < SLOTS; i++)
        if (p->slots[i].event && p->slots[i].tries > 0)
            return true;
    return false;
}

static void clear(struct poster_slot *s)
{
    *s = (struct poster_slot){.poster = s->poster};
}

static void end_slot(struct poster_slot *s, bool taken, int status)
{
    struct poster *p = s->poster;
    uint64_t event = s->event;
    char why[64];

    figure_add(FIG_WEBHOOKS, taken ? "delivered" : "given up", 1);
    clear(s);
    if (!taken)
        feel(p, POSTER_GIVING_UP, event, why_not(status, why, sizeof(why)));
    else if (!some_fail(p))
        feel(p, POSTER_GOOD, event, NULL);
    changed(p);
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
    return status == -EACCES ||
           (status >= 400 && status < 500 && status != 408 && status != 425 && status != 429);
}

static void try_later(struct poster_slot *s, int status, uint64_t retry_after_ms)
{
    struct poster *p = s->poster;
    uint32_t random = 0;
    char why[64];

    if (getrandom(&random, sizeof(random), 0) < 0)
        random = 0;
    s->due_ms = uv_now(p->front->loop) + webhook_delay_ms(s->tries, random, retry_after_ms);
    figure_add(FIG_WEBHOOKS, "retried", 1);
    feel(p, POSTER_FAILING, s->event, why_not(status, why, sizeof(why)));
    changed(p);
}

void poster_posted(void *arg, int status, uint64_t retry_after_ms)
{
    struct poster_slot *s = arg;
    struct poster *p = s->poster;
    bool taken = status >= 200 && status < 300;

    p->flying--;
    p->last_failed = !taken;
    s->flying = false;
    if (p->dropped) {
        if (p->flying == 0)
            p->gone(p);
        return;
    }
    if (s->stale)
        clear(s);
    else if (taken)
        end_slot(s, true, status);
    else if (is_final(status) || ++s->tries >= WEBHOOK_TRIES)
        end_slot(s, false, status);
    else
        try_later(s, status, retry_after_ms);
    poster_go_on(p);
}

/* ---- sending --------------------------------------------------------------------------------- */

/* Whether there is a place for one more post of this tenant's webhook. */
static bool has_place(const struct poster *p)
{
    unsigned all = 0, own = 0, failing = 0, own_failing = 0;

    if (!p->id[0])
        return true;
    LIST_EACH(struct poster, other, &posters.all, link) {
        bool is_own = strcmp(other->tenant, p->tenant) == 0;
        unsigned n = other->id[0] ? other->flying : 0;

        all += n;
        own += is_own ? n : 0;
        failing += other->last_failed ? n : 0;
        own_failing += is_own && other->last_failed ? n : 0;
    }
    return all < POSTS_OF_TENANTS && own < POSTS_OF_A_TENANT &&
           (!p->last_failed ||
            (failing < POSTS_THAT_FAIL && own_failing < POSTS_OF_A_TENANT_THAT_FAIL));
}

struct sending {
    struct poster_slot *slot;
    int r;
};

static bool send_found(const struct event *e, void *arg)
{
    struct sending *s = arg;

    if (e->id == s->slot->event)
        s->r = s->slot->poster->post(s->slot->poster, s->slot, e);
    return false;
}

static const char *events_of(const struct poster *p)
{
    return p->tenant[0] ? p->tenant : NULL;
}

static void send_slot(struct poster_slot *slot)
{
    struct sending s = {.slot = slot, .r = -EAGAIN};
    struct poster *p = slot->poster;
    bool gap;

    if (has_place(p)) {
        s.r = -ENOENT;
        events_since(p->front, events_of(p), slot->event - 1, send_found, &s, &gap);
    }
    if (s.r == 0) {
        slot->flying = true;
        p->flying++;
    } else if (s.r == -ENOENT || s.r == -EINVAL || s.r == -E2BIG || s.r == -EACCES) {
        end_slot(slot, false, s.r);
    } else { /* not the event's fault: there is no place, or descriptors or memory are short */
        slot->due_ms = uv_now(p->front->loop) + webhook_second_ms / 4;
    }
}

/* ---- choosing the next event ----------------------------------------------------------------- */

struct search {
    struct poster *poster;
    uint64_t found;
    size_t scanned;
};

static bool look_at(const struct event *e, void *arg)
{
    struct search *s = arg;

    if (s->scanned++ == SCAN_MAX)
        return false;
    s->poster->begun = e->id;
    if (e->kind < EVENT_KIND_MAX_ && (s->poster->kinds & (1u << e->kind)))
        s->found = e->id;
    return !s->found;
}

static void on_timer(uv_timer_t *timer)
{
    poster_go_on(timer->data);
}

/* Returns the next event that the receiver wants; 0: none, or not yet. */
static uint64_t next_event(struct poster *p)
{
    uint64_t gone = events_gone(p->front, events_of(p)), last = events_last(p->front);
    struct search s = {.poster = p};
    char why[64];
    bool gap;

    if (p->begun < gone) {
        figure_add(FIG_WEBHOOKS, "given up", (double)(gone - p->begun));
        feel(p, POSTER_GIVING_UP, gone, why_not(-ENOENT, why, sizeof(why)));
        p->begun = gone;
    }
    if (p->begun > last)
        p->begun = last; /* the store's file was removed: numbers start over */
    events_since(p->front, events_of(p), p->begun, look_at, &s, &gap);
    if (s.scanned > SCAN_MAX)
        uv_timer_start(p->timer, on_timer, 0, 0);
    return s.found;
}

/* Returns a slot for another event; NULL: not now. */
static struct poster_slot *free_slot(struct poster *p)
{
    uint64_t waiting = events_last(p->front) - p->begun;
    size_t first_tries = 0, most = waiting > MANY ? SLOTS : 1;
    struct poster_slot *found = NULL;

    for (size_t i = 0; i < SLOTS; i++) {
        struct poster_slot *s = &p->slots[i];

        if (!s->event)
            found = s;
        else if (s->tries == 0)
            first_tries++;
        else if (s->tries < WEBHOOK_HOLD)
            return NULL;
    }
    return first_tries < most ? found : NULL;
}

static void wake_at(struct poster *p, uint64_t due_ms)
{
    uint64_t now = uv_now(p->front->loop);

    uv_timer_start(p->timer, on_timer, due_ms > now ? due_ms - now : 0, 0);
}

void poster_go_on(struct poster *p)
{
    uint64_t now = uv_now(p->front->loop), due = UINT64_MAX, before = p->begun, event;
    struct poster_slot *s;

    if (!p->on)
        return;
    uv_timer_stop(p->timer);
    for (s = p->slots; s < p->slots + SLOTS; s++)
        if (s->event && !s->flying && s->due_ms <= now)
            send_slot(s);
    while ((s = free_slot(p)) && (event = next_event(p))) {
        s->event = event;
        send_slot(s);
    }
    for (s = p->slots; s < p->slots + SLOTS; s++)
        if (s->event && !s->flying && s->due_ms < due)
            due = s->due_ms;
    if (due != UINT64_MAX && !uv_is_active((uv_handle_t *)p->timer))
        wake_at(p, due);
    if (p->begun != before)
        changed(p);
}

void poster_wake(struct poster *p)
{
    if (p->on)
        wake_at(p, 0);
}

/* ---- from start to end ----------------------------------------------------------------------- */

void poster_start(struct poster *p)
{
    p->timer = alarm_new(p->front->loop, p);
    uv_unref((uv_handle_t *)p->timer);
    for (size_t i = 0; i < SLOTS; i++)
        p->slots[i].poster = p;
    list_append(&posters.all, &p->link);
}

bool poster_take_up(struct poster *p)
{
    struct store_webhook w;

    if (store_webhook_get(p->front->store, p->id, &w, NULL) < 0)
        return false;
    p->begun = w.done;
    for (size_t i = 0; i < w.n; i++)
        p->slots[i] =
            (struct poster_slot){.poster = p, .event = w.open[i].event, .tries = w.open[i].tries};
    return true;
}

void poster_begin_here(struct poster *p)
{
    p->begun = events_last(p->front);
    changed(p);
}

void poster_stop(struct poster *p)
{
    p->on = false;
    for (size_t i = 0; i < SLOTS; i++)
        if (p->slots[i].flying)
            p->slots[i].stale = true;
        else
            clear(&p->slots[i]);
    p->begun = 0;
    uv_timer_stop(p->timer);
    changed(p);
}

void poster_try_anew(struct poster *p)
{
    for (size_t i = 0; i < SLOTS; i++) {
        p->slots[i].tries = 0;
        p->slots[i].due_ms = 0;
    }
}

void poster_drop(struct poster *p)
{
    p->on = false;
    p->dropped = true;
    list_remove(&p->link);
    alarm_drop(&p->timer);
    if (p->flying == 0)
        p->gone(p);
}
