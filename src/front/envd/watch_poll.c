/* CreateWatcher, GetWatcherEvents, RemoveWatcher: watches that belong to the sandbox, not to a
 * request. Changes wait in memory, with one limit for all watches of a sandbox together. A watch
 * that would exceed the limit is over, and says so when the client asks.
 *
 * Whoever asks is told of all changes until then: the agent says when it has caught up with them.
 *
 * A pause ends the agent's side of a watch. The next GetWatcherEvents sets it up again; changes in
 * between are not known. */
#include <stdio.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/list.h"
#include "front/envd/messages.h"
#include "front/envd/watch.h"

#define WATCHERS_MAX 64
#define WAITING_MAX  (8u * 1024 * 1024) /* cost of all waiting changes of a sandbox */
#define EVENT_COST   512                /* cost of each, besides its text */

struct watcher {
    struct watchers *all;
    struct list link;
    struct call call;
    char id[ID_LEN + 2];
    uint32_t flags;
    struct strbuf request;
    json_t *events;
    size_t cost;       /* sum of the costs of its events */
    bool asleep;       /* a pause of the sandbox ended its call to the agent */
    bool lost;         /* changes were lost */
    int status;        /* errno of a watch that ended by itself */
    struct task *by;   /* the CreateWatcher that still waits for its answer, or NULL */
    struct task *asks; /* the GetWatcherEvents that waits until the agent has caught up, or NULL */
};

struct watchers {
    struct sandbox *sandbox; /* not a reference: the sandbox owns this struct */
    struct list list;
    size_t n, cost;
};

static struct task *take_asking(struct watcher *w)
{
    struct task *t = w->asks;

    w->asks = NULL;
    if (t)
        t->release = NULL;
    return t;
}

static void not_found(struct rpc_call *c, const char *id)
{
    rpc_fail(c, RPC_NOT_FOUND, "watcher with id %.64s not found", id);
}

static void watcher_free(struct watcher *w)
{
    struct task *asking = take_asking(w);

    if (asking)
        not_found(asking->rpc, w->id);
    list_remove(&w->link);
    w->all->n--;
    w->all->cost -= w->cost;
    call_cancel(&w->call);
    strbuf_done(&w->request);
    json_decref(w->events);
    free(w);
}

static void watchers_free(struct watchers *all)
{
    LIST_EACH(struct watcher, w, &all->list, link)
        watcher_free(w);
    free(all);
}

static struct watchers *watchers_of(struct sandbox *b)
{
    if (!b->watchers) {
        b->watchers = NEW(struct watchers, .sandbox = b);
        b->watchers_free = watchers_free;
    }
    return b->watchers;
}

static void forget_events(struct watcher *w)
{
    w->all->cost -= w->cost;
    w->cost = 0;
    json_array_clear(w->events);
}

/* ---- events for the client ------------------------------------------------------------------- */

/* Answers a GetWatcherEvents, which ends it. */
static void tell_events(struct watcher *w, struct rpc_call *c)
{
    struct strbuf out;
    struct rpc_list list;
    size_t i;
    json_t *event;

    if (w->lost || w->status) {
        rpc_fail(c, RPC_INTERNAL, "%s",
                 w->lost ? WATCH_LOST : "watcher error: the directory cannot be watched any more");
        return;
    }
    strbuf_init(&out, RPC_REPLY_MAX);
    rpc_list_begin(&list, &watcher_events, c->codec, &out);
    json_array_foreach(w->events, i, event) rpc_list_add(&list, event);
    rpc_list_end(&list);
    forget_events(w);
    rpc_reply_encoded(c, &out);
}

static void answer_asking(struct watcher *w)
{
    struct task *t = take_asking(w);

    if (t)
        tell_events(w, t->rpc);
}

/* ---- events of the agent --------------------------------------------------------------------- */

static void take_change(struct watcher *w, const void *p, size_t len)
{
    bool lost;
    json_t *event = watch_event(p, len, w->flags, &lost);

    if (event && w->all->cost < WAITING_MAX) {
        json_array_append_new(w->events, event);
        w->cost += len + EVENT_COST;
        w->all->cost += len + EVENT_COST;
        return;
    }
    /* Too many changes, or the agent has lost some, or its bytes make no sense. */
    json_decref(event);
    w->lost = true;
    forget_events(w);
    call_cancel(&w->call);
    answer_asking(w);
}

