/* The table of checkpoints: found by name, and by the sandbox whose state they hold. */
#include <string.h>

#include "lib/json/values.h"
#include "lib/base/clock.h"
#include "front/core/checkpoint_impl.h"
#include "front/core/warden.h"
#include "lib/log/log.h"
#include "front/store/store.h"

#define BUCKETS 1024u /* a power of two */

/* The memory that a tenant's checkpoints hold, kept as a sum so that it need not be added up for
 * each new checkpoint. */
struct tally {
    struct tally *next;
    char tenant[ID_LEN + 1];
    uint64_t bytes;
};

struct checkpoints {
    struct checkpoint *named[BUCKETS];
    struct lineage *lineages[BUCKETS];
    struct tally *tallies;
    uint64_t serial;
};

static struct checkpoints *table_of(struct front *f)
{
    if (!f->checkpoints)
        f->checkpoints = xcalloc(1, sizeof(*f->checkpoints));
    return f->checkpoints;
}

static size_t bucket_of(const char *id)
{
    uint32_t h = 2166136261u;

    for (const char *p = id; *p; p++)
        h = (h ^ (unsigned char)*p) * 16777619u;
    return h & (BUCKETS - 1);
}

/* ---- one checkpoint -------------------------------------------------------------------------- */

struct checkpoint *checkpoint_new(struct front *f)
{
    struct checkpoint *c = xcalloc(1, sizeof(*c));

    c->front = f;
    c->refs = 1;
    return c;
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
    if (!f->checkpoints)
        return NULL;
    for (struct lineage *l = f->checkpoints->lineages[bucket_of(sandbox_id)]; l; l = l->next)
        if (strcmp(l->sandbox_id, sandbox_id) == 0)
            return l;
    return NULL;
}

static struct lineage *lineage_make(struct front *f, const char *sandbox_id)
{
    struct lineage *l = lineage_find(f, sandbox_id),
                   **at = &table_of(f)->lineages[bucket_of(sandbox_id)];

    if (l)
        return l;
    l = xcalloc(1, sizeof(*l));
    memcpy(l->sandbox_id, sandbox_id, sizeof(l->sandbox_id));
    l->next = *at;
    *at = l;
    return l;
}

/* Frees an empty lineage if its sandbox has ended. While the sandbox lives the lineage stays:
 * clients may still ask which checkpoints were thinned out. */
static void lineage_drop_if_over(struct front *f, struct lineage *l)
{
    struct lineage **at = &f->checkpoints->lineages[bucket_of(l->sandbox_id)];

    if (l->oldest || sandbox_find(f, l->sandbox_id))
        return;
    while (*at != l)
        at = &(*at)->next;
    *at = l->next;
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
    for (size_t i = 0; f->checkpoints && i < BUCKETS; i++)
        for (struct lineage *l = f->checkpoints->lineages[i], *next; l; l = next) {
            next = l->next;
            fn(f, l);
        }
}

static uint64_t *bytes_of(struct front *f, const char *tenant)
{
    struct checkpoints *t = table_of(f);
    struct tally *y;

    for (y = t->tallies; y; y = y->next)
        if (strcmp(y->tenant, tenant) == 0)
            return &y->bytes;
    y = xcalloc(1, sizeof(*y));
    memcpy(y->tenant, tenant, sizeof(y->tenant));
    y->next = t->tallies;
    t->tallies = y;
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
    struct checkpoint **named = &t->named[bucket_of(c->name)];
    struct checkpoint **at = &lineage_make(f, c->sandbox_id)->oldest;

    if (t->serial < c->serial)
        t->serial = c->serial;
    while (*at && (*at)->serial < c->serial)
        at = &(*at)->next;
    c->next = *at;
    *at = c;
    c->next_named = *named;
    *named = c;
    if (c->kernels)
        *bytes_of(f, c->tenant) += c->memory_bytes;
    checkpoint_ref(c);
}

/* Before c is removed: whatever came from c, checkpoints and the sandbox, now comes from c's
 * parent. */
