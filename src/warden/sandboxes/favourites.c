#include "warden/sandboxes/favourites.h"

#include "lib/base/clock.h"
#include "warden/host/limits.h"
#include "warden/sandboxes/snapshot.h"

#define FAVOURITE_NS 300000000000ull

static struct favourite *find(const struct tenant_pool *w, const struct snapshot *of)
{
    return LIST_FIND(struct favourite, f, &w->favourites, link, f->of == of);
}

static void drop(struct favourite *f)
{
    list_remove(&f->link);
    snapshot_release(f->of);
    free(f);
}

static void drop_last(struct tenant_pool *w)
{
    struct favourite *last = NULL;
    size_t n = 0;

    LIST_EACH(struct favourite, f, &w->favourites, link) {
        last = f;
        n++;
    }
    if (n >= FAVOURITES_MAX)
        drop(last);
}

void favourites_used(struct tenant_pool *w, struct snapshot *of, const struct sg_limits *limits)
{
    struct favourite *f = find(w, of);

    if (!f && !snapshot_is_named(of))
        return;
    if (f) {
        list_remove(&f->link);
    } else {
        drop_last(w);
        f = NEW(struct favourite, .of = snapshot_use(of));
    }
    f->limits = *limits;
    f->used_ns = clock_ns();
    f->demand.taken++;
    list_push(&w->favourites, &f->link);
}

bool favourites_want(const struct tenant_pool *w, const struct snapshot *of,
                     const struct sg_limits *limits)
{
    const struct favourite *f = find(w, of);

    return f && limits_equal(&f->limits, limits);
}

void favourites_tick(struct tenant_pool *w)
{
    uint64_t now = clock_ns();

    LIST_EACH(struct favourite, f, &w->favourites, link) {
        demand_tick(&f->demand);
        if (now - f->used_ns >= FAVOURITE_NS || !snapshot_is_named(f->of))
            drop(f);
    }
}

void favourites_done(struct tenant_pool *w)
{
    LIST_EACH(struct favourite, f, &w->favourites, link)
        drop(f);
}
