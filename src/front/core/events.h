/* Events: what happens to sandboxes, contexts and agents, for clients that follow along.
 *
 * Each event has a number, one above the number before, across restarts too. `GET /v1/events`
 * (front/v1/events.c) sends a tenant's events as server-sent events, from where the client left off
 * (Last-Event-ID). A webhook (webhooks.c) gets the events that webhook_events names, signed, and
 * repeated until it accepts them.
 *
 *   event_emit --> ring in memory (EVENTS_KEPT) --> readers that wait, the webhook
 *                       |  every EVENTS_FLUSH_MS, in one transaction
 *                       v
 *                  front/store/events.c: the last event_keep events; how far the webhook is
 *
 * A front that is killed loses the events that were not written yet: those of the last
 * EVENTS_FLUSH_MS at most. The next front begins with a number above all that could have been used,
 * so no number is used twice, and its first event is a "gap" for every tenant. A reader that asks
 * for events that are no longer kept gets a "gap" first as well. */
#pragma once

#include "lib/base/list.h"
#include "lib/text/json.h"
#include "front/core/front.h"

#define EVENTS_KEPT     4096
#define EVENTS_FLUSH_MS 100

#define EVENT_KINDS(X)                          \
    X(SANDBOX_CREATED, "sandbox.created")       \
    X(SANDBOX_PAUSED, "sandbox.paused")         \
    X(SANDBOX_RESUMED, "sandbox.resumed")       \
    X(SANDBOX_UPDATED, "sandbox.updated")       \
    X(SANDBOX_FORKED, "sandbox.forked")         \
    X(SANDBOX_CHECKPOINT, "sandbox.checkpoint") \
    X(SANDBOX_REWOUND, "sandbox.rewound")       \
    X(SANDBOX_SNAPSHOT, "sandbox.snapshot")     \
    X(SANDBOX_ENDED, "sandbox.ended")           \
    X(CONTEXT_CREATED, "context.created")       \
    X(CONTEXT_BRANCHED, "context.branched")     \
    X(CONTEXT_ENDED, "context.ended")           \
    X(AGENT_STARTED, "agent.started")           \
    X(AGENT_ENDED, "agent.ended")               \
    X(EGRESS_BLOCKED, "egress.blocked")

#define EVENT_KIND_ENUM(id, name) HAPPENED_##id,
enum event_kind { EVENT_KINDS(EVENT_KIND_ENUM) EVENT_KIND_MAX_ };
const char *event_kind_text(enum event_kind kind); /* EVENT_KIND_MAX_: "gap" */

/* Parses a list such as "sandbox.*,context.ended" into a set with one bit for each kind. */
int event_types_parse(const char *what, const char *text, uint32_t *ret, struct sg_error *e);

/* The subject of an event. A field that does not apply is NULL. */
struct event_about {
    const char *tenant;
    const char *sandbox_id, *context, *conversation, *path, *agent;
    const char *reason; /* one word: killed, expired, died, failed... */
    const char *detail; /* a sentence, or the target of what was blocked */
    const char *request;
    /* For the form that E2B gives it (e2b_event.h): the sandbox or, if it is gone, its last event. */
    const struct sandbox *sandbox;
    const char *like;
};
/* Records an event. Never fails, never waits. */
void event_emit(struct front *f, enum event_kind kind, const struct event_about *about);

/* Reads the stored events and starts the writer. The store must be open. */
int events_start(struct front *f, struct sg_error *e);
/* Writes all events that are not written yet: for a server that is about to end. */
void events_flush(struct front *f);
/* The same for a reader of the store, who is to find all that has happened. */
void events_write_now(struct front *f);

struct event {
    uint64_t id;
    int64_t ms; /* wall clock */
    enum event_kind kind;
    char tenant[ID_LEN + 1];
    const char *json; /* one object: id, time, type, and the fields of event_about */
    const char *e2b;  /* the same in E2B's form; NULL: it has none */
};
/* Calls fn for each event of a tenant (NULL: of all) with a number above `after`, in order, until
 * fn returns false. *ret_gap: some of these events are no longer kept. */
void events_since(struct front *f, const char *tenant, uint64_t after,
                  bool (*fn)(const struct event *e, void *arg), void *arg, bool *ret_gap);
uint64_t events_last(const struct front *f);
/* Events of a tenant (NULL: of any tenant) up to this number are no longer kept. */
uint64_t events_gone(const struct front *f, const char *tenant);
/* on_event is called for each new event until events_unwatch. */
struct event_watch {
    void (*on_event)(struct event_watch *w, const struct event *e);
    char tenant[ID_LEN + 1]; /* "": of all tenants */
    struct list link;
};
void events_watch(struct front *f, struct event_watch *w);
void events_unwatch(struct event_watch *w);
