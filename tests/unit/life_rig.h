/* A warden without processes, for its sandboxes: orders go in as a front sends them, answers are
 * counted, the provider is a fake one, snapshots are memory, and time passes when the test says
 * so. */
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "fake_provider.h"
#include "lib/base/fd.h"
#include "lib/base/list.h"
#include "lib/log/log.h"
#include "warden/orders.h"
#include "warden/sandboxes/diff.h"
#include "warden/sandboxes/sandbox_impl.h"
#include "warden/sandboxes/volume.h"
#include "warden/server.h"

#define RIG_ORDERS 4096
#define RIG_IDS    8

struct rig {
    struct server *s;
    uint64_t seq;                     /* the last order */
    uint8_t answers[RIG_ORDERS];      /* by order */
    struct order_answer last;         /* answer to an order */
    unsigned ended[RIG_IDS], n_ended; /* how often each sandbox was told to have ended */
    unsigned created[RIG_IDS];        /* how often each was ordered */
};

/* ---- time ------------------------------------------------------------------------------------ */

static uint64_t rig_now = 1000000000000ull;

uint64_t clock_ns(void)
{
    return rig_now;
}

int64_t clock_wall_ms(void)
{
    return (int64_t)(rig_now / 1000000);
}

void clock_text(int64_t ms, char ret[CLOCK_TEXT_LEN])
{
    snprintf(ret, CLOCK_TEXT_LEN, "%lld", (long long)ms);
}

int clock_poll_ms(uint64_t deadline_ns)
{
    return deadline_ns > rig_now ? 1 : 0;
}

/* ---- snapshots ------------------------------------------------------------------------------- */

struct snapshot {
    struct list link;
    char name[ID_LEN + 1];
    unsigned users;
    int dir; /* -1: it is being written */
};

struct save {
    struct save *next;
    struct server *server;
    struct snapshot *snapshot;
    save_done done;
    void *arg;
};

static struct save *rig_saves;
static unsigned rig_snapshots;
static bool rig_saves_wait;

static struct snapshot *rig_named(struct server *s, const char *name)
{
    return LIST_FIND(struct snapshot, l, &s->snapshots, link,
                     l->name[0] && strcmp(l->name, name) == 0);
}

struct snapshot *snapshot_find(struct server *s, const char *name)
{
    struct snapshot *l = rig_named(s, name);

    return l && l->dir >= 0 ? l : NULL;
}

const int *snapshot_dir(const struct snapshot *l)
{
    return &l->dir;
}

const struct world_source *snapshot_world(const struct snapshot *l UNUSED)
{
    return NULL;
}

bool snapshot_is_world(const struct snapshot *l UNUSED)
{
    return false;
}

int diff_begin(struct server *s UNUSED, const struct instance *i UNUSED, struct snapshot *of UNUSED,
               struct snapshot *against UNUSED, int list UNUSED, const struct ticket *t UNUSED,
               struct sg_error *e)
{
    return err_set(e, SG_ERR_UNSUPPORTED, -EOPNOTSUPP, "there are no files here");
}

bool snapshot_is_named(const struct snapshot *l UNUSED)
{
    return true;
}

struct snapshot *snapshot_use(struct snapshot *l)
{
    l->users++;
    return l;
}

void snapshot_release(struct snapshot *l)
{
    if (!l || --l->users > 0)
        return;
    list_remove(&l->link);
    rig_snapshots--;
    free(l);
}

void snapshot_forget(struct snapshot *l)
{
    if (!l->name[0])
        return;
    l->name[0] = '\0';
    snapshot_release(l);
}

struct save *snapshot_save(struct server *s, const struct save_order *o, save_done done, void *arg,
                           struct sg_error *e)
{
    struct save *v;

    if (fake_error(FAKE_SAVE, -EMFILE, e) < 0)
        return NULL;
    if (o->name && rig_named(s, o->name)) {
        err_set(e, SG_ERR_INVALID, -EEXIST, "there is one already");
        return NULL;
    }
    v = xcalloc(1, sizeof(*v));
    *v = (struct save){.next = rig_saves, .server = s, .done = done, .arg = arg};
    v->snapshot = xcalloc(1, sizeof(*v->snapshot));
    *v->snapshot = (struct snapshot){.users = 1 + (o->name != NULL), .dir = -1};
    snprintf(v->snapshot->name, sizeof(v->snapshot->name), "%s", o->name ? o->name : "");
    list_push(&s->snapshots, &v->snapshot->link);
    rig_snapshots++;
    rig_saves = v;
    return v;
}

