/* The reaper: work that no client asks for. It ends expired contexts, reports uses to the store,
 * and cleans up after a crash.
 *
 *   at the start     ends rows that this node was making when it stopped; clears rows whose
 *                    sandboxes are gone; finds the rows of the other sandboxes again
 *   twice a second   touches contexts that were used without going through contexts: by E2B's SDKs,
 *                    or by a program that runs
 *   each reap_every  ends expired rows, a batch at a time; sandboxes whose rows others have ended;
 *                    and sandboxes without a row
 *   each 5 seconds   reports that this node lives
 */
#include <string.h>

#include "lib/base/clock.h"
#include "front/contexts/impl.h"
#include "front/contexts/usage.h"
#include "lib/log/log.h"
#include "lib/uv/handle.h"

#define TICK_MS      500
#define CLOCK_SET_MS 500
#define AWAY_LONG_MS (CTX_NODE_DEAD_MS / 2) /* without the store for so long, all nodes seem dead */

struct reaper {
    struct front *front;
    uv_timer_t tick, reap, alive;
    int64_t clock_ms; /* wall clock minus monotonic clock */
    bool recovering;
    bool due, reaping;
    size_t ended; /* in this turn */
    bool more;
};

static uint64_t ms_since(uint64_t ns)
{
    return (clock_ns() - ns) / 1000000;
}

/* ---- reporting uses -------------------------------------------------------------------------- */

/* A touch under way. The path may get another context before the answer comes, so the id is
 * kept. */
struct telling {
    struct context *context;
    char id[ID_LEN + 1];
};

static void on_touched(void *arg, const struct ctx_reply *reply)
{
    AUTO(free_p) struct telling *x = arg;
    struct context *c = x->context;
    bool same = c->step == OBTAIN_NONE && strcmp(c->row.id, x->id) == 0;

    c->telling = false;
    if (same && reply->r == 0) {
        c->row = reply->rows[0];
        context_move_deadline(c);
    } else if (same && reply->r == -ENOENT && c->sandbox) {
        /* Somebody else has ended the context. */
        struct ctx_row row = c->row;
        snprintf(row.sandbox_id, sizeof(row.sandbox_id), "%s", c->sandbox->id);
        context_end_sandbox(c->front, &row, NULL, NULL);
        return;
    } else if (same && reply->r < 0) {
        c->told_ns = c->heard_ns;
    }
    context_drop_if_idle(c);
}

static void tell(struct context *c)
{
    struct telling *x = NEW(struct telling, .context = c);

    memcpy(x->id, c->row.id, sizeof(x->id));
    c->telling = true;
    c->awaited = false;
    c->heard_ns = c->told_ns;
    c->told_ns = clock_ns();
    ctx_call(c->front->contexts->store, touch, c->tenant, c->row.id, 0, on_touched, x);
    /* Even if the store cannot be reached, the warden must not end a sandbox in use. */
    context_move_deadline(c);
}

static void tell_use(struct context *c)
{
    if (c->step != OBTAIN_NONE)
        return;
    context_keep_deadline(c);
    if (!c->telling && context_used(c) && ms_since(c->told_ns) >= c->row.ttl_ms / 10)
        tell(c);
}

/* Whether the clock was set forward since the last call, or the machine slept. Then contexts in use
 * may seem expired although their uses were reported in time. */
static bool clock_was_set(struct reaper *r)
{
    int64_t ahead_ms = clock_wall_ms() - (int64_t)(clock_ns() / 1000000);
    bool set = ahead_ms - r->clock_ms > CLOCK_SET_MS;

    r->clock_ms = ahead_ms;
    return set;
}

/* Reports contexts in which somebody works now, however recent the last report is. */
static void tell_work(struct context *c)
{
    if (!c->sandbox || !sandbox_in_use(c->sandbox) || c->step != OBTAIN_NONE)
        return;
    if (!c->telling)
        tell(c);
    c->awaited = true;
}

bool reaper_uses_told(struct front *f)
{
    const struct map *all = &f->contexts->all;

    MAP_EACH(struct context, c, all, by_path)
        tell_use(c);
    MAP_EACH(struct context, c, all, by_path)
        if (c->telling && (c->awaited || ms_since(c->heard_ns) >= c->row.ttl_ms))
            return false;
    return true;
}

static void reap(struct reaper *r);

/* Reports uses first, and reaps only when the store has them all: a context in use must not expire
 * because the store was away when a use should have been reported. */
