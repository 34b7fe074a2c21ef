#include "front/core/team_metrics.h"

#include <string.h>

#include "front/core/events.h"
#include "front/core/sandbox.h"
#include "lib/base/clock.h"
#include "lib/log/log.h"
#include "lib/uv/handle.h"

#define PERIOD_MS (TEAM_METRICS_PERIOD_S * 1000)

/* A tenant that has had a sandbox in this minute. */
struct team {
    struct map_node by_id;
    char id[ID_LEN + 1];
    uint32_t running; /* at the last tick */
    uint32_t starts;  /* since then */
    struct store_team_metric minute;
};

static struct {
    struct front *front;
    uv_timer_t timer;
    struct event_watch watch;
    struct map teams;
    int64_t minute; /* that is being counted: its beginning */
    bool changed;   /* since the last write */
    bool failing;
} metrics;

static int64_t this_minute(void)
{
    return clock_wall_ms() / 60000 * 60;
}

int64_t team_metrics_fine_from(void)
{
    return (clock_wall_ms() / 1000 - TEAM_METRICS_FINE_S) / STORE_METRIC_COARSE_S *
           STORE_METRIC_COARSE_S;
}

static struct team *team_of(const char *tenant)
{
    struct team *t = MAP_FIND(struct team, at, &metrics.teams, hash_text(0, tenant), by_id,
                              strcmp(at->id, tenant) == 0);

    if (t)
        return t;
    t = NEW(struct team, .minute = {.at = metrics.minute});
    snprintf(t->id, sizeof(t->id), "%s", tenant);
    map_add(&metrics.teams, &t->by_id, hash_text(0, tenant));
    return t;
}

static void more(uint32_t *most, uint32_t n)
{
    *most = n > *most ? n : *most;
}

/* ---- to the store ---------------------------------------------------------------------------- */

/* What was stored begins anew. A tenant without sandboxes is forgotten. */
static void begin_anew(struct team *t)
{
    t->minute = (struct store_team_metric){.at = metrics.minute, .peak = t->running};
    if (t->running > 0 || t->starts > 0)
        return;
    map_remove(&metrics.teams, &t->by_id);
    free(t);
}

void team_metrics_flush(struct front *f)
{
    struct sg_error e = {0};
    int r;

    if (!metrics.changed)
        return;
    metrics.changed = false;
    r = store_team_metrics_begin(f->store, &e);
    MAP_EACH(struct team, t, &metrics.teams, by_id)
        if (r == 0 && (t->minute.peak > 0 || t->minute.started > 0))
            r = store_team_metric_add(f->store, t->id, &t->minute, &e);
    r = store_team_metrics_end(f->store, r, &e);
    if (r < 0 && !metrics.failing)
        log_line(LEVEL_WARN, "the metrics of teams cannot be stored: %s", e.message);
    metrics.failing = r < 0;
    MAP_EACH(struct team, t, &metrics.teams, by_id)
        begin_anew(t);
}

/* Closes the minute that is over. */
static void turn_minute(void)
{
    int64_t now = this_minute();

    if (now == metrics.minute)
        return;
    metrics.minute = now;
    metrics.changed =
        true; /* what follows is of the next minute, whether this one was written or not */
    team_metrics_flush(metrics.front);
    store_team_metrics_thin(metrics.front->store, team_metrics_fine_from(),
                            now - TEAM_METRICS_KEEP_S, NULL);
}

int team_metrics_each(struct front *f, const char *tenant, int64_t from, int64_t to, int64_t step,
                      void (*fn)(const struct store_team_metric *m, void *arg), void *arg,
                      struct sg_error *e)
{
    team_metrics_flush(f);
    return store_team_metrics_each(f->store, tenant, from, to, step, fn, arg, e);
}

/* ---- counting -------------------------------------------------------------------------------- */

static void on_event(struct event_watch *w UNUSED, const struct event *e)
{
    if (e->kind != HAPPENED_SANDBOX_CREATED)
        return;
    turn_minute();
    struct team *t = team_of(e->tenant);

    metrics.changed = true;
    t->starts++;
    t->minute.started++;
    more(&t->minute.burst, t->starts);
    more(&t->minute.peak, (uint32_t)sandboxes_count(metrics.front, e->tenant));
}

static void on_tick(uv_timer_t *timer UNUSED)
{
    turn_minute();
    MAP_EACH(struct team, t, &metrics.teams, by_id)
        t->running = t->starts = 0;
    SANDBOXES_EACH(b, metrics.front)
        if (b->state == SANDBOX_RUNNING && !b->spec.standby)
            team_of(b->spec.tenant)->running++;
    MAP_EACH(struct team, t, &metrics.teams, by_id)
        more(&t->minute.peak, t->running);
    metrics.changed = LIST_FIRST(struct team, &metrics.teams.all, by_id.all) != NULL;
}

void team_metrics_start(struct front *f)
{
    metrics.front = f;
    metrics.minute = this_minute();
    metrics.watch.on_event = on_event;
    events_watch(f, &metrics.watch);
    timer_every(f->loop, &metrics.timer, PERIOD_MS, on_tick, f);
}
