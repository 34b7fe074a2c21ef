/* The table of checkpoints: found by name, and by the sandbox whose state they hold. */
#include <string.h>

#include "lib/json/values.h"
#include "lib/base/clock.h"
#include "front/core/checkpoint_impl.h"
#include "front/core/warden.h"
#include "lib/log/log.h"
#include "front/store/store.h"

/* The memory that a tenant's checkpoints hold, kept as a sum so that it need not be added up for
 * each new checkpoint. */
struct tally {
    struct map_node by_tenant;
    char tenant[ID_LEN + 1];
    uint64_t bytes;
};

struct checkpoints {
    struct map named, lineages, tallies;
    uint64_t serial;
};

static struct checkpoints *table_of(struct front *f)
{
    if (!f->checkpoints)
        f->checkpoints = xcalloc(1, sizeof(*f->checkpoints));
    return f->checkpoints;
}

/* ---- one checkpoint -------------------------------------------------------------------------- */

struct checkpoint *checkpoint_new(struct front *f)
{
    return NEW(struct checkpoint, .front = f, .refs = 1);
}

struct checkpoint *checkpoint_ref(struct checkpoint *c)
{
    c->refs++;
    return c;
}

void checkpoint_unref(struct checkpoint *c)
{
    if (!c || --c->refs > 0)
        return;
    json_decref(c->contexts);
    json_decref(c->cells);
    free(c);
}

uint64_t checkpoint_disk_bytes(const struct checkpoint *c)
{
    return c->disk_bytes;
}

/* ---- the checkpoints of a sandbox, and of a tenant ------------------------------------------- */

struct lineage *lineage_find(struct front *f, const char *sandbox_id)
{
    return MAP_FIND(struct lineage, l, &table_of(f)->lineages, hash_text(0, sandbox_id), by_id,
                    strcmp(l->sandbox_id, sandbox_id) == 0);
}

static struct lineage *lineage_make(struct front *f, const char *sandbox_id)
{
    struct lineage *l = lineage_find(f, sandbox_id);

    if (l)
        return l;
    l = xcalloc(1, sizeof(*l));
    memcpy(l->sandbox_id, sandbox_id, sizeof(l->sandbox_id));
    map_add(&f->checkpoints->lineages, &l->by_id, hash_text(0, sandbox_id));
    return l;
}

/* Frees an empty lineage if its sandbox has ended. While the sandbox lives the lineage stays:
 * clients may still ask which checkpoints were thinned out. */
static void lineage_drop_if_over(struct front *f, struct lineage *l)
{
    if (!list_empty(&l->all) || sandbox_find(f, l->sandbox_id))
        return;
    map_remove(&f->checkpoints->lineages, &l->by_id);
    for (size_t i = 0; i < THINNED_MAX; i++)
        free(l->thinned[i]);
    free(l);
}

void lineage_remember_thinned(struct lineage *l, const char *label)
{
    char **at = &l->thinned[l->n_thinned % THINNED_MAX];

    free(*at);
    *at = xstrdup(label);
    l->n_thinned++;
}

bool checkpoint_was_thinned(struct front *f, const char *sandbox_id, const char *label)
{
    const struct lineage *l = lineage_find(f, sandbox_id);

    for (size_t i = 0; l && i < THINNED_MAX && l->thinned[i]; i++)
        if (strcmp(l->thinned[i], label) == 0)
            return true;
    return false;
}

void lineages_each(struct front *f, void (*fn)(struct front *f, struct lineage *l))
{
    MAP_EACH(struct lineage, l, &table_of(f)->lineages, by_id)
        fn(f, l);
}

static uint64_t *bytes_of(struct front *f, const char *tenant)
{
    struct map *tallies = &table_of(f)->tallies;
    uint64_t hash = hash_text(0, tenant);
    struct tally *y =
        MAP_FIND(struct tally, k, tallies, hash, by_tenant, strcmp(k->tenant, tenant) == 0);

    if (!y) {
        y = xcalloc(1, sizeof(*y));
        memcpy(y->tenant, tenant, sizeof(y->tenant));
        map_add(tallies, &y->by_tenant, hash);
    }
    return &y->bytes;
}

uint64_t checkpoints_memory(struct front *f, const char *tenant)
{
    return *bytes_of(f, tenant);
}

uint64_t checkpoints_serial(struct front *f)
{
    return table_of(f)->serial;
}

uint64_t checkpoints_next_serial(struct front *f, uint64_t after)
{
    struct checkpoints *t = table_of(f);

    t->serial = (t->serial > after ? t->serial : after) + 1;
    return t->serial;
}

/* ---- adding and removing --------------------------------------------------------------------- */

void checkpoint_add(struct checkpoint *c)
{
    struct front *f = c->front;
    struct checkpoints *t = table_of(f);
    struct lineage *l = lineage_make(f, c->sandbox_id);
    struct checkpoint *after =
        LIST_FIND(struct checkpoint, k, &l->all, of_sandbox, k->serial >= c->serial);

    if (t->serial < c->serial)
        t->serial = c->serial;
    list_insert(after ? &after->of_sandbox : &l->all, &c->of_sandbox);
    map_add(&t->named, &c->by_name, hash_text(0, c->name));
    if (c->kernels)
        *bytes_of(f, c->tenant) += c->memory_bytes;
    checkpoint_ref(c);
}

/* Before c is removed: whatever came from c, checkpoints and the sandbox, now comes from c's
 * parent. */
static void hand_down(struct lineage *l, const struct checkpoint *c)
{
    struct sandbox *b = sandbox_find(c->front, c->sandbox_id);

    LIST_EACH(struct checkpoint, k, &l->all, of_sandbox)
        if (strcmp(k->parent, c->name) == 0)
            memcpy(k->parent, c->parent, sizeof(k->parent));
    if (b && strcmp(b->spec.checkpoint, c->name) == 0)
        memcpy(b->spec.checkpoint, c->parent, sizeof(b->spec.checkpoint));
}

