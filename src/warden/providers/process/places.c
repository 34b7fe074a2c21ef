/* The slots of a provider: which slot is used next, and what unused slots keep.
 *
 *   cold --take--> used --give--> resting --take--> used
 *    ^                               |
 *    +-------------- trim -----------+
 *
 * A slot that has had a sandbox keeps its groups and its lowest layers, six descriptors, for the
 * next one. Resting slots are used in turn; a cold one is used only while fewer than REST_MIN rest.
 * So an id range rests before it is used again. And the number of slots that keep something is
 * bounded by the living sandboxes and those few, however many slots there are. */
#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "warden/providers/process/process_impl.h"

#define REST_MIN      8
#define HAUNTED_LOOKS 8 /* at haunted slots, for each slot that is taken */
#define HAUNTED_BYTES (8u << 20)

static void add(struct provider *p, struct slot_queue *q, uint32_t index)
{
    p->slots[index].next = SLOT_NONE;
    if (q->n++ == 0)
        q->first = index;
    else
        p->slots[q->last].next = index;
    q->last = index;
}

static uint32_t take_first(const struct provider *p, struct slot_queue *q)
{
    uint32_t index = q->first;

    q->first = p->slots[index].next;
    q->n--;
    return index;
}

void places_init(struct provider *p)
{
    for (uint32_t i = 0; i < p->n_slots; i++) {
        p->slots[i].lowers = (struct lowers)LOWERS_NONE;
        add(p, &p->cold, i);
    }
}

static uint64_t memory_of(struct slot *s)
{
    struct cgroup_usage usage;

    s->cgroup->ops->usage(s->cgroup, &usage);
    return usage.memory_bytes;
}

/* Removes the slot's group, because memory that was charged to it stays charged to it: the next
 * sandbox gets a new group. */
static int renew(struct slot *s, struct sg_error *e)
{
    int r = s->cgroup ? cgroup_destroy(steal_ptr(&s->cgroup), e) : 0;

    s->worn = false;
    s->seen = (struct cgroup_stats){0};
    return r;
}

static void put_away(struct provider *p, uint32_t index)
{
    struct slot *s = &p->slots[index];

    s->rested_ns = clock_ns();
    add(p, s->cgroup || s->lowers.template >= 0 ? &p->resting : &p->cold, index);
}

/* Checks one haunted slot: whether others have let go of the memory that is charged to it. */
static void look_at_haunted(struct provider *p)
{
    uint32_t index = take_first(p, &p->haunted);

    if (memory_of(&p->slots[index]) > HAUNTED_BYTES) {
        add(p, &p->haunted, index);
        return;
    }
    renew(&p->slots[index], NULL);
    put_away(p, index);
}

int places_take(struct provider *p, uint32_t *ret, struct sg_error *e)
{
    if (p->haunted.n > 0)
        look_at_haunted(p);
    for (unsigned n = 1; n < HAUNTED_LOOKS && p->haunted.n > 0 && p->resting.n + p->cold.n == 0;
         n++)
        look_at_haunted(p);
    if (p->resting.n + p->cold.n == 0)
        return err_set(e, SG_ERR_LIMIT, -EDQUOT,
                       "all %u places for sandboxes are in use: end one first", p->n_slots);
    *ret = take_first(p, p->cold.n == 0 || p->resting.n >= REST_MIN ? &p->resting : &p->cold);
    return 0;
}

int places_give(struct provider *p, uint32_t index, bool shares, struct sg_error *e)
{
    struct slot *s = &p->slots[index];
    int r = 0;

    if (s->cgroup && shares && memory_of(s) > HAUNTED_BYTES) {
        add(p, &p->haunted, index);
        return 0;
    }
    if (s->cgroup && (shares || !s->cgroup->ops->reusable))
        r = renew(s, e);
    put_away(p, index);
    return r;
}

void places_drop_lowers(struct provider *p, struct slot *s)
{
    late_add(&p->late, &s->lowers.template);
    late_add(&p->late, &s->lowers.world);
    worlds_release(steal_ptr(&s->world));
}

bool places_trim(struct provider *p, uint64_t before_ns)
{
    struct slot *s = p->resting.n > 0 ? &p->slots[p->resting.first] : NULL;

    if (!s || s->rested_ns > before_ns)
        return worlds_trim(p, before_ns);
    places_drop_lowers(p, s);
    renew(s, NULL);
    add(p, &p->cold, take_first(p, &p->resting));
    return true;
}
