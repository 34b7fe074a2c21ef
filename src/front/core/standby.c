#include "front/core/standby.h"

#include <string.h>

#include "front/core/lifecycle.h"
#include "front/core/output_filter.h"
#include "front/core/starting.h"
#include "lib/base/clock.h"
#include "lib/log/log.h"
#include "lib/uv/handle.h"

#define NS_PER_MS 1000000ull
#define EVERY_MS  500
#define WANTED_NS (300000 * NS_PER_MS) /* after the last use */
#define WINDOW_NS (30000 * NS_PER_MS)  /* in which uses are counted */
#define REST_NS   (60000 * NS_PER_MS)  /* after one that could not be made */
#define LIFE_MS   3600000
#define READY_MS  60000
#define TRY_MS    100
#define KINDS_MAX 16 /* of a tenant */

/* A tenant that wants some. */
struct owner {
    struct list link; /* the one for which one was made last is last */
    char tenant[ID_LEN + 1];
    struct list kinds;
    unsigned n; /* that wait, or will */
    bool busy;  /* one is being made ready */
};

/* What is wanted: sandboxes of one template of a tenant. */
struct kind {
    struct list link; /* the one used last is first */
    struct owner *owner;
    struct sandbox_spec like;
    char snapshot[ID_LEN + 1];
    enum sanitise_mode filter; /* of requests of the tenant's sandboxes, which their policy has */
    uint64_t used_ns, since_ns, rests_until_ns;
    unsigned used, used_before; /* in this window, and in the last one */
    struct list waiting;        /* the oldest is first */
    unsigned n;
};

/* A sandbox that waits, or will. */
struct standby {
    struct list link;
    struct kind *kind;
    struct sandbox *sandbox;   /* NULL: it is being made */
    struct starting *starting; /* NULL: not begun */
    bool ready;
    bool stale; /* it is being made, and is to end when it is made */
};

static struct {
    struct front *front;
    uv_timer_t timer;
    struct list owners;
    unsigned all;
} state;

/* Who waits until those are gone that gave way. */
struct way {
    unsigned left;
    void (*gone)(void *arg);
    void *arg;
};

static void on_way_gone(void *arg, struct sandbox *b UNUSED, int r UNUSED,
                        const struct sg_error *e UNUSED)
{
    struct way *way = arg;

    if (--way->left > 0)
        return;
    way->gone(way->arg);
    free(way);
}

/* ---- kinds ----------------------------------------------------------------------------------- */

static bool has_own(const struct sandbox_spec *s)
{
    return json_object_size(s->envs) > 0 || s->network || s->secrets || s->volumes || s->agents ||
           s->context[0] || s->auto_pause || s->build;
}

static bool is_like(const struct kind *k, const struct sandbox_spec *s, const char *snapshot)
{
    const struct sandbox_spec *l = &k->like;

    return strcmp(k->snapshot, snapshot) == 0 && strcmp(l->template_id, s->template_id) == 0 &&
           l->interpreter == s->interpreter && l->allow_internet == s->allow_internet &&
           l->network_said == s->network_said &&
           k->filter == output_filter_mode_of(state.front, s->tenant, false) &&
           json_equal(l->defaults, s->defaults) &&
           memcmp(&l->limits, &s->limits, sizeof(l->limits)) == 0;
}

static void copy_like(const struct sandbox_spec *from, struct sandbox_spec *ret)
{
    sandbox_spec_init(ret);
    memcpy(ret->tenant, from->tenant, sizeof(ret->tenant));
    memcpy(ret->template_id, from->template_id, sizeof(ret->template_id));
    memcpy(ret->alias, from->alias, sizeof(ret->alias));
    ret->envs = json_object();
    ret->allow_internet = from->allow_internet;
    ret->network_said = from->network_said;
    ret->interpreter = from->interpreter;
    ret->gateway = from->gateway;
    ret->defaults = json_incref(from->defaults);
    ret->limits = from->limits;
    ret->standby = true;
    token_random(ret->envd_token); /* nobody has them */
    token_random(ret->traffic_token);
}

/* way: NULL, or who waits until it is gone. */
static void end(struct standby *w, struct way *way)
{
    struct sandbox *b = w->sandbox;

    if (!w->ready)
        w->kind->owner->busy = false;
    if (w->starting)
        starting_cancel(w->starting);
    list_remove(&w->link);
    w->kind->n--;
    w->kind->owner->n--;
    state.all--;
    free(w);
    if (b && b->state != SANDBOX_ENDED) {
        if (way)
            way->left++;
        sandbox_kill(b, way ? on_way_gone : NULL, way);
    }
    sandbox_unref(b);
}