static void without_kernels(struct checkpoint *c)
{
    if (c->kernels)
        *bytes_of(c->front, c->tenant) -= c->memory_bytes;
    c->kernels = false;
}

void checkpoint_drop(struct checkpoint *c)
{
    struct front *f = c->front;
    struct lineage *l = lineage_find(f, c->sandbox_id);

    if (!list_linked(&c->of_sandbox))
        return;
    map_remove(&f->checkpoints->named, &c->by_name);
    list_remove(&c->of_sandbox);
    hand_down(l, c);
    without_kernels(c);
    lineage_drop_if_over(f, l);
    checkpoint_unref(c);
}

static void order_forget(struct front *f, const char *name)
{
    struct order o = {.op = ORDER_FORGET};

    memcpy(o.snapshot, name, sizeof(o.snapshot));
    warden_order(f, &o, -1, NULL, NULL);
}

void checkpoint_forget(struct checkpoint *c)
{
    order_forget(c->front, c->name);
    checkpoint_drop(c);
}

/* ---- finding --------------------------------------------------------------------------------- */

static struct checkpoint *find(struct front *f, const char *name)
{
    return MAP_FIND(struct checkpoint, c, &table_of(f)->named, hash_text(0, name), by_name,
                    strcmp(c->name, name) == 0);
}

void checkpoint_snapshot_forgotten(struct front *f, const char *name)
{
    struct checkpoint *c = find(f, name);

    if (c)
        checkpoint_drop(c);
}

struct checkpoint *checkpoint_find(struct front *f, const char *tenant, const char *name)
{
    struct checkpoint *c = find(f, name);

    return c && strcmp(c->tenant, tenant) == 0 ? c : NULL;
}

struct checkpoint *checkpoint_labelled(struct front *f, const char *sandbox_id, const char *label)
{
    struct lineage *l = lineage_find(f, sandbox_id);
    struct checkpoint *found = NULL;

    if (l)
        LIST_EACH(struct checkpoint, c, &l->all, of_sandbox)
            if (c->kind == CHECKPOINT_LABEL && strcmp(c->label, label) == 0)
                found = c;
    return found;
}

size_t checkpoints_count(const struct front *f)
{
    return f->checkpoints ? f->checkpoints->named.n : 0;
}

void checkpoints_each(struct front *f, const char *sandbox_id,
                      bool (*fn)(struct checkpoint *c, void *arg), void *arg)
{
    struct lineage *l = lineage_find(f, sandbox_id);

    if (l)
        LIST_EACH(struct checkpoint, c, &l->all, of_sandbox)
            if (c->kind == CHECKPOINT_LABEL && !fn(c, arg))
                return;
}

const char *sandbox_came_from(const struct sandbox *b)
{
    const struct lineage *l = lineage_find(b->front, b->id);
    const struct checkpoint *last = NULL;

    if (l)
        LIST_EACH(struct checkpoint, c, &l->all, of_sandbox)
            if (c->kind == CHECKPOINT_LABEL && c->serial > b->spec.checkpoint_serial)
                last = c;
    return last ? last->name : b->spec.checkpoint;
}

/* ---- messages of the warden ------------------------------------------------------------------ */

void checkpoint_told(struct front *f, const struct order_answer *a, int note_fd)
{
    struct checkpoint *c = checkpoint_new(f);
    struct sg_error e = {0};
    int r = note_fd < 0 ? -EPROTO : checkpoint_note_load(note_fd, c, &e);

    close_p(&note_fd);
    memcpy(c->name, a->snapshot, sizeof(c->name));
    memcpy(c->tenant, a->tenant, sizeof(c->tenant));
    c->kernels = (a->flags & TELL_KERNELS) != 0;
    c->memory_bytes = a->stats.memory_used;
    if (r < 0)
        log_line(LEVEL_WARN, "a checkpoint of the last front cannot be read: %s", e.message);
    bool lost = c->kind == CHECKPOINT_LABEL && !sandbox_find(f, c->sandbox_id);
    if (r < 0 || !id_valid(c->name) || c->kind == CHECKPOINT_FORK || lost)
        order_forget(f, c->name);
    else
        checkpoint_add(c);
    checkpoint_unref(c);
}

bool checkpoint_had_kernels(const struct checkpoint *c)
{
    for (size_t i = 0; i < json_array_size(c->contexts); i++)
        if (jr_flag(json_array_get(c->contexts, i), "carried"))
            return true;
    return false;
}

void checkpoint_told_lost(struct front *f, const struct order_answer *a)
{
    struct checkpoint *c = find(f, a->snapshot);

    if (c)
        without_kernels(c);
}

void checkpoint_told_gone(struct front *f, const struct order_answer *a)
{
    checkpoint_snapshot_forgotten(f, a->snapshot);
}

static void match_lineage(struct front *f, struct lineage *l)
{
    LIST_EACH(struct checkpoint, c, &l->all, of_sandbox)
        if (c->kind == CHECKPOINT_SNAPSHOT && !store_layer_named(f->store, c->name))
            checkpoint_forget(c);
}

void checkpoints_match_store(struct front *f)
{
    lineages_each(f, match_lineage);
}

void checkpoints_sandbox_ended(struct sandbox *b)
{
    struct lineage *l = lineage_find(b->front, b->id);

    if (l)
        LIST_EACH(struct checkpoint, c, &l->all, of_sandbox)
            if (c->kind != CHECKPOINT_SNAPSHOT)
                checkpoint_drop(c);
    l = lineage_find(b->front, b->id);
    if (l)
        lineage_drop_if_over(b->front, l);
}
