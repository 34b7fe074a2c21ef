/* Forgets what is over: contexts and their paths after context_keep, usage after usage_keep. Each
 * turn deletes only a few rows, so that nobody who runs code has to wait. There is a turn each
 * reap_every, and the next one soon after as long as there is more to delete. */
#include "lib/base/clock.h"
#include "front/contexts/impl.h"
#include "lib/log/log.h"

#define ROWS    100
#define SOON_MS 250

static struct {
    uv_timer_t timer;
    uint64_t cursor;
    size_t gone; /* rows deleted since the last turn that found none left */
    bool failing;
} retention;

static void on_turn(uv_timer_t *timer);

static void plan(struct front *f, bool more)
{
    uv_timer_start(&retention.timer, on_turn, more ? SOON_MS : f->settings.reap_every_ms, 0);
}

static void on_forgotten(void *arg, const struct ctx_reply *reply)
{
    struct front *f = arg;

    if (reply->r < 0 && !retention.failing)
        log_line(LEVEL_WARN, "old rows of contexts, paths and usage cannot be removed: %s",
                 reply->e.message);
    retention.failing = reply->r < 0;
    if (reply->r == 0) {
        retention.cursor = reply->cursor;
        retention.gone += reply->n;
    }
    bool more = reply->r == 0 && reply->more;
    if (!more && retention.gone > 0) {
        log_line(LEVEL_INFO, "%zu old row%s of contexts, paths and usage removed: older than %s",
                 retention.gone, retention.gone == 1 ? "" : "s", "context_keep and usage_keep");
        retention.gone = 0;
    }
    plan(f, more);
}

static void on_turn(uv_timer_t *timer)
{
    struct front *f = timer->data;
    struct contexts *t = f->contexts;
    struct ctx_forget q = {.context_keep_ms = f->settings.context_keep_ms,
                           .usage_keep_ms = f->settings.usage_keep_ms,
                           .cursor = retention.cursor,
                           .limit = ROWS};

    if (t->recovered)
        ctx_call(t->store, forget, &q, on_forgotten, f);
    else
        plan(f, false);
}

void retention_start(struct front *f)
{
    retention.timer.data = f;
    uv_timer_init(f->loop, &retention.timer);
    uv_unref((uv_handle_t *)&retention.timer);
    plan(f, false);
}