/* One that is being made ends when it is made. */
static void end_waiting(struct kind *k, struct way *way)
{
    LIST_EACH(struct standby, w, &k->waiting, link)
        if (w->sandbox)
            end(w, way);
        else
            w->stale = true;
}

static void drop_unused(struct owner *o)
{
    uint64_t now = clock_ns();
    unsigned n = 0;

    LIST_EACH(struct kind, k, &o->kinds, link) {
        bool wanted = now - k->used_ns < WANTED_NS && ++n <= KINDS_MAX;
        if (!wanted)
            end_waiting(k, NULL);
        if (wanted || !list_empty(&k->waiting))
            continue;
        list_remove(&k->link);
        sandbox_spec_done(&k->like);
        free(k);
    }
    if (list_empty(&o->kinds)) {
        list_remove(&o->link);
        free(o);
    }
}

/* ---- shares ---------------------------------------------------------------------------------- */

/* One that is ready, of the tenant's template that was not used for the longest time, and before
 * then. */
static struct standby *oldest(const struct owner *o, uint64_t before_ns)
{
    struct standby *found = NULL;

    LIST_EACH(struct kind, k, &o->kinds, link) {
        struct standby *w = k->used_ns < before_ns
                                ? LIST_FIND(struct standby, at, &k->waiting, link, at->ready)
                                : NULL;
        found = w ? w : found;
    }
    return found;
}

/* One of the tenant that has the most, if it has more than the kind's, and still not less without it;
 * or was not used for longer. */
static struct standby *to_spare(const struct kind *k)
{
    struct standby *found = NULL;

    LIST_EACH(const struct owner, o, &state.owners, link) {
        struct standby *w = o->n <= k->owner->n
                                ? NULL
                                : oldest(o, o->n > k->owner->n + 1 ? UINT64_MAX : k->used_ns);
        const struct kind *best = found ? found->kind : NULL;
        if (w && (!best || o->n > best->owner->n ||
                  (o->n == best->owner->n && w->kind->used_ns < best->used_ns)))
            found = w;
    }
    return found;
}

/* Another makes way for one more, if need be. */
static bool may_have_more(const struct kind *k)
{
    uint32_t most = state.front->settings.pool_max;
    bool own = k->owner->n >= (most < STANDBY_TENANT ? most : STANDBY_TENANT);

    if (!own && state.all < STANDBY_ALL)
        return true;
    struct standby *w = own ? oldest(k->owner, k->used_ns) : to_spare(k);
    if (w)
        end(w, NULL);
    return w;
}

static unsigned target(const struct kind *k)
{
    unsigned n = k->used > k->used_before ? k->used : k->used_before;

    return n > 1 ? n : 1;
}

/* ---- making one ------------------------------------------------------------------------------ */

static void give_up(struct standby *w, const char *why)
{
    struct kind *k = w->kind;

    log_with(LEVEL_WARN,
             &(struct log_about){.fault = FAULT_SANDBOX,
                                 .sandbox_id = w->sandbox ? w->sandbox->id : NULL,
                                 .tenant = k->like.tenant},
             "no sandbox of template %s waits: %s", k->like.template_id, why);
    k->rests_until_ns = clock_ns() + REST_NS;
    end(w, NULL);
}

static void on_failed(void *arg)
{
    give_up(arg, "its start command failed");
}

static void on_ready(void *arg, int r, const struct sg_error *e)
{
    struct standby *w = arg;

    if (r < 0) {
        w->starting = NULL;
        give_up(w, e->message);
        return;
    }
    w->kind->owner->busy = false;
    w->ready = true;
}

static void on_made(void *arg, struct sandbox *b, int r, const struct sg_error *e)
{
    struct standby *w = arg;

    if (r < 0) {
        give_up(w, e->message);
        return;
    }
    struct starting_plan plan = {
        .limit_ms = READY_MS, .every_ms = TRY_MS, .done = on_ready, .failed = on_failed, .arg = w};
    w->sandbox = sandbox_ref(b);
    if (w->stale)
        end(w, NULL);
    else
        w->starting = starting_begin(b, &plan);
}

static void make(struct kind *k)
{
    struct standby *w = NEW(struct standby, .kind = k);
    struct sandbox_make m = {.snapshot = k->snapshot, .timeout_ms = LIFE_MS};
    struct sandbox_spec spec;

    copy_like(&k->like, &spec);
    list_append(&k->waiting, &w->link);
    k->n++;
    k->owner->n++;
    k->owner->busy = true;
    state.all++;
    sandbox_make(state.front, &spec, &m, on_made, w);
}

