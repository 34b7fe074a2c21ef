#include "front/core/events.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/log/log.h"
#include "front/core/e2b_event.h"
#include "front/store/events.h"
#include "front/telemetry/figures.h"

#define NUMBERS    4096 /* event numbers reserved at a time */
#define JSON_MAX   8192 /* of one event; its texts are bounded */
#define DETAIL_MAX 512
#define RETRY_MS   1000 /* after a write that failed */
#define TRIM_PART  16   /* the store is trimmed each event_keep / TRIM_PART writes */

struct kept {
    uint64_t id;
    int64_t ms;
    enum event_kind kind;
    char tenant[ID_LEN + 1];
    char sandbox[ID_LEN + 1]; /* "": it is about none */
    char *json, *e2b;
};

/* A tenant that had events since the start. Each tenant keeps event_keep events, whatever others
 * do. */
struct share {
    struct list link;
    char tenant[ID_LEN + 1];
    uint64_t gone;      /* events up to this number are not kept any more */
    uint32_t untrimmed; /* written since old ones were last removed */
};

static struct {
    bool on;
    struct store *store;
    uv_timer_t timer;
    struct kept ring[EVENTS_KEPT];
    size_t first, n;
    uint64_t last, written, reserved;
    uint64_t gone; /* up to this number no tenant's are kept any more */
    struct list shares;
    uint64_t flushed_ms;
    bool failing; /* the last write failed */
    struct list watches;
} events;

static const char *const names[] = {
#define KIND_NAME(id, name) [HAPPENED_##id] = name,
    EVENT_KINDS(KIND_NAME)
#undef KIND_NAME
        [EVENT_KIND_MAX_] = "gap",
};

const char *event_kind_text(enum event_kind kind)
{
    return names[kind];
}

static bool kind_parse(const char *text, enum event_kind *ret)
{
    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        if (strcmp(names[i], text) == 0) {
            *ret = (enum event_kind)i;
            return true;
        }
    return false;
}

_Static_assert(EVENT_KIND_MAX_ < 32, "a bit for each kind");

/* The kinds that a pattern names: "sandbox.*", "*" or a whole name. */
static uint32_t kinds_like(const char *text, size_t len)
{
    bool many = len > 0 && text[len - 1] == '*';
    uint32_t found = 0;

    for (unsigned i = 0; i < EVENT_KIND_MAX_; i++)
        if (many ? strncmp(names[i], text, len - 1) == 0
                 : strlen(names[i]) == len && strncmp(names[i], text, len) == 0)
            found |= 1u << i;
    return found;
}

int event_types_parse(const char *what, const char *text, uint32_t *ret, struct sg_error *e)
{
    uint32_t kinds = 0;

    for (;; text++) {
        text += strspn(text, " ");
        size_t len = strcspn(text, ", ");
        uint32_t found = kinds_like(text, len);

        if (!found)
            return err_invalid(e,
                               "%s: there is no event '%.*s'; write names such as sandbox.created, "
                               "sandbox.* or *, with commas between",
                               what, (int)(len < 40 ? len : 40), text);
        kinds |= found;
        text += len;
        text += strspn(text, " ");
        if (*text != ',')
            break;
    }
    if (*text)
        return err_invalid(e, "%s: put commas between events", what);
    *ret = kinds;
    return 0;
}

/* ---- the ring -------------------------------------------------------------------------------- */

static struct kept *at(size_t i)
{
    return &events.ring[(events.first + i) % EVENTS_KEPT];
}

/* The index of the first event in the ring with a number above `after`; events.n if there is
 * none. */
