#include "warden/sandboxes/recent_templates.h"

#include "lib/base/clock.h"
#include "warden/host/limits.h"
#include "warden/sandboxes/snapshot.h"

#define RECENT_NS 300000000000ull

static struct recent *find(const struct tenant_pool *w, const struct snapshot *of)
{
    return LIST_FIND(struct recent, f, &w->recent, link, f->of == of);
}

static void drop(struct recent *f)
{
    list_remove(&f->link);
    snapshot_release(f->of);
    free(f);
}

static void drop_last(struct tenant_pool *w)
{
    struct recent *last = NULL;
    size_t n = 0;

    LIST_EACH(struct recent, f, &w->recent, link) {
        last = f;
        n++;
    }
    if (n >= RECENT_MAX)
        drop(last);
}

void recent_used(struct tenant_pool *w, struct snapshot *of, const struct sg_limits *limits)
{
    struct recent *f = find(w, of);

    if (!f && !snapshot_is_named(of))
        return;
    if (f) {
        list_remove(&f->link);
    } else {
        drop_last(w);
        f = NEW(struct recent, .of = snapshot_use(of));
    }
    f->limits = *limits;
    f->used_ns = clock_ns();
    f->demand.taken++;
    list_push(&w->recent, &f->link);
}

bool recent_want(const struct tenant_pool *w, const struct snapshot *of,
                 const struct sg_limits *limits)
{
    const struct recent *f = find(w, of);

    return f && limits_equal(&f->limits, limits);
}

void recent_tick(struct tenant_pool *w)
{
    uint64_t now = clock_ns();

    LIST_EACH(struct recent, f, &w->recent, link) {
        demand_tick(&f->demand);
        if (now - f->used_ns >= RECENT_NS || !snapshot_is_named(f->of))
            drop(f);
    }
}

void recent_done(struct tenant_pool *w)
{
    LIST_EACH(struct recent, f, &w->recent, link)
        drop(f);
}