/* Answers the CreateWatcher that waits for this watch to be set up. */
static void creation_over(struct watcher *w, int status, const char *message)
{
    struct task *by = w->by;

    w->by = NULL;
    if (status == 0) {
        rpc_reply(by->rpc, json_pack("{s:s}", "watcherId", w->id));
        return;
    }
    by->release = NULL; /* release would free the watch */
    if (status == CALL_GONE)
        service_gone(by->rpc);
    else
        watch_failed(by, status, message);
    watcher_free(w);
}

static void on_event(struct call *call, uint8_t what, const void *p, size_t len)
{
    struct watcher *w = call->owner;

    if (what == EVENT_WATCHING && w->by)
        creation_over(w, 0, NULL);
    else if (what == EVENT_CHANGE)
        take_change(w, p, len);
    else if (what == EVENT_CAUGHT_UP)
        answer_asking(w);
}

static void on_end(struct call *call, int status, const char *message, const void *result UNUSED,
                   size_t len UNUSED)
{
    struct watcher *w = call->owner;

    if (w->by) {
        creation_over(w, status ? status : EPROTO, message);
        return;
    }
    if (status == CALL_GONE)
        w->asleep = true;
    else
        w->status = status ? status : EPROTO;
    answer_asking(w);
}

static int watcher_begin(struct watcher *w, struct sg_error *e)
{
    w->asleep = false;
    w->status = 0;
    return call_begin(&w->call, w->all->sandbox, OP_FILE_WATCH, &w->request, e);
}

/* ---- methods --------------------------------------------------------------------------------- */

/* The client went away before it learned the watch's id, and nobody else knows the id: frees the
 * watch. */
static void creator_gone(struct task *t)
{
    struct watchers *all = sandbox_of(t->rpc)->watchers;

    LIST_EACH(struct watcher, w, &all->list, link)
        if (w->by == t)
            watcher_free(w);
}

static struct watcher *watcher_new(struct watchers *all, uint32_t flags)
{
    struct watcher *w = NEW(struct watcher, .all = all, .id = "w", .flags = flags,
                            .events = json_array(), .request = strbuf_upto(2 * OPS_PATH_MAX));

    id_random(w->id + 1);
    list_push(&all->list, &w->link);
    all->n++;
    w->call = (struct call){.owner = w, .lasting = true, .on_event = on_event, .on_end = on_end};
    return w;
}

void watcher_create(struct rpc_call *c, json_t *message)
{
    struct watchers *all = watchers_of(sandbox_of(c));
    struct task *t = task_new(c, sizeof(*t));
    struct sg_error e = {0};

    if (all->n >= WATCHERS_MAX) {
        rpc_fail(c, RPC_RESOURCE_EXHAUSTED,
                 "a sandbox has at most %d watchers: remove one that is not needed", WATCHERS_MAX);
        return;
    }
    struct watcher *w = watcher_new(all, watch_flags(message));
    w->by = t;
    t->release = creator_gone;
    if (!task_target(t, jr_text(message, "path"), &w->request))
        return;
    wire_put_u32(&w->request, w->flags);
    int r = watcher_begin(w, &e);
    if (r < 0)
        creation_over(w, r == -EPIPE ? CALL_GONE : -r, e.message);
}

/* NULL: the call has failed. */
static struct watcher *find(struct rpc_call *c, json_t *message)
{
    struct watchers *all = watchers_of(sandbox_of(c));
    const char *id = jr_text(message, "watcherId");
    struct watcher *found =
        LIST_FIND(struct watcher, w, &all->list, link, !w->by && strcmp(w->id, id) == 0);

    if (!found)
        not_found(c, id);
    return found;
}

/* The client went away before the agent had caught up. */
static void asker_gone(struct task *t)
{
    struct watchers *all = sandbox_of(t->rpc)->watchers;

    LIST_EACH(struct watcher, w, &all->list, link)
        if (w->asks == t)
            w->asks = NULL;
}

void watcher_get_events(struct rpc_call *c, json_t *message)
{
    struct watcher *w = find(c, message);
    struct sg_error e = {0};

    if (!w)
        return;
    sandbox_of(c)->used_ns = clock_ns();
    if (w->asleep && watcher_begin(w, &e) < 0) {
        w->asleep = true;
        rpc_fail(c, RPC_UNAVAILABLE, "%s", e.message);
    } else if (w->asks || w->lost || w->status) {
        tell_events(w, c);
    } else {
        w->asks = task_new(c, sizeof(*w->asks));
        w->asks->release = asker_gone;
        call_control(&w->call, CONTROL_CATCH_UP, NULL, 0);
    }
}

void watcher_remove(struct rpc_call *c, json_t *message)
{
    struct watcher *w = find(c, message);

    if (!w)
        return;
    watcher_free(w);
    rpc_reply(c, NULL);
}
