#include "front/core/living.h"

#include <stdio.h>
#include <string.h>

#include "front/core/sandbox.h"
#include "front/core/events.h"
#include "lib/log/log.h"
#include "front/store/events.h"
#include "front/store/living.h"

/* How many ends are kept until living_match. A server never has more sandboxes. */
#define ENDS_MAX 8192

struct end {
    char id[ID_LEN + 1];
    struct sandbox_end end;
};
static struct end *ends;
static size_t n_ends;

void living_told_end(const struct order_answer *a)
{
    if (!ends)
        ends = xcalloc(ENDS_MAX, sizeof(*ends));
    if (n_ends == ENDS_MAX)
        return;
    snprintf(ends[n_ends].id, sizeof(ends[0].id), "%s", a->id);
    sandbox_end_told(&ends[n_ends++].end, a);
}

struct reason {
    const char *word, *detail;
    enum fault fault;
};

/* The reason for all sandboxes of the server, by how the server ended. */
static const struct reason left[] = {
    [STORE_CRASHED] = {"crashed", "the server was killed or crashed, and its sandboxes with it",
                       FAULT_INFRASTRUCTURE},
    [STORE_STOPPED] = {"stopped", "the server was stopped, and its sandboxes with it",
                       FAULT_INFRASTRUCTURE},
    [STORE_RESTORED] = {"restored", "the server was restored from a backup, which has no sandboxes",
                        FAULT_INFRASTRUCTURE},
};

/* The reason for a sandbox that ended while only the front was away. */
static struct reason reason_of(const char *id)
{
    for (size_t i = 0; i < n_ends; i++)
        if (strcmp(ends[i].id, id) == 0)
            return (struct reason){
                end_kind(ends[i].end.why)->word,
                sandbox_end_is_news(&ends[i].end) ? sandbox_end_text(&ends[i].end) : NULL,
                end_kind(ends[i].end.why)->fault};
    return (struct reason){"failed", "it ended while the server's HTTP process was restarted",
                           FAULT_INFRASTRUCTURE};
}

static void take_last(const char *e2b, void *arg)
{
    *(char **)arg = xstrdup(e2b);
}

static void tell(struct front *f, const struct store_living *l, const struct reason *why)
{
    const struct store_e2b_query query = {
        .tenant = l->tenant, .sandbox = l->sandbox_id, .limit = 1};
    AUTO(free_p) char *last = NULL;

    store_events_e2b(f->store, &query, take_last, &last, NULL);
    log_with(
        LEVEL_INFO,
        &(struct log_about){.fault = why->fault, .sandbox_id = l->sandbox_id, .tenant = l->tenant},
        "ended: %s", why->detail ? why->detail : why->word);
    event_emit(f, HAPPENED_SANDBOX_ENDED,
               &(struct event_about){.tenant = l->tenant,
                                     .sandbox_id = l->sandbox_id,
                                     .context = l->context,
                                     .conversation = l->conversation,
                                     .path = l->path,
                                     .reason = why->word,
                                     .detail = why->detail,
                                     .like = last});
}

/* Adds a sandbox to the store's list. An earlier front was killed before it could. */
static void add_if_unknown(const struct sandbox *b, const struct store_living *list, size_t n)
{
    struct store_living l = {0};
    struct sg_error e = {0};

    for (size_t i = 0; i < n; i++)
        if (strcmp(list[i].sandbox_id, b->id) == 0)
            return;
    memcpy(l.sandbox_id, b->id, sizeof(l.sandbox_id));
    memcpy(l.tenant, b->spec.tenant, sizeof(l.tenant));
    memcpy(l.context, b->spec.context, sizeof(l.context));
    if (store_living_add(b->front->store, &l, &e) < 0)
        log_line(LEVEL_WARN, "cannot store the start of a sandbox: %s", e.message);
}

void living_match(struct front *f, bool again)
{
    AUTO(free_p) struct store_living *list = NULL;
    enum store_left how = STORE_CRASHED;
    struct sg_error e = {0};
    size_t n = 0;

    if (store_living(f->store, &list, &n, &e) < 0 || store_left_take(f->store, &how, &e) < 0) {
        log_line(LEVEL_WARN, "cannot report sandboxes that ended with the last server: %s",
                 e.message);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        struct reason why = again ? reason_of(list[i].sandbox_id) : left[how];

        if (!sandbox_find(f, list[i].sandbox_id))
            tell(f, &list[i], &why);
    }
    SANDBOXES_EACH(b, f)
        add_if_unknown(b, list, n);
    free(steal_ptr(&ends));
    n_ends = 0;
}

void living_stopping(struct front *f)
{
    struct sg_error e = {0};

    if (f->store && store_left_note(f->store, STORE_STOPPED, &e) < 0)
        log_line(LEVEL_WARN, "cannot store that the server was stopped: %s", e.message);
}