static void rig_unlink_save(struct save *v)
{
    for (struct save **p = &rig_saves; *p; p = &(*p)->next)
        if (*p == v) {
            *p = v->next;
            return;
        }
}

void snapshot_save_cancel(struct save *v)
{
    rig_unlink_save(v);
    v->snapshot->users = 1;
    snapshot_release(v->snapshot);
    free(v);
}

/* The child that wrote the snapshot has ended. */
static void rig_saved(bool well)
{
    struct save *v = rig_saves;
    struct sg_error e = {0};

    if (!v)
        return;
    rig_unlink_save(v);
    if (!well) {
        v->snapshot->users = 1;
        snapshot_release(v->snapshot);
        err_set(&e, SG_ERR_LIMIT, -ENOSPC, "no room for a snapshot");
    }
    if (well)
        v->snapshot->dir = 0;
    v->done(v->arg, well ? v->snapshot : NULL, 1, &e);
    free(v);
}

/* ---- volumes --------------------------------------------------------------------------------- */

/* There is one, of everybody's. */
struct volume {
    unsigned users;
};

static struct volume rig_volume;

int volume_use(struct server *s, const char *tenant, const char *id, struct volume **ret,
               struct sg_error *e)
{
    (void)s, (void)tenant;
    if (id[0] == '-')
        return err_set(e, SG_ERR_NOT_FOUND, -ENOENT, "there is no volume '%s'", id);
    rig_volume.users++;
    *ret = &rig_volume;
    return 0;
}

void volume_release(struct volume *v)
{
    v->users--;
}

int volume_dir(const struct volume *v)
{
    (void)v;
    return -1;
}

int volume_make(struct server *s, const char *tenant, const char *id, struct sg_error *e)
{
    (void)s, (void)tenant, (void)id, (void)e;
    return 0;
}

int volume_remove(struct server *s, const char *tenant, const char *id, struct sg_error *e)
{
    return volume_make(s, tenant, id, e);
}

int volume_connect(struct server *s, const char *tenant, const char *id, int *ret_fd,
                   struct sg_error *e)
{
    (void)ret_fd;
    return volume_make(s, tenant, id, e);
}

/* ---- files workers --------------------------------------------------------------------------- */

struct files_worker {
    struct list link;
    files_done done;
    void *arg;
};

static struct list rig_workers;

void files_order_init(struct files_order *o, enum files_op op)
{
    *o = (struct files_order){.request.op = (uint32_t)op, .list = -1};
}

int files_order_add(struct files_order *o, int tree, uint32_t first_id, const char *dir, bool upper)
{
    (void)o, (void)tree, (void)first_id, (void)dir, (void)upper;
    return 0;
}

int files_order_add_view(struct files_order *o, const struct layer_stack_view *view)
{
    (void)o, (void)view;
    return 0;
}

struct files_worker *files_worker_start(struct server *s, const struct files_order *o,
                                        files_done done, void *arg, struct sg_error *e)
{
    struct files_worker *w;

    (void)s, (void)o;
    if (fake_error(FAKE_WORKER, -EAGAIN, e) < 0)
        return NULL;
    w = xcalloc(1, sizeof(*w));
    *w = (struct files_worker){.done = done, .arg = arg};
    list_push(&rig_workers, &w->link);
    return w;
}

void files_worker_cancel(struct files_worker *w)
{
    list_remove(&w->link);
    free(w);
}

/* A worker has ended. */
static void rig_worker_ends(bool well)
{
    struct files_worker *w = LIST_POP(struct files_worker, &rig_workers, link);
    struct files_answer a = {.code = well ? 0 : -ENOSPC, .kind = well ? 0 : SG_ERR_LIMIT};

    if (!w)
        return;
    w->done(w->arg, &a);
    free(w);
}

/* ---- the front ------------------------------------------------------------------------------- */

static const char *rig_id(unsigned n)
{
    static char ids[RIG_IDS][ID_LEN + 1];

    snprintf(ids[n], sizeof(ids[n]), "sandbox%013u", n);
    return ids[n];
}

static struct rig *rig_here;

bool ticket_valid(const struct server *s, const struct ticket *t)
{
    return t->turn != 0 && t->turn == s->front.turn;
}

