/* Events of a tenant's sandboxes, contexts and agents: as a stream that goes on, or as a page.
 *
 *   id: 42
 *   event: sandbox.created
 *   data: {"id":42,"type":"sandbox.created",...}
 *
 * A stream begins with an event that has an id and nothing else: a client that has seen no event
 * comes back to this place. A stream ends when the server does, and after STREAM_LIFE_MS, so that a
 * revoked key loses its stream too. Clients of server-sent events come back by themselves. */
#include <inttypes.h>
#include <string.h>

#include "lib/text/parse.h"
#include "lib/uv/handle.h"
#include "front/core/events.h"
#include "front/v1/check.h"
#include "front/v1/handlers.h"
#include "front/v1/reply.h"
#include "front/v1/shape.h"

#define HEARTBEAT_MS   15000
#define STREAM_LIFE_MS (3600u * 1000)
#define TICK_MS        1000
#define SCAN_MAX       2000 /* events that are looked at in one turn */
#define PAGE_SCAN_MAX  20000
#define LIMIT_DEFAULT  100
#define LIMIT_MAX      1000
#define NEEDLE_MAX     4096
#define PAGE_MAX       (10u * 1024 * 1024)

/* The events that a client wants. The two texts are pieces of an event's JSON to search for.
 * Nothing else in the JSON can look like them: quotes inside values are escaped. */
struct wanted {
    uint32_t kinds; /* a bit for each kind */
    char *sandbox_id, *conversation;
};

struct stream {
    struct e2b_req *q;
    struct wanted wanted;
    struct event_watch watch;
    uv_timer_t *timer;
    uint64_t after; /* number of the last event that was sent or skipped */
    size_t scanned;
    bool choked;
    uint64_t began_ms, wrote_ms;
};

/* ---- the query ------------------------------------------------------------------------------- */

static char *needle(const char *key, const char *value)
{
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(NEEDLE_MAX);
    struct json j = {.out = &out};

    if (!value)
        return NULL;
    jw_object_begin(&j);
    shape_text_key(&j, key, value);
    jw_object_end(&j);
    /* Cuts off the braces. */
    return strndup(out.buf + 1, out.len - 2);
}

static void wanted_done(struct wanted *w)
{
    free(w->sandbox_id);
    free(w->conversation);
}

static bool is_wanted(const struct wanted *w, const struct event *e)
{
    if (e->kind == EVENT_KIND_MAX_)
        return true;
    return (w->kinds & (1u << e->kind)) && (!w->sandbox_id || strstr(e->json, w->sandbox_id)) &&
           (!w->conversation || strstr(e->json, w->conversation));
}

static struct wanted parse_wanted(struct e2b_req *q)
{
    const char *types = check_query(q, "types");
    struct wanted wanted = {.kinds = UINT32_MAX};

    if (types)
        fields_check(&q->in, event_types_parse("types", types, &wanted.kinds, &q->wrong));
    const char *conversation = check_query_name(q, "conversationId", false);
    const char *sandbox_id = check_query_sandbox(q);
    if (fields_ok(&q->in)) {
        wanted.conversation = needle("conversationId", conversation);
        wanted.sandbox_id = needle("sandboxId", sandbox_id);
    }
    return wanted;
}

/* Returns 1 if the request says where to begin. Clients that come back send the header. */
static int parse_after(struct http_req *req, uint64_t *ret, struct sg_error *e)
{
    const char *last = http_header_get(req, "last-event-id"), *what = "Last-Event-ID";

    if (!last || !last[0]) {
        if (!http_query_has(req, "after"))
            return 0;
        last = http_query_get(req, "after");
        what = "after";
    }
    int r = parse_u64(what, last ? last : "", 0, INT64_MAX, ret, e);
    return r < 0 ? r : 1;
}

/* ---- a page ---------------------------------------------------------------------------------- */

struct page {
    const struct wanted *wanted;
    struct json *json;
    uint64_t next;
    size_t left, scanned;
    bool full;
};

static bool on_page_event(const struct event *e, void *arg)
{
    struct page *p = arg;

    if (p->left == 0 || p->scanned == PAGE_SCAN_MAX) {
        p->full = true;
        return false;
    }
    p->next = e->id;
    p->scanned++;
    if (is_wanted(p->wanted, e)) {
        jw_raw(p->json, e->json, strlen(e->json));
        p->left--;
    }
    return true;
}

static void reply_page(struct e2b_req *q, const struct wanted *wanted, uint64_t after, size_t limit)
{
    struct page p = {.wanted = wanted, .next = after, .left = limit};
    struct reply r;
    bool gap;

    p.json = reply_begin(&r, PAGE_MAX);
    jw_array_begin(jw_key(p.json, "events"));
    /* The number is of another server, or of a file of events that was removed. */
    if (after > events_last(q->front))
        p.next = after = events_last(q->front);
    events_since(q->front, q->tenant.id, after, on_page_event, &p, &gap);
    jw_array_end(p.json);
    if (!p.full && p.next < events_last(q->front))
        p.next = events_last(q->front);
    jw_u64(jw_key(p.json, "next"), p.next);
    jw_bool(jw_key(p.json, "more"), p.full);
    jw_bool(jw_key(p.json, "gap"), gap);
    reply_send(q, 200, &r);
}