static void on_tick(uv_timer_t *t)
{
    struct reaper *r = t->data;
    struct contexts *contexts = r->front->contexts;

    if (!contexts->recovered)
        return;
    bool told = reaper_uses_told(r->front);
    if (!told || !r->due || r->reaping || !contexts_know_the_dead(contexts))
        return;
    r->due = false;
    r->reaping = true;
    r->ended = 0;
    reap(r);
}

/* ---- ending expired contexts ----------------------------------------------------------------- */

static void on_swept(void *arg)
{
    struct reaper *r = arg;

    if (r->more) {
        reap(r);
        return;
    }
    r->reaping = false;
    if (r->ended > 0)
        log_line(LEVEL_INFO, "%zu expired context%s ended", r->ended, r->ended == 1 ? "" : "s");
}

static void on_expired(void *arg, const struct ctx_reply *reply)
{
    struct reaper *r = arg;
    size_t n = reply->r == 0 ? reply->n : 0;

    if (reply->r < 0)
        log_line(LEVEL_WARN, "cannot look for expired contexts: %s", reply->e.message);
    r->more = reply->r == 0 && n >= r->front->settings.reap_batch;
    r->ended += n;
    context_end_sandboxes(r->front, reply->rows, n, on_swept, r);
}

static void reap(struct reaper *r)
{
    struct contexts *t = r->front->contexts;

    ctx_call(t->store, expire, t->node, NULL, CONTEXT_STUCK_MS, r->front->settings.reap_batch,
             on_expired, r);
}

/* ---- sandboxes and rows that do not agree ---------------------------------------------------- */

/* Compares a row with what this front knows: another server or the operator may have changed it. */
static void on_looked(void *arg, const struct ctx_reply *reply)
{
    struct context *c = arg;

    c->checking = false;
    bool known = reply->r == 0 || reply->r == -ENOENT;
    bool agrees = reply->r == 0 && reply->rows[0].status == CTX_READY && c->sandbox &&
                  strcmp(reply->rows[0].sandbox_id, c->sandbox->id) == 0;
    if (known && !agrees && c->step == OBTAIN_NONE && c->told_ns == c->looked_ns)
        context_kill_sandbox(c);
    context_drop_if_idle(c);
}

static void look(struct context *c)
{
    if (!c->sandbox || c->checking || c->step != OBTAIN_NONE ||
        ms_since(c->told_ns) < c->front->settings.reap_every_ms)
        return;
    c->checking = true;
    c->looked_ns = c->told_ns;
    ctx_call(c->front->contexts->store, get, c->tenant, c->row.id, on_looked, c);
}

/* A sandbox that names a context which this front does not know. */
struct stray {
    struct front *front;
    char id[ID_LEN + 1];
};

static void on_stray(void *arg, const struct ctx_reply *reply)
{
    struct stray *x = arg;
    struct sandbox *b = sandbox_find(x->front, x->id);
    const struct ctx_row *row = reply->r == 0 ? &reply->rows[0] : NULL;

    struct context *path =
        row ? contexts_find(x->front, row->tenant, row->conversation, row->path) : NULL;
    bool made_now = path && path->step != OBTAIN_NONE; /* then it may be attached soon */

    if (b && !b->context && !made_now && (reply->r == 0 || reply->r == -ENOENT)) {
        if (row && row->status == CTX_READY && strcmp(row->sandbox_id, b->id) == 0 &&
            strcmp(row->node, x->front->contexts->node) == 0) {
            struct context *c =
                contexts_find_or_add(x->front, row->tenant, row->conversation, row->path);
            if (c->step == OBTAIN_NONE) {
                c->row = *row;
                c->told_ns = clock_ns();
                context_attach(c, b);
            }
        } else {
            log_sandbox(LEVEL_INFO, FAULT_SANDBOX, b->id, "ended, because its context has ended");
            sandbox_kill(b, NULL, NULL);
        }
    }
    free(x);
}

static void find_strays(struct front *f)
{
    SANDBOXES_EACH(b, f) {
        if (!b->spec.context[0] || b->context || b->state == SANDBOX_STARTING ||
            explorations_want(b))
            continue;
        struct stray *x = NEW(struct stray, .front = f);
        memcpy(x->id, b->id, sizeof(x->id));
        ctx_call(f->contexts->store, get, b->spec.tenant, b->spec.context, on_stray, x);
    }
}

