#include "front/contexts/usage.h"

#include "front/contexts/context.h"
#include "front/core/usage.h"
#include "lib/log/log.h"
#include "lib/uv/handle.h"

#define TICK_MS      1000
#define GATHER_TICKS 10
#define BATCH_MAX    200

static struct {
    uv_timer_t timer;
    unsigned ticks;
    struct ctx_usage_add adds[BATCH_MAX]; /* being written to the store */
    size_t n;
    bool refused; /* by the store: wait for the next gathering */
    void (*done)(void *arg);
    void *arg;
} teller;

static void tell(struct front *f);

static void finish(void)
{
    void (*done)(void *arg) = teller.done;

    teller.done = NULL;
    if (done)
        done(teller.arg);
}

static void on_told(void *arg, const struct ctx_reply *reply)
{
    size_t n = teller.n;

    teller.n = 0;
    if (reply->r == 0) {
        teller.refused = false;
        tell(arg);
        return;
    }
    if (!teller.refused)
        log_line(LEVEL_WARN, "the usage of sandboxes could not be stored, and will be later: %s",
                 reply->e.message);
    teller.refused = true;
    usage_put_back(teller.adds, n);
    finish();
}

/* Reports one batch after the other, until the ledger is empty. */
static void tell(struct front *f)
{
    if (teller.n > 0)
        return;
    teller.n = usage_take(teller.adds, BATCH_MAX);
    if (teller.n > 0)
        ctx_call(contexts_store(f), usage_add, teller.adds, teller.n, on_told, f);
    else
        finish();
}

static void on_tick(uv_timer_t *timer)
{
    bool gather = ++teller.ticks % GATHER_TICKS == 0;

    if (gather)
        usage_gather(timer->data);
    if (gather || !teller.refused)
        tell(timer->data);
}

void usage_start(struct front *f)
{
    timer_every(f->loop, &teller.timer, TICK_MS, on_tick, f);
}

void usage_finish(struct front *f, void (*done)(void *arg), void *arg)
{
    teller.done = done;
    teller.arg = arg;
    usage_gather(f);
    tell(f);
}
