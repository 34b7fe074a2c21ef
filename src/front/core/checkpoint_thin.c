/* Decides which checkpoints stay. Of the checkpoints before messages, each sandbox keeps its last
 * checkpoint_keep, all of them; before these, ever fewer with growing age; and always its first. In
 * all it keeps at most checkpoint_max. None stays longer than checkpoint_age.
 *
 * A tenant's checkpoints may hold at most checkpoint_memory, counted as if they shared nothing. To
 * stay within it, the oldest of the same sandbox go.
 *
 * Checkpoints of forks and snapshots are never thinned out: their owners forget them. */
#include <string.h>

#include "lib/base/clock.h"
#include "lib/text/parse.h"
#include "lib/uv/handle.h"
#include "front/core/checkpoint_impl.h"

#define AGE_EVERY_MS 60000

static void thin_out(struct lineage *l, struct checkpoint *c)
{
    lineage_remember_thinned(l, c->name);
    if (c->label[0])
        lineage_remember_thinned(l, c->label);
    checkpoint_forget(c);
}

/* A checkpoint must stay while a sandbox is being made from it or rewound to it: then the table's
 * reference is not the only one. */
static bool may_go(const struct checkpoint *c)
{
    return c->kind == CHECKPOINT_LABEL && c->refs == 1;
}

static bool is_old(const struct checkpoint *c, int64_t now_ms)
{
    return now_ms - c->at_ms > (int64_t)c->front->settings.checkpoint_age_ms;
}

static void drop_old(struct front *f UNUSED, struct lineage *l)
{
    int64_t now = clock_wall_ms();

    LIST_EACH(struct checkpoint, c, &l->all, of_sandbox)
        if (may_go(c) && is_old(c, now))
            thin_out(l, c); /* with the last one, the lineage may be freed */
}

static size_t count_labelled(const struct lineage *l)
{
    size_t n = 0;

    LIST_EACH(struct checkpoint, c, &l->all, of_sandbox)
        n += c->kind == CHECKPOINT_LABEL;
    return n;
}

/* The one after c; NULL: the first. */
static struct checkpoint *next_labelled(const struct lineage *l, struct checkpoint *c)
{
    do
        c = LIST_NEXT(struct checkpoint, &l->all, c ? &c->of_sandbox : &l->all, of_sandbox);
    while (c && c->kind != CHECKPOINT_LABEL);
    return c;
}

/* Picks the checkpoint to forget: the one whose removal leaves the smallest gap for its age, so
 * that gaps grow with age. `old`: how many are not among the last ones. Ages and gaps are counted
 * in serials. These grow with the use of the whole server, but within a sandbox only proportions
 * matter. */
static struct checkpoint *find_victim(struct lineage *l, size_t old, uint64_t newest)
{
    struct checkpoint *before = next_labelled(l, NULL), *victim = NULL;
    struct checkpoint *c = before ? next_labelled(l, before) : NULL;
    double least = 0;

    for (size_t i = 1; i < old && c; i++) {
        struct checkpoint *after = next_labelled(l, c);
        double gap = (double)((after ? after->serial : newest) - before->serial);
        double cost = gap / (double)(newest - c->serial + 1);

        if (may_go(c) && (!victim || cost < least)) {
            victim = c;
            least = cost;
        }
        before = c;
        c = after;
    }
    return victim;
}

void checkpoints_thin(struct front *f, struct lineage *l)
{
    const struct settings *s = &f->settings;
    uint64_t newest = checkpoints_serial(f);

    if (!l)
        return;
    drop_old(f, l);
    for (size_t n = count_labelled(l); n > s->checkpoint_max && n > s->checkpoint_keep; n--) {
        struct checkpoint *victim = find_victim(l, n - s->checkpoint_keep, newest);

        if (!victim)
            victim = next_labelled(l, NULL);
        if (!victim || !may_go(victim))
            return;
        thin_out(l, victim);
    }
}

int checkpoints_make_room(struct sandbox *b, struct sg_error *e)
{
    struct front *f = b->front;
    uint64_t limit = f->settings.checkpoint_memory;
    struct lineage *l = lineage_find(f, b->id);
    char text[32];

    if (l)
        drop_old(f, l);
    if (l)
        LIST_EACH(struct checkpoint, c, &l->all, of_sandbox)
            if (checkpoints_memory(f, b->spec.tenant) >= limit && may_go(c) && c->kernels &&
                c->memory_bytes > 0)
                thin_out(l, c);
    if (checkpoints_memory(f, b->spec.tenant) < limit)
        return 0;
    format_size(limit, text, sizeof(text));
    return err_set(e, SG_ERR_LIMIT, -EDQUOT,
                   "the kernels of your checkpoints use all the memory that they may: the limit is "
                   "%s (checkpoint_memory); delete some first",
                   text);
}

/* ---- age ------------------------------------------------------------------------------------- */

static void on_age(uv_timer_t *t)
{
    lineages_each(t->data, drop_old);
}

void checkpoints_watch_age(struct front *f)
{
    static uv_timer_t timer;

    timer_every(f->loop, &timer, AGE_EVERY_MS, on_age, f);
}