void front_tell(struct server *s, struct order_answer *a, const int *fds, size_t n_fds)
{
    struct rig *r = rig_here;

    (void)s, (void)fds, (void)n_fds;
    if (a->tell == TELL_REPLY) {
        r->answers[a->seq]++;
        r->last = *a;
    }
    for (unsigned i = 0; a->tell == TELL_ENDED && i < RIG_IDS; i++)
        r->ended[i] += strcmp(a->id, rig_id(i)) == 0;
    r->n_ended += a->tell == TELL_ENDED;
}

void front_answer(struct server *s, const struct ticket *t, struct order_answer *a, int fd)
{
    struct order_answer plain = {0};

    if (!ticket_valid(s, t))
        return;
    a = a ? a : &plain;
    a->tell = TELL_REPLY;
    a->seq = t->seq;
    front_tell(s, a, &fd, fd >= 0);
}

void front_answer_error(struct server *s, const struct ticket *t, int r, const struct sg_error *e)
{
    struct order_answer a = {.code = r, .error_kind = (int32_t)e->kind};

    front_answer(s, t, &a, -1);
}

static bool rig_worked; /* in the loop's idle time */

static void rig_idle(struct loop *l)
{
    rig_worked = tenant_pools_idle(CONTAINER_OF(l, struct server, loop));
}

static void rig_open(struct rig *r, unsigned pool)
{
    *r = (struct rig){.s = xcalloc(1, sizeof(*r->s))};
    memset(&fake, 0, sizeof(fake));
    rig_saves_wait = false;
    settings_init(&r->s->settings);
    snprintf(r->s->settings.warm_kernels, sizeof(r->s->settings.warm_kernels), "none");
    r->s->settings.pool_min = 0;
    r->s->settings.pool_max = pool;
    r->s->settings.log_level = LEVEL_MAX_;
    log_set(&r->s->settings);
    r->s->provider = &fake_provider;
    r->s->budget.limit = 1ull << 40;
    r->s->state.maps_ids = true;
    loop_init(&r->s->loop, 1);
    r->s->loop.idle = rig_idle;
    r->s->front.turn = 1;
    rig_here = r;
}

/* Lets everything happen that can happen now. */
static void rig_run(struct rig *r)
{
    struct loop *l = &r->s->loop;
    bool more = true;

    for (int i = 0; i < 64 && more; i++) {
        struct pollfd p = {.fd = l->epoll_fd, .events = POLLIN};

        rig_worked = false;
        l->want_idle = true;
        more = poll(&p, 1, 0) > 0 || (!rig_saves_wait && (rig_saves || !list_empty(&rig_workers)));
        loop_turn(l);
        if (!rig_saves_wait) {
            rig_saved(true);
            rig_worker_ends(true);
        }
        more = more || rig_worked || (l->n_timers > 0 && l->heap[1]->at_ns <= rig_now);
        more = more || poll(&p, 1, 0) > 0;
    }
}

static void rig_pass(struct rig *r, uint64_t ms)
{
    rig_now += ms * 1000000;
    rig_run(r);
}

/* Gives an order of a front; returns its number. */
static uint64_t rig_order(struct rig *r, uint32_t op, unsigned sandbox, struct order o)
{
    int fds[ORDER_FDS_MAX] = {memfd_create("note", MFD_CLOEXEC | MFD_ALLOW_SEALING), -1};

    o.magic = ORDER_MAGIC;
    o.op = op;
    o.seq = ++r->seq;
    snprintf(o.id, sizeof(o.id), "%s", rig_id(sandbox));
    snprintf(o.tenant, sizeof(o.tenant), "tenant00000000000000");
    r->created[sandbox] += op == ORDER_CREATE;
    orders_take(r->s, &o, fds);
    close_p(&fds[0]);
    return r->seq;
}

/* The front ends, and another comes. */
static void rig_front_dies(struct rig *r)
{
    r->s->front.turn++;
    sandboxes_front_gone(r->s);
    sandboxes_introduce(r->s);
}

/* Ends everything, as the server's end does. */
static void rig_close(struct rig *r)
{
    fake.no_end = false;
    for (int i = 0; i < 10 && !list_empty(&r->s->teardowns); i++)
        rig_pass(r, 10000);
    r->s->closing = true;
    sandboxes_close(r->s);
    checkpoints_close(r->s);
    tenant_pools_close(r->s);
    struct snapshot *l;
    while ((l = LIST_FIRST(struct snapshot, &r->s->snapshots, link))) {
        l->users = 1;
        snapshot_release(l);
    }
    budget_done(&r->s->budget);
    loop_done(&r->s->loop);
    free(r->s);
}
