#include "warden/sandboxes/checkpoint.h"

#include <stdio.h>
#include <string.h>

#include "lib/log/log.h"
#include "warden/providers/provider.h"
#include "warden/processes/front_process.h"
#include "warden/sandboxes/snapshot.h"
#include "warden/server.h"
#include "warden/sandboxes/fork_start.h"
#include "warden/sandboxes/tenant_pool.h"
#include "warden/layers/layer_stack.h"

struct checkpoint *checkpoint_new(struct server *s, const char *tenant, const char *sandbox)
{
    struct checkpoint *m =
        NEW(struct checkpoint, .server = s, .users = 1, .written = -1, .note = -1);

    snprintf(m->tenant, sizeof(m->tenant), "%s", tenant);
    snprintf(m->sandbox, sizeof(m->sandbox), "%s", sandbox);
    list_push(&s->checkpoints, &m->link);
    return m;
}

void checkpoint_name(struct checkpoint *m, const char *name)
{
    snprintf(m->name, sizeof(m->name), "%s", name);
    m->users++;
}

struct checkpoint *checkpoint_find(struct server *s, const char *name)
{
    return LIST_FIND(struct checkpoint, m, &s->checkpoints, link,
                     m->name[0] && strcmp(m->name, name) == 0);
}

struct checkpoint *checkpoint_use(struct checkpoint *m)
{
    m->users++;
    return m;
}

static void checkpoint_free(struct checkpoint *m)
{
    list_remove(&m->link);
    close_p(&m->written);
    close_p(&m->note);
    free(m);
}

void checkpoint_release(struct checkpoint *m)
{
    if (!m || --m->users > 0)
        return;
    fork_start_drop(steal_ptr(&m->fork_start));
    if (m->tenant_pool) {
        OPS(m->tenant_pool->provider)->fork->drop(m->tenant_pool->provider, m->frozen_kernels);
        checkpoint_without_frozen_kernels(m);
    }
    stack_free(m->stack);
    snapshot_release(m->snapshot);
    checkpoint_free(m);
}

void checkpoint_forget(struct checkpoint *m)
{
    if (!m->name[0])
        return;
    m->name[0] = '\0';
    checkpoint_release(m);
}

void checkpoint_has_frozen_kernels(struct checkpoint *m, struct tenant_pool *w,
                                   uint64_t frozen_kernels)
{
    m->tenant_pool = w;
    m->frozen_kernels = frozen_kernels;
    w->n_out++;
}

void checkpoint_without_frozen_kernels(struct checkpoint *m)
{
    struct tenant_pool *w = m->tenant_pool;

    m->tenant_pool = NULL;
    m->frozen_kernels = 0;
    if (w)
        tenant_pool_return(w);
}

/* ---- saving to disk -------------------------------------------------------------------------- */

struct saving {
    struct checkpoint *checkpoint;
    struct ticket ticket;
};

static void on_saved(void *arg, struct snapshot *l, uint64_t bytes, const struct sg_error *e)
{
    struct saving *v = arg;
    struct server *s = v->checkpoint->server;
    struct order_answer a = {.stats.disk_bytes = bytes};
    bool wanted = ticket_valid(s, &v->ticket) && v->checkpoint->name[0];

    if (!l || !wanted)
        checkpoint_forget(v->checkpoint);
    if (l && !wanted)
        snapshot_forget(l);
    if (l)
        front_answer(s, &v->ticket, &a, -1);
    else
        front_answer_error(s, &v->ticket, e->code, e);
    snapshot_release(l);
    checkpoint_release(v->checkpoint);
    free(v);
}

void checkpoint_save(struct checkpoint *m, const struct ticket *t)
{
    struct save_order o = {
        .name = m->name, .durable = true, .below = m->snapshot, .stack = m->stack};
    struct saving *v = NEW(struct saving, .checkpoint = checkpoint_use(m), .ticket = *t);
    struct sg_error e = {0};

    if (!snapshot_save(m->server, &o, on_saved, v, &e))
        on_saved(v, NULL, 0, &e);
}

/* ---- telling the front ----------------------------------------------------------------------- */

static void tell(struct checkpoint *m, enum order_tell what)
{
    struct order_answer a = {.tell = what};
    bool new = what == TELL_CHECKPOINT;

    memcpy(a.snapshot, m->name, sizeof(a.snapshot));
    memcpy(a.tenant, m->tenant, sizeof(a.tenant));
    memcpy(a.id, m->sandbox, sizeof(a.id));
    a.flags = new && m->tenant_pool ? TELL_KERNELS : 0;
    a.stats.memory_used = new ? m->memory_bytes : 0;
    front_tell(m->server, &a, &m->note, new);
}

static void lose(struct checkpoint *m)
{
    if (m->name[0])
        tell(m, TELL_KERNELS_LOST);
    checkpoint_without_frozen_kernels(m);
}

static struct checkpoint *first(struct server *s)
{
    return LIST_FIRST(struct checkpoint, &s->checkpoints, link);
}

/* Frozen kernels of a tenant pool have ended: those of the set (0: of any), or those that were to be
 * kept. The search begins anew after each hit: a tenant pool that gets its reference back may end
 * other checkpoints. */
static void lose_all(struct server *s, struct tenant_pool *w, uint64_t set, bool kept)
{
    struct checkpoint *m = first(s);

    while (m) {
        bool lost =
            m->tenant_pool == w && (set == 0 || m->frozen_kernels == set) && (!kept || m->keep);
        if (lost)
            lose(m);
        m = lost ? first(s) : LIST_NEXT(struct checkpoint, &s->checkpoints, &m->link, link);
    }
}

void checkpoints_lost(struct server *s, struct tenant_pool *w, uint64_t frozen_kernels)
{
    lose_all(s, w, frozen_kernels, false);
}

void checkpoints_home_gone(struct server *s, struct tenant_pool *w)
{
    lose_all(s, w, 0, true);
}

/* New checkpoints are at the head of the list, so the last match is the oldest. */
bool checkpoints_let_go(struct server *s)
{
    struct checkpoint *oldest = NULL;

    LIST_EACH(struct checkpoint, m, &s->checkpoints, link)
        if (m->tenant_pool && m->name[0] && m->users == 1)
            oldest = m;
    if (!oldest)
        return false;
    fork_start_drop(steal_ptr(&oldest->fork_start));
    OPS(oldest->tenant_pool->provider)
        ->fork->drop(oldest->tenant_pool->provider, oldest->frozen_kernels);
    log_line(LEVEL_WARN, "memory is short: the kernels of a checkpoint were dropped");
    lose(oldest);
    return true;
}

void checkpoints_sandbox_gone(struct server *s, const char *sandbox)
{
    struct checkpoint *m = first(s);

    while (m) {
        bool its = strcmp(m->sandbox, sandbox) == 0, ends = its && !m->keep && m->name[0];
        if (ends)
            tell(m, TELL_CHECKPOINT_GONE);
        if (its)
            m->sandbox[0] = '\0';
        if (ends)
            checkpoint_forget(m);
        m = ends ? first(s) : LIST_NEXT(struct checkpoint, &s->checkpoints, &m->link, link);
    }
}

void checkpoints_introduce(struct server *s)
{
    LIST_EACH(struct checkpoint, m, &s->checkpoints, link)
        if (m->name[0]) {
            lseek(m->note, 0, SEEK_SET);
            tell(m, TELL_CHECKPOINT);
        }
}

void checkpoints_close(struct server *s)
{
    LIST_EACH(struct checkpoint, m, &s->checkpoints, link) {
        fork_start_drop(m->fork_start);
        stack_free(m->stack);
        checkpoint_free(m);
    }
}