static void on_reap(uv_timer_t *t)
{
    struct reaper *r = t->data;
    const struct map *all = &r->front->contexts->all;

    /* The setting may have changed. */
    uv_timer_set_repeat(t, r->front->settings.reap_every_ms);
    if (!r->front->contexts->recovered)
        return;
    MAP_EACH(struct context, c, all, by_path)
        look(c);
    find_strays(r->front);
    lost_tell_again(r->front);
    if (clock_was_set(r))
        MAP_EACH(struct context, c, all, by_path)
            tell_work(c);
    r->due = true;
    on_tick(&r->tick);
}

/* ---- the start ------------------------------------------------------------------------------- */

static void log_recovered(const struct ctx_reply *reply)
{
    size_t lost = 0;

    for (size_t i = 0; i < reply->n; i++)
        lost += reply->rows[i].status == CTX_READY;
    size_t half = reply->n - lost;
    if (half > 0)
        log_line(LEVEL_INFO, "%zu unfinished context%s of the last front cleaned up", half,
                 half == 1 ? "" : "s");
    if (lost > 0)
        log_line(LEVEL_INFO,
                 "%zu context%s lost %s sandbox while no front ran: the next call makes another",
                 lost, lost == 1 ? " has" : "s have", lost == 1 ? "its" : "their");
}

static void on_recovered(void *arg, const struct ctx_reply *reply)
{
    struct reaper *r = arg;
    struct contexts *t = r->front->contexts;
    void (*started)(struct front * f) = t->on_started;

    t->on_started = NULL;
    r->recovering = false;
    if (reply->r == 0) {
        t->recovered = true;
        log_recovered(reply);
        find_strays(r->front);
    } else {
        t->why = reply->e;
        log_line(LEVEL_WARN, "contexts are not available until the database answers: %s",
                 reply->e.message);
    }
    if (started)
        started(r->front);
}

static void recover(struct reaper *r)
{
    struct contexts *t = r->front->contexts;
    const char **alive = NULL;
    size_t n = 0, cap = 0;

    /* Only once: a second recovery would end what was begun after the first. */
    if (t->recovered || r->recovering)
        return;
    r->recovering = true;
    SANDBOXES_EACH(b, r->front) {
        alive = xgrow(alive, n, &cap, sizeof(alive[0]));
        alive[n++] = b->id;
    }
    ctx_call(t->store, recover, t->node, alive, n, on_recovered, r);
    free(alive);
}

static void on_seen(void *arg, const struct ctx_reply *reply)
{
    struct reaper *r = arg;
    struct contexts *t = r->front->contexts;

    if (reply->r < 0) {
        t->why = reply->e;
        if (!t->away_ns)
            t->away_ns = clock_ns();
        return;
    }
    if (t->away_ns && ms_since(t->away_ns) >= AWAY_LONG_MS)
        t->back_ns = clock_ns();
    t->away_ns = 0;
    recover(r);
}

static void on_alive(uv_timer_t *timer)
{
    struct reaper *r = timer->data;
    struct contexts *t = r->front->contexts;

    const char *url = r->front->settings.public_url;

    ctx_call(t->store, seen, t->node, url[0] ? url : r->front->url, on_seen, r);
}

/* ---- the end --------------------------------------------------------------------------------- */

static void on_left(void *arg, const struct ctx_reply *reply)
{
    struct contexts *t = arg;

    if (reply->r < 0)
        log_line(LEVEL_WARN, "the end of this server could not be stored: %s", reply->e.message);
    t->on_left(t->left_arg);
}

void contexts_leave(struct front *f, void (*done)(void *arg), void *arg)
{
    struct contexts *t = f->contexts;

    if (!t || !t->recovered) {
        done(arg);
        return;
    }
    t->on_left = done;
    t->left_arg = arg;
    uv_timer_stop(&t->reaper->alive);
    ctx_call(t->store, leave, t->node, on_left, t);
}

/* ---- starting the timers --------------------------------------------------------------------- */

void reaper_start(struct front *f)
{
    struct reaper *r = NEW(struct reaper, .front = f);

    clock_was_set(r);
    f->contexts->reaper = r;
    timer_every(f->loop, &r->tick, TICK_MS, on_tick, r);
    timer_every(f->loop, &r->reap, f->settings.reap_every_ms, on_reap, r);
    timer_every(f->loop, &r->alive, CTX_NODE_SEEN_MS, on_alive, r);
    usage_start(f);
    retention_start(f);
    on_alive(&r->alive);
    recover(r);
}
