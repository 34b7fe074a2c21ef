/* Events: what became of sandboxes, contexts and agents, for who wants to follow it.
 *
 * An event has a number that grows by one with each, over restarts too; `GET /v1/events`
 * (front/v1/events.c) sends those of a tenant as server-sent events, from where a client left off
 * (Last-Event-ID), and a webhook (webhooks.c) gets those that webhook_events names, signed, again
 * and again until it has taken them.
 *
 *   event_emit --> ring in memory (EVENTS_KEPT) --> readers that wait, the webhook
 *                       |  every EVENTS_FLUSH_MS, in one transaction
 *                       v
 *                  front/store/events.c: the last event_keep of them; where the webhook has come to
 *
 * A front that is killed loses what was not written yet: EVENTS_FLUSH_MS at most; the numbers of
 * the next begin behind what could have been used, so none is ever used twice, and the first of
 * them is a "gap" for everybody. A reader that asks for events that are no longer kept is told so
 * first, by a "gap" too. */
#pragma once

#include "lib/text/json.h"
#include "front/core/front.h"

#define EVENTS_KEPT     4096
#define EVENTS_FLUSH_MS 100

#define EVENT_KINDS(X)                          \
    X(SANDBOX_CREATED, "sandbox.created")       \
    X(SANDBOX_PAUSED, "sandbox.paused")         \
    X(SANDBOX_RESUMED, "sandbox.resumed")       \
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
const char *event_kind_text(enum event_kind kind); /* of EVENT_KIND_MAX_: "gap" */

/* "sandbox.*,context.ended": a bit for each kind. */
int event_types_parse(const char *what, const char *text, uint32_t *ret, struct sg_error *e);

/* What it is about; NULL: that does not apply. */
struct event_about {
    const char *tenant;
    const char *sandbox_id, *context, *conversation, *path, *agent;
    const char *reason; /* one word: killed, expired, died, failed... */
    const char *detail; /* a sentence, or the target of what was blocked */
    const char *request;
};
/* Never fails, never waits. */
void event_emit(struct front *f, enum event_kind kind, const struct event_about *about);

/* Reads what is kept, starts the writer. After the store is open. */
int events_start(struct front *f, struct sg_error *e);
/* What is not written yet is, now: for a server that ends. */
void events_flush(struct front *f);

struct event {
    uint64_t id;
    int64_t ms; /* wall clock */
    enum event_kind kind;
    char tenant[ID_LEN + 1];
    const char *json; /* one object: id, time, type, and what it is about */
};
/* Those of a tenant (NULL: of all) after `after`, in order, until fn says false. ret_gap: some that
 * are asked for are not kept any more. */
void events_since(struct front *f, const char *tenant, uint64_t after,
                  bool (*fn)(const struct event *e, void *arg), void *arg, bool *ret_gap);
uint64_t events_last(const struct front *f);
/* Up to this number those of a tenant (NULL: of anybody) are not kept any more. */
uint64_t events_gone(const struct front *f, const char *tenant);
/* Called for each new one until events_unwatch. */
struct event_watch {
    void (*on_event)(struct event_watch *w, const struct event *e);
    char tenant[ID_LEN + 1]; /* "": of all */
    struct event_watch *next, **link;
};
void events_watch(struct front *f, struct event_watch *w);
void events_unwatch(struct event_watch *w);