static size_t first_after(uint64_t after)
{
    size_t low = 0, high = events.n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (at(middle)->id > after)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static struct share *share_of(const char *tenant)
{
    struct share *s =
        LIST_FIND(struct share, at, &events.shares, link, strcmp(at->tenant, tenant) == 0);

    if (s)
        return s;
    s = xcalloc(1, sizeof(*s));
    snprintf(s->tenant, sizeof(s->tenant), "%s", tenant);
    s->untrimmed = UINT32_MAX / 2; /* trim soon: the setting may have become smaller */
    store_events_gone(events.store, tenant, &s->gone, NULL);
    list_push(&events.shares, &s->link);
    return s;
}

static void drop_oldest(void)
{
    struct kept *k = at(0);

    /* An event that could not be written until now is lost. */
    if (k->id > events.written)
        share_of(k->tenant)->gone = events.written = k->id;
    free(steal_ptr(&k->json));
    free(steal_ptr(&k->e2b));
    events.first = (events.first + 1) % EVENTS_KEPT;
    events.n--;
}

static struct event event_of(const struct kept *k)
{
    struct event e = {.id = k->id, .ms = k->ms, .kind = k->kind, .json = k->json, .e2b = k->e2b};

    memcpy(e.tenant, k->tenant, sizeof(e.tenant));
    return e;
}

/* ---- the store ------------------------------------------------------------------------------- */

static void told_store(int r, const struct sg_error *e)
{
    if (r < 0 && !events.failing)
        log_line(LEVEL_WARN, "events cannot be stored and are kept in memory for now: %s",
                 e->message);
    else if (r == 0 && events.failing)
        log_line(LEVEL_INFO, "events are stored again");
    events.failing = r < 0;
}

static void trim(uint32_t keep)
{
    struct store_trimmed t;

    LIST_EACH(struct share, s, &events.shares, link) {
        if (s->untrimmed < keep / TRIM_PART + 1 ||
            store_events_trim(events.store, s->tenant, keep, &t, NULL) < 0)
            continue;
        s->untrimmed = 0;
        s->gone = t.gone > s->gone ? t.gone : s->gone;
        /* If the ring still has them, the webhook can still post them. */
        if (t.unposted > 0 && (events.n == 0 || t.gone < at(0)->id))
            figure_add(FIG_WEBHOOKS, "given up", (double)t.unposted);
    }
}

static void flush(struct front *f)
{
    static struct store_event batch[EVENTS_KEPT];
    size_t i = first_after(events.written), n = 0;
    struct sg_error e = {0};

    events.flushed_ms = uv_now(f->loop);
    for (; i < events.n; i++, n++) {
        const struct kept *k = at(i);
        batch[n] = (struct store_event){.id = k->id,
                                        .ms = k->ms,
                                        .tenant = k->tenant,
                                        .kind = event_kind_text(k->kind),
                                        .json = k->json,
                                        .sandbox = k->sandbox,
                                        .e2b = k->e2b};
    }
    if (n == 0)
        return;
    int r = store_events_write(events.store, batch, n, &e);
    told_store(r, &e);
    if (r < 0)
        return;
    events.written = events.last;
    for (i = 0; i < n; i++)
        share_of(batch[i].tenant)->untrimmed++;
    trim(f->settings.event_keep);
}

/* Reserves numbers in the store. If the store fails, numbering goes on all the same: the running
 * server matters more than numbers that might repeat if the front is killed now. */
static void reserve(void)
{
    struct sg_error e = {0};

    events.reserved = events.last + NUMBERS;
    told_store(store_events_reserve(events.store, events.reserved, &e), &e);
}

static void on_timer(uv_timer_t *timer)
{
    struct front *f = timer->data;

    flush(f);
    if (events.failing)
        uv_timer_start(timer, on_timer, RETRY_MS, 0);
    else if (events.reserved - events.last < NUMBERS / 2)
        reserve(); /* now, rather than during somebody's request */
}

/* Plans a write of new events. The first event after a pause is written at once, so that a front
 * that dies loses next to nothing. */
static void plan_flush(struct front *f)
{
    uint64_t since = uv_now(f->loop) - events.flushed_ms;

    if (!uv_is_active((uv_handle_t *)&events.timer))
        uv_timer_start(&events.timer, on_timer,
                       since < EVENTS_FLUSH_MS ? EVENTS_FLUSH_MS - since : 0, 0);
}

/* ---- telling --------------------------------------------------------------------------------- */

static void put(struct json *j, const char *key, const char *value, size_t max)
{
    size_t len = value ? strlen(value) : 0;

    if (len > 0)
        jw_bytes(jw_key(j, key), value, len < max ? len : max);
}

static char *write_json(uint64_t id, int64_t ms, enum event_kind kind,
                        const struct event_about *about)
{
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(JSON_MAX);
    char time[CLOCK_TEXT_LEN];
    struct json j = {.out = &out};

    clock_text(ms, time);
    jw_object_begin(&j);
    jw_u64(jw_key(&j, "id"), id);
    put(&j, "type", event_kind_text(kind), DETAIL_MAX);
    put(&j, "time", time, DETAIL_MAX);
    put(&j, "tenantId", about->tenant, ID_LEN);
    put(&j, "sandboxId", about->sandbox_id, ID_LEN);
    put(&j, "contextId", about->context, ID_LEN);
    put(&j, "conversationId", about->conversation, DETAIL_MAX);
    put(&j, "pathId", about->path, DETAIL_MAX);
    put(&j, "agentId", about->agent, ID_LEN);
    put(&j, "reason", about->reason, DETAIL_MAX);
    put(&j, "detail", about->detail, DETAIL_MAX);
    put(&j, "requestId", about->request, DETAIL_MAX);
    jw_object_end(&j);
    return out.truncated ? NULL : strbuf_detach(&out, NULL);
}

static void add(struct front *f, enum event_kind kind, const char *tenant,
                const struct event_about *about)
{
    int64_t ms = clock_wall_ms();

    if (events.last >= events.reserved)
        reserve();
    uint64_t id = events.last + 1;
    char *json = write_json(id, ms, kind, about);
    if (!json)
        return;
    if (events.n == EVENTS_KEPT) {
        if (at(0)->id > events.written && !events.failing)
            flush(f);
        drop_oldest();
    }
    struct kept *k = at(events.n++);
    *k = (struct kept){.id = id, .ms = ms, .kind = kind, .json = json};
    k->e2b = e2b_event_write(kind, ms, about);
    snprintf(k->tenant, sizeof(k->tenant), "%s", tenant);
    snprintf(k->sandbox, sizeof(k->sandbox), "%s", about->sandbox_id ? about->sandbox_id : "");
    events.last = id;
    plan_flush(f);
    struct event e = event_of(k);
    LIST_EACH(struct event_watch, w, &events.watches, link)
        if (!w->tenant[0] || strcmp(w->tenant, tenant) == 0)
            w->on_event(w, &e);
}

void event_emit(struct front *f, enum event_kind kind, const struct event_about *about)
{
    if (!events.on)
        return;
    figure_add(FIG_EVENTS, event_kind_text(kind), 1);
    add(f, kind, about->tenant ? about->tenant : "", about);
}

/* ---- reading --------------------------------------------------------------------------------- */

struct reading {
    bool (*fn)(const struct event *e, void *arg);
    void *arg;
    bool stopped;
};

static bool on_stored(const struct store_event *s, void *arg)
{
    struct event e = {.id = s->id, .ms = s->ms, .json = s->json, .e2b = s->e2b};
    struct reading *r = arg;

    if (!kind_parse(s->kind, &e.kind))
        return true; /* a kind of a later version */
    snprintf(e.tenant, sizeof(e.tenant), "%s", s->tenant);
    r->stopped = !r->fn(&e, r->arg);
    return !r->stopped;
}

static bool is_for(const struct kept *k, const char *tenant)
{
    return !tenant || strcmp(k->tenant, tenant) == 0 || strcmp(k->tenant, STORE_EVERYBODY) == 0;
}

void events_since(struct front *f, const char *tenant, uint64_t after,
                  bool (*fn)(const struct event *e, void *arg), void *arg, bool *ret_gap)
{
    uint64_t here = events.n > 0 ? at(0)->id : UINT64_MAX;
    struct reading r = {.fn = fn, .arg = arg};
    struct sg_error e = {0};

    *ret_gap = after < events_gone(f, tenant) || after > events.last;
    if (!events.on)
        return;
    if (after + 1 < here && after < events.written &&
        store_events_each(events.store, tenant, after, here, on_stored, &r, &e) < 0)
        told_store(-EIO, &e);
    for (size_t i = first_after(after); !r.stopped && i < events.n; i++) {
        struct event ev = event_of(at(i));
        if (is_for(at(i), tenant) && !fn(&ev, arg))
            return;
    }
}

uint64_t events_last(const struct front *f UNUSED)
{
    return events.last;
}

uint64_t events_gone(const struct front *f UNUSED, const char *tenant)
{
    uint64_t own = tenant && events.on ? share_of(tenant)->gone : 0;

    return own > events.gone ? own : events.gone;
}

void events_watch(struct front *f UNUSED, struct event_watch *w)
{
    list_push(&events.watches, &w->link);
}

void events_unwatch(struct event_watch *w)
{
    list_remove(&w->link);
}

/* ---- from start to end ----------------------------------------------------------------------- */

/* Emits a "gap" for all tenants. An earlier front that did not end properly has left more numbers
 * reserved than events written. */
static void tell_of_death(struct front *f)
{
    add(f, EVENT_KIND_MAX_, STORE_EVERYBODY,
        &(struct event_about){
            .reason = "restart",
            .detail = "the server was interrupted: the last events before that may be missing"});
}

int events_start(struct front *f, struct sg_error *e)
{
    struct store_events_state state;
    int r = store_events_state(f->store, &state, e);

    if (r == 0)
        r = e2b_event_begin(f->store, e);
    if (r < 0)
        return r;
    if (!events.on) {
        uv_timer_init(f->loop, &events.timer);
        uv_unref((uv_handle_t *)&events.timer);
    }
    events.store = f->store;
    while (events.n > 0)
        drop_oldest();
    events.timer.data = f;
    events.on = true;
    events.failing = false;
    events.last = events.reserved = state.reserved > state.last ? state.reserved : state.last;
    events.written = state.last;
    for (struct share *s; (s = LIST_POP(struct share, &events.shares, link));)
        free(s);
    /* Earlier versions kept the last events of all tenants together, so none before the first
     * stored one is kept for anybody. */
    events.gone = state.first > 0 ? state.first - 1 : events.last;
    if (store_events_gone(events.store, NULL, &events.gone, NULL) == 0)
        store_events_set_gone(events.store, NULL, events.gone, NULL);
    if (state.reserved > state.last)
        tell_of_death(f);
    return 0;
}

void events_write_now(struct front *f)
{
    if (events.on && events.written < events.last)
        flush(f);
}

void events_flush(struct front *f)
{
    if (!events.on)
        return;
    uv_timer_stop(&events.timer);
    flush(f);
    if (!events.failing && store_events_reserve(events.store, events.last, NULL) == 0)
        events.reserved = events.last;
}