static void hand_down(struct lineage *l, const struct checkpoint *c)
{
    struct sandbox *b = sandbox_find(c->front, c->sandbox_id);

    for (struct checkpoint *k = l->oldest; k; k = k->next)
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
    struct checkpoint **named = f->checkpoints ? &f->checkpoints->named[bucket_of(c->name)] : NULL;

    while (named && *named && *named != c)
        named = &(*named)->next_named;
    if (!named || !*named)
        return;
    *named = c->next_named;
    for (struct checkpoint **at = &l->oldest; *at; at = &(*at)->next)
        if (*at == c) {
            *at = c->next;
            break;
        }
    hand_down(l, c);
    without_kernels(c);
    lineage_drop_if_over(f, l);
    checkpoint_unref(c);
}

static void on_forgotten(void *arg, const struct order_answer *a, int fd)
{
    (void)arg, (void)a;
    close_p(&fd);
}

static void order_forget(struct front *f, const char *name)
{
    struct order o = {.op = ORDER_FORGET};

    memcpy(o.snapshot, name, sizeof(o.snapshot));
    warden_order(f, &o, -1, on_forgotten, NULL);
}

void checkpoint_forget(struct checkpoint *c)
{
    order_forget(c->front, c->name);
    checkpoint_drop(c);
}

void checkpoint_snapshot_forgotten(struct front *f, const char *name)
{
    for (struct checkpoint *c = f->checkpoints ? f->checkpoints->named[bucket_of(name)] : NULL; c;
         c = c->next_named)
        if (strcmp(c->name, name) == 0) {
            checkpoint_drop(c);
            return;
        }
}

/* ---- finding --------------------------------------------------------------------------------- */

static struct checkpoint *find(struct front *f, const char *name)
{
    for (struct checkpoint *c = f->checkpoints ? f->checkpoints->named[bucket_of(name)] : NULL; c;
         c = c->next_named)
        if (strcmp(c->name, name) == 0)
            return c;
    return NULL;
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

    for (struct checkpoint *c = l ? l->oldest : NULL; c; c = c->next)
        if (c->kind == CHECKPOINT_LABEL && strcmp(c->label, label) == 0)
            found = c;
    return found;
}

size_t checkpoints_count(const struct front *f)
{
    size_t n = 0;

    for (size_t i = 0; f->checkpoints && i < BUCKETS; i++)
        for (const struct checkpoint *c = f->checkpoints->named[i]; c; c = c->next_named)
            n++;
    return n;
}

void checkpoints_each(struct front *f, const char *sandbox_id,
                      bool (*fn)(struct checkpoint *c, void *arg), void *arg)
{
    struct lineage *l = lineage_find(f, sandbox_id);

    for (struct checkpoint *c = l ? l->oldest : NULL, *next; c; c = next) {
        next = c->next;
        if (c->kind == CHECKPOINT_LABEL && !fn(c, arg))
            return;
    }
}

const char *sandbox_came_from(const struct sandbox *b)
{
    const struct lineage *l = lineage_find(b->front, b->id);
    const struct checkpoint *last = NULL;

    for (const struct checkpoint *c = l ? l->oldest : NULL; c; c = c->next)
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
    struct store_snapshot snap;

    for (struct checkpoint *c = l->oldest, *next; c; c = next) {
        next = c->next;
        if (c->kind == CHECKPOINT_SNAPSHOT &&
            store_snapshot_get(f->store, c->tenant, c->name, &snap, NULL) < 0)
            checkpoint_forget(c);
    }
}

void checkpoints_match_store(struct front *f)
{
    lineages_each(f, match_lineage);
}

void checkpoints_sandbox_ended(struct sandbox *b)
{
    struct lineage *l = lineage_find(b->front, b->id);

    for (struct checkpoint *c = l ? l->oldest : NULL, *next; c; c = next) {
        next = c->next;
        if (c->kind != CHECKPOINT_SNAPSHOT)
            checkpoint_drop(c);
    }
    l = lineage_find(b->front, b->id);
    if (l)
        lineage_drop_if_over(b->front, l);
}