/* ---- a stream -------------------------------------------------------------------------------- */

static void write_text(struct stream *s, const struct strbuf *text)
{
    s->choked = !http_write(s->q->http, text->buf, text->len);
    s->wrote_ms = uv_now(s->q->front->loop);
}

static void write_event(struct stream *s, uint64_t id, const char *type, const char *json)
{
    AUTO(strbuf_done) struct strbuf text = strbuf_upto(strlen(json) + 256);

    strbuf_addf(&text, "id: %" PRIu64 "\nevent: %s\ndata: %s\n\n", id, type, json);
    write_text(s, &text);
}

static bool on_stream_event(const struct event *e, void *arg)
{
    struct stream *s = arg;

    if (s->choked || s->scanned == SCAN_MAX)
        return false;
    s->scanned++;
    s->after = e->id;
    if (is_wanted(&s->wanted, e))
        write_event(s, e->id, event_kind_text(e->kind), e->json);
    return true;
}

/* Skips events that are gone, or that this server never had, and tells the client of the gap. */
static void skip_gone(struct stream *s)
{
    uint64_t gone = events_gone(s->q->front, s->q->tenant.id), last = events_last(s->q->front);
    uint64_t next = s->after > last ? last : gone;
    char json[256];

    if (s->after >= gone && s->after <= last)
        return;
    snprintf(json, sizeof(json),
             "{\"id\":%" PRIu64 ",\"type\":\"gap\",\"reason\":\"%s\",\"after\":%" PRIu64 "}", next,
             s->after > last ? "unknown" : "expired", s->after);
    s->after = next;
    write_event(s, next, event_kind_text(EVENT_KIND_MAX_), json);
}

static void pump(struct stream *s)
{
    struct front *f = s->q->front;
    bool gap;

    if (s->choked)
        return;
    s->scanned = 0;
    skip_gone(s);
    events_since(f, s->q->tenant.id, s->after, on_stream_event, s, &gap);
    if (s->scanned == SCAN_MAX)
        uv_timer_again(s->timer);
    else if (!s->choked && s->after < events_last(f))
        s->after = events_last(f);
}

static void on_event(struct event_watch *w, const struct event *e UNUSED)
{
    pump(CONTAINER_OF(w, struct stream, watch));
}

static void on_writable(struct http_req *req)
{
    struct stream *s = e2b_of(req)->work;

    s->choked = false;
    pump(s);
}

static void on_tick(uv_timer_t *t)
{
    AUTO(strbuf_done) struct strbuf text = strbuf_upto(16);
    struct stream *s = t->data;
    uint64_t now = uv_now(t->loop);

    if (s->q->front->draining || now - s->began_ms >= STREAM_LIFE_MS) {
        http_finish(s->q->http);
        return;
    }
    pump(s);
    if (s->choked || now - s->wrote_ms < HEARTBEAT_MS)
        return;
    strbuf_addstr(&text, ": \n\n");
    write_text(s, &text);
}

static void on_gone(void *work)
{
    struct stream *s = work;

    events_unwatch(&s->watch);
    alarm_drop(&s->timer);
    wanted_done(&s->wanted);
    free(s);
}

/* Takes over `wanted`. */
static void start_stream(struct e2b_req *q, const struct wanted *wanted, uint64_t after)
{
    AUTO(strbuf_done) struct strbuf text = strbuf_upto(64);
    struct stream *s = NEW(struct stream, .q = q, .wanted = *wanted, .watch.on_event = on_event,
                           .after = after, .began_ms = uv_now(q->front->loop));
    struct http_req *req = q->http;

    memcpy(s->watch.tenant, q->tenant.id, sizeof(s->watch.tenant));
    s->timer = alarm_new(q->front->loop, s);
    uv_timer_start(s->timer, on_tick, TICK_MS, TICK_MS);
    q->work = s;
    q->on_gone = on_gone;
    req->on_writable = on_writable;
    http_add_header(req, "Cache-Control", "no-store");
    http_add_header(req, "X-Accel-Buffering", "no"); /* proxies must not buffer */
    http_start(req, 200, "text/event-stream", -1);
    strbuf_addf(&text, "retry: 1000\nid: %" PRIu64 "\n\n", after);
    write_text(s, &text);
    events_watch(q->front, &s->watch);
    pump(s);
}

/* ---- stream or page -------------------------------------------------------------------------- */

static bool wants_page(struct http_req *req)
{
    const char *accept = http_header_get(req, "accept");

    return http_query_has(req, "limit") ||
           (accept && strstr(accept, "application/json") && !strstr(accept, "text/event-stream"));
}

void v1_events(struct http_req *req)
{
    struct e2b_req *q = e2b_of(req);
    uint64_t after = 0, n;
    int given = parse_after(req, &after, &q->wrong);

    q->in.r = given < 0 ? given : 0;
    n = check_query_number(q, "limit", 1, LIMIT_MAX, LIMIT_DEFAULT);
    struct wanted wanted = parse_wanted(q);
    if (!e2b_read(q))
        return;
    if (wants_page(req)) {
        reply_page(q, &wanted, given ? after : events_gone(q->front, q->tenant.id), n);
        wanted_done(&wanted);
        return;
    }
    start_stream(q, &wanted, given ? after : events_last(q->front));
}