static void count_uses(struct kind *k, uint64_t now)
{
    if (now - k->since_ns < WINDOW_NS)
        return;
    k->used_before = k->used;
    k->used = 0;
    k->since_ns = now;
}

static bool make_for(struct owner *o, uint64_t now)
{
    if (o->busy)
        return false;
    LIST_EACH(struct kind, k, &o->kinds, link)
        if (k->n < target(k) && now >= k->rests_until_ns && may_have_more(k)) {
            list_remove(&o->link);
            list_append(&state.owners, &o->link);
            make(k);
            return true;
        }
    return false;
}

static void on_tick(uv_timer_t *t UNUSED)
{
    uint64_t now = clock_ns();

    LIST_EACH(struct owner, o, &state.owners, link)
        drop_unused(o);
    LIST_EACH(struct owner, o, &state.owners, link)
        LIST_EACH(struct kind, k, &o->kinds, link)
            count_uses(k, now);
    if (state.front->draining)
        return;
    LIST_EACH(struct owner, o, &state.owners, link)
        if (make_for(o, now))
            return;
}

/* ---- handing out ----------------------------------------------------------------------------- */

static void start(struct front *f)
{
    state.front = f;
    timer_every(f->loop, &state.timer, EVERY_MS, on_tick, NULL);
}

static struct owner *owner_of(const char *tenant)
{
    struct owner *o =
        LIST_FIND(struct owner, at, &state.owners, link, strcmp(at->tenant, tenant) == 0);

    if (o)
        return o;
    o = NEW(struct owner);
    snprintf(o->tenant, sizeof(o->tenant), "%s", tenant);
    list_push(&state.owners, &o->link);
    return o;
}

static struct kind *want(struct front *f, const struct sandbox_spec *spec, const char *snapshot)
{
    struct owner *o;
    struct kind *k;

    if (!state.front)
        start(f);
    o = owner_of(spec->tenant);
    k = LIST_FIND(struct kind, at, &o->kinds, link, is_like(at, spec, snapshot));
    if (k) {
        list_remove(&k->link);
    } else {
        k = NEW(struct kind, .owner = o, .since_ns = clock_ns());
        copy_like(spec, &k->like);
        k->filter = output_filter_mode_of(f, spec->tenant, false);
        snprintf(k->snapshot, sizeof(k->snapshot), "%s", snapshot);
    }
    k->used_ns = clock_ns();
    k->used++;
    list_push(&o->kinds, &k->link);
    return k;
}

struct sandbox *standby_take(struct front *f, const struct sandbox_spec *spec, const char *snapshot)
{
    struct sandbox *b;

    if (has_own(spec) || f->settings.pool_max == 0)
        return NULL;
    struct kind *k = want(f, spec, snapshot);
    struct standby *w = LIST_FIND(struct standby, at, &k->waiting, link,
                                  at->ready && at->sandbox->state == SANDBOX_RUNNING &&
                                      !sandbox_is_breaking(at->sandbox));
    if (!w)
        return NULL;
    b = sandbox_ref(w->sandbox);
    w->sandbox->spec.standby = false;
    sandbox_unref(steal_ptr(&w->sandbox));
    end(w, NULL);
    return b;
}

void standby_ended(struct sandbox *b)
{
    const struct owner *o = LIST_FIND(const struct owner, at, &state.owners, link,
                                      strcmp(at->tenant, b->spec.tenant) == 0);

    if (!o)
        return;
    LIST_EACH(struct kind, k, &o->kinds, link) {
        struct standby *w = LIST_FIND(struct standby, at, &k->waiting, link, at->sandbox == b);
        if (w) {
            end(w, NULL);
            return;
        }
    }
}

void standby_end_all(void)
{
    LIST_EACH(struct owner, o, &state.owners, link)
        LIST_EACH(struct kind, k, &o->kinds, link)
            end_waiting(k, NULL);
}

bool standby_give_way(const char *tenant, void (*gone)(void *arg), void *arg)
{
    struct way *way = gone ? NEW(struct way, .gone = gone, .arg = arg) : NULL;

    LIST_EACH(struct owner, o, &state.owners, link) {
        if (tenant && strcmp(o->tenant, tenant) != 0)
            continue;
        LIST_EACH(struct kind, k, &o->kinds, link) {
            end_waiting(k, way);
            k->rests_until_ns = clock_ns() + REST_NS;
        }
    }
    if (!way || way->left > 0)
        return way;
    free(way);
    return false;
}
