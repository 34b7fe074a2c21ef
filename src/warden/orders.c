#include "warden/orders.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/fd.h"
#include "wire/text_fd.h"
#include "lib/log/log.h"
#include "wire/process_figures.h"
#include "warden/descriptors.h"
#include "warden/processes/guard_process.h"
#include "warden/processes/world_builder.h"
#include "warden/sandboxes/diff.h"
#include "warden/sandboxes/sandbox.h"
#include "warden/sandboxes/snapshot.h"
#include "warden/sandboxes/snapshot_copy.h"
#include "warden/sandboxes/checkpoint.h"
#include "warden/sandboxes/sandbox_volumes.h"
#include "warden/sandboxes/volume.h"
#include "warden/processes/notify.h"
#include "warden/server.h"
#include "warden/sandboxes/tenant_pool.h"
#include "warden/sandboxes/zygotes.h"
#include "warden/processes/workers.h"

/* ---- checking the fields of orders ----------------------------------------------------------- */

static int check_memfd(int fd, size_t max, const char *what, struct sg_error *e)
{
    int r = fd_check_memfd(fd, max);

    if (fd < 0) /* the front always sends one: here the kernel had no number left for it */
        return err_set(e, SG_ERR_LIMIT, -EMFILE,
                       "the %s did not arrive: the server has no descriptor left", what);
    if (r == -EBADF)
        return err_set(e, SG_ERR_INVALID, r, "the order came without a %s", what);
    if (r < 0)
        return err_set(e, SG_ERR_INVALID, r, "the sandbox's %s is over %zu bytes", what, max);
    return 0;
}

/* The warden keeps the note, and never reads it. */
static int check_note(int fd, struct sg_error *e)
{
    return check_memfd(fd, ORDER_NOTE_MAX, "description", e);
}

/* Reads the policy's text; the descriptor is not kept. Without ORDER_NETWORK there is no policy. */
static int read_policy(const struct order *o, int fd, struct policy_text *ret, struct sg_error *e)
{
    struct policy_text t = {0};
    int r;

    if (!(o->flags & ORDER_NETWORK)) {
        *ret = t;
        return 0;
    }
    r = check_memfd(fd, GUARD_DOCUMENT_MAX, "network policy", e);
    if (r < 0)
        return r;
    r = lseek(fd, 0, SEEK_SET) < 0 ? -errno : fd_read_all(fd, GUARD_DOCUMENT_MAX, &t.text, &t.len);
    if (r < 0)
        return err_set(e, SG_ERR_INVALID, r, "read the sandbox's network policy: %s", strerror(-r));
    *ret = t;
    return 0;
}

static int check_snapshot(struct server *s, const char *name, struct snapshot **ret,
                          struct sg_error *e)
{
    struct snapshot *l = NULL;

    if (name[0] && !id_valid(name))
        return err_set(e, SG_ERR_INVALID, -EINVAL, "a snapshot's name is 20 letters and digits");
    if (name[0]) {
        l = snapshot_find(s, name);
        if (!l)
            return err_set(e, SG_ERR_NOT_FOUND, -ENOENT, "there is no snapshot '%s'", name);
    }
    *ret = l;
    return 0;
}

/* Finds what the new sandbox is made from: the checkpoint of that name, or else the snapshot. */
static int check_source(struct server *s, const struct order *o, struct checkpoint **ret_checkpoint,
                        struct snapshot **ret_snapshot, struct sg_error *e)
{
    struct checkpoint *m = o->snapshot[0] ? checkpoint_find(s, o->snapshot) : NULL;

    if (m && strcmp(m->tenant, o->tenant) != 0)
        return err_set(e, SG_ERR_NOT_FOUND, -ENOENT, "there is no snapshot '%s'", o->snapshot);
    /* Without ORDER_STATE only the files are wanted: the snapshot has them on disk. */
    if (m && !(o->flags & ORDER_STATE) && snapshot_find(s, o->snapshot))
        m = NULL;
    *ret_checkpoint = m;
    if (!m)
        return check_snapshot(s, o->snapshot, ret_snapshot, e);
    *ret_snapshot = m->snapshot;
    return 0;
}

static int order_create(struct server *s, const struct ticket *t, struct order *o, int *fds,
                        struct sg_error *e)
{
    struct policy_text policy = {0};
    struct checkpoint *checkpoint = NULL;
    struct snapshot *snapshot = NULL;
    struct sandbox_volumes volumes = {0};
    int r = check_note(fds[0], e);

    if (r == 0 && !id_valid(o->tenant))
        r = err_set(e, SG_ERR_INVALID, -EINVAL, "a tenant's name is 20 letters and digits");
    if (r == 0)
        r = tenant_pools_complete_limits(s, &o->limits, e);
    if (r == 0)
        r = check_source(s, o, &checkpoint, &snapshot, e);
    if (r == 0 && sandbox_find(s, o->id))
        r = err_set(e, SG_ERR_INVALID, -EEXIST, "there is a sandbox '%s' already", o->id);
    if (r == 0)
        r = sandbox_volumes_open(s, o, &volumes, e);
    if (r == 0)
        r = read_policy(o, fds[1], &policy, e);
    if (r == 0)
        sandbox_create(s, t, o, snapshot, checkpoint, steal_fd(&fds[0]), &policy, &volumes);
    else
        sandbox_volumes_done(&volumes);
    return r;
}

static int order_policy(struct sandbox *g, const struct ticket *t, const struct order *o, int fd,
                        struct sg_error *e)
{
    struct policy_text policy;
    int r = read_policy(o, fd, &policy, e);

    if (r == 0)
        sandbox_policy(g, t, &policy);
    return r;
}

/* The name must be new, among checkpoints and among snapshots. */
static int order_checkpoint(struct server *s, struct sandbox *g, const struct ticket *t,
                            struct order *o, int *fds, struct sg_error *e)
{
    int r = check_note(fds[0], e);

    if (r == 0 && !id_valid(o->snapshot))
        r = err_set(e, SG_ERR_INVALID, -EINVAL, "a checkpoint's name is 20 letters and digits");
    if (r == 0 && o->n_kernels > ORDER_KERNELS_MAX)
        r = err_set(e, SG_ERR_INVALID, -E2BIG, "a sandbox has at most %d kernels",
                    ORDER_KERNELS_MAX);
    if (r == 0 && (checkpoint_find(s, o->snapshot) || snapshot_find(s, o->snapshot)))
        r = err_set(e, SG_ERR_INVALID, -EEXIST, "there is a checkpoint '%s' already", o->snapshot);
    if (r == 0)
        sandbox_checkpoint(g, t, o, steal_fd(&fds[0]));
    return r;
}

/* The checkpoint must be one of the tenant that has the sandbox. */
static int order_rewind(struct server *s, struct sandbox *g, const struct ticket *t,
                        const struct order *o, struct sg_error *e)
{
    struct checkpoint *m = id_valid(o->snapshot) ? checkpoint_find(s, o->snapshot) : NULL;

    if (!m || strcmp(m->tenant, sandbox_tenant(g)) != 0)
        return err_set(e, SG_ERR_NOT_FOUND, -ENOENT, "there is no checkpoint '%s'", o->snapshot);
    sandbox_back_to(g, t, o, m);
    return 0;
}

static int order_sandbox(struct server *s, const struct ticket *t, struct order *o, int *fds,
                         struct sg_error *e)
{
    struct sandbox *g = sandbox_find(s, o->id);
    int r = 0;

    if (!g)
        return err_set(e, SG_ERR_NOT_FOUND, -ENOENT, "there is no sandbox '%s'", o->id);
    if (sandbox_is_ending(g) && o->op != ORDER_KILL && o->op != ORDER_STATS)
        return err_set(e, SG_ERR_GONE, -ENOENT, "the sandbox is ending");
    if (o->op == ORDER_NOTE)
        r = check_note(fds[0], e);
    if (o->op == ORDER_SNAPSHOT && !id_valid(o->snapshot))
        r = err_set(e, SG_ERR_INVALID, -EINVAL, "a snapshot's name is 20 letters and digits");
    if (r < 0)
        return r;
    if (o->op == ORDER_POLICY)
        return order_policy(g, t, o, fds[0], e);
    if (o->op == ORDER_CHECKPOINT)
        return order_checkpoint(s, g, t, o, fds, e);
    if (o->op == ORDER_REWIND)
        return order_rewind(s, g, t, o, e);
    if (o->op == ORDER_NOTE)
        sandbox_note(g, t, steal_fd(&fds[0]));
    else if (o->op == ORDER_DEADLINE)
        sandbox_deadline(g, t, o->deadline_ns, (enum order_expiry)o->on_expiry);
    else if (o->op == ORDER_KILL)
        sandbox_kill(g, t);
    else if (o->op == ORDER_STATS)
        sandbox_stats(g, t);
    else
        sandbox_order(g, t, o);
    return 0;
}

static int order_save(struct server *s, const struct ticket *t, const struct order *o,
                      struct sg_error *e)
{
    struct checkpoint *m = o->snapshot[0] ? checkpoint_find(s, o->snapshot) : NULL;

    if (!m)
        return err_set(e, SG_ERR_NOT_FOUND, -ENOENT, "there is no checkpoint '%s'", o->snapshot);
    checkpoint_save(m, t);
    return 0;
}

static int order_forget(struct server *s, const struct ticket *t, struct order *o,
                        struct sg_error *e)
{
    struct checkpoint *m = o->snapshot[0] ? checkpoint_find(s, o->snapshot) : NULL;
    struct snapshot *l = NULL;
    int r = o->snapshot[0] ? check_snapshot(s, o->snapshot, &l, e)
                           : err_set(e, SG_ERR_INVALID, -EINVAL, "the order names no snapshot");

    if (r < 0 && !m)
        return r;
    if (m)
        checkpoint_forget(m);
    if (l)
        snapshot_forget(l);
    front_answer(s, t, NULL, -1);
    return 0;
}

static int order_copy(struct server *s, const struct ticket *t, const struct order *o,
                      struct sg_error *e)
{
    struct snapshot *of = NULL;
    int r = !o->against[0] || !id_valid(o->snapshot)
                ? err_invalid(e, "a snapshot's name is 20 letters and digits")
                : check_snapshot(s, o->against, &of, e);

    if (r == 0 && (checkpoint_find(s, o->snapshot) || snapshot_find(s, o->snapshot)))
        r = err_set(e, SG_ERR_INVALID, -EEXIST, "there is a snapshot '%s' already", o->snapshot);
    return r < 0 ? r : snapshot_copy_begin(s, of, o->snapshot, o->limits.disk_bytes, t, e);
}

static int order_diff(struct server *s, const struct ticket *t, const struct order *o, int list,
                      struct sg_error *e)
{
    struct sandbox *g = o->id[0] ? sandbox_find(s, o->id) : NULL;
    struct snapshot *of = NULL, *against = NULL;
    int r = fd_check_memfd(list, FILES_DIFF_MAX);

    if (r < 0)
        return err_set(e, SG_ERR_INVALID, r, "the order came without a list");
    if (o->id[0] ? !g || sandbox_is_ending(g) : !o->snapshot[0])
        return err_set(e, SG_ERR_NOT_FOUND, -ENOENT, "there is no sandbox '%s'", o->id);
    r = g ? 0 : check_snapshot(s, o->snapshot, &of, e);
    if (r == 0)
        r = check_snapshot(s, o->against, &against, e);
    if (r < 0)
        return r;
    return g ? sandbox_diff(g, against, list, t, e) : diff_begin(s, NULL, of, against, list, t, e);
}

static int order_volume(struct server *s, const struct ticket *t, const struct order *o,
                        struct sg_error *e)
{
    const char *id = o->volumes[0].id;
    AUTO(close_p) int fd = -1;
    int r;

    if (o->n_volumes != 1)
        return err_invalid(e, "the order names no volume");
    if (o->op == ORDER_VOLUME_MAKE)
        r = volume_make(s, o->tenant, id, e);
    else if (o->op == ORDER_VOLUME_REMOVE)
        r = volume_remove(s, o->tenant, id, e);
    else
        r = volume_connect(s, o->tenant, id, &fd, e);
    if (r == 0)
        front_answer(s, t, NULL, fd);
    return r;
}

static int order_builder(struct server *s, const struct ticket *t, struct sg_error *e)
{
    AUTO(close_p) int fd = -1;
    int r = builder_start(s, &fd, e);

    if (r == 0)
        front_answer(s, t, NULL, fd);
    return r;
}

/* ---- figures --------------------------------------------------------------------------------- */

static int order_figures(struct server *s, const struct ticket *t, struct sg_error *e)
{
    struct order_figures f = {.made = s->made,
                              .pooled = s->pooled,
                              .ended = s->ended,
                              .memory_limit = s->budget.limit,
                              .memory_reserved = s->budget.reserved,
                              .memory_used = s->budget.used,
                              .memory_available = s->pressure.available,
                              .memory_pressure = s->pressure.state,
                              .pools_let_go = s->pressure.pools,
                              .kernels_let_go = s->pressure.kernels,
                              .creates_refused = s->budget.refused};
    AUTO(close_p) int fd = -1;

    process_figures(&f.warden);
    memcpy(f.faults, s->faults, sizeof(f.faults));
    LIST_EACH(const struct tenant_pool, w, &s->tenant_pools, link) {
        f.pool += w->n_ready;
        f.zygotes += zygotes_count(w);
    }
    sandboxes_count(s, &f);
    fd = text_memfd((const char *)&f, sizeof(f), e);
    if (fd < 0)
        return fd;
    front_answer(s, t, NULL, fd);
    return 0;
}

static int order_readiness(struct server *s, const struct ticket *t, struct sg_error *e)
{
    int r = readiness_check(s, e);

    if (r == 0)
        front_answer(s, t, NULL, -1);
    return r;
}

/* ---- news of the front about itself ---------------------------------------------------------- */

/* False: the order is about something else. */
static bool order_about_itself(struct server *s, const struct order *o)
{
    if (o->op == ORDER_READY)
        state_note_used(&s->state);
    if (o->op == ORDER_READY && child_program_ready(&s->front))
        notify_tell("READY=1");
    if (o->op == ORDER_FAILED)
        child_program_failing(&s->front, o->message);
    return o->op == ORDER_READY || o->op == ORDER_FAILED || o->op == ORDER_BEAT;
}

/* ---- dispatch -------------------------------------------------------------------------------- */

/* Whether the order makes something that keeps descriptors open for long. */
static bool is_lasting(enum order_op op)
{
    return op == ORDER_CREATE || op == ORDER_RESUME || op == ORDER_VOLUME_OPEN ||
           op == ORDER_WORLD_BUILDER || op == ORDER_CHECKPOINT || op == ORDER_REWIND;
}

static int carry_out(struct server *s, const struct ticket *t, struct order *o, int *fds,
                     struct sg_error *e)
{
    int r = is_lasting((enum order_op)o->op) ? descriptors_admit(s, e) : 0;

    if (r < 0)
        return r;
    if (o->op == ORDER_FORGET)
        return order_forget(s, t, o, e);
    if (o->op == ORDER_SAVE)
        return order_save(s, t, o, e);
    if (o->op == ORDER_VOLUME_MAKE || o->op == ORDER_VOLUME_REMOVE || o->op == ORDER_VOLUME_OPEN)
        return order_volume(s, t, o, e);
    if (o->op == ORDER_WORLD_BUILDER)
        return order_builder(s, t, e);
    if (o->op == ORDER_COPY)
        return order_copy(s, t, o, e);
    if (o->op == ORDER_DIFF)
        return order_diff(s, t, o, fds[0], e);
    if (o->op == ORDER_FIGURES)
        return order_figures(s, t, e);
    if (o->op == ORDER_READINESS)
        return order_readiness(s, t, e);
    if (!id_valid(o->id))
        return err_set(e, SG_ERR_INVALID, -EINVAL, "a sandbox's id is 20 letters and digits");
    return o->op == ORDER_CREATE ? order_create(s, t, o, fds, e) : order_sandbox(s, t, o, fds, e);
}

int orders_take(struct server *s, struct order *o, int fds[ORDER_FDS_MAX])
{
    struct ticket t = {.seq = o->seq, .turn = s->front.turn};
    struct sg_error e = {0};
    int r;

    o->id[ID_LEN] = o->tenant[ORDER_TENANT_LEN] = o->snapshot[ID_LEN] = '\0';
    o->against[ID_LEN] = '\0';
    o->message[sizeof(o->message) - 1] = '\0';
    for (size_t i = 0; i < ORDER_VOLUMES_MAX; i++)
        o->volumes[i].id[ID_LEN] = o->volumes[i].target[ORDER_TARGET_MAX - 1] = '\0';
    if (o->magic != ORDER_MAGIC || o->op == 0 || o->op >= ORDER_MAX_ ||
        o->on_expiry >= EXPIRY_MAX_ ||
        o->flags & ~(ORDER_FILES_ONLY | ORDER_DURABLE | ORDER_KERNEL | ORDER_NETWORK | ORDER_KEEP |
                     ORDER_LAST | ORDER_STATE | ORDER_SOON | ORDER_WHOLE))
        return -EPROTO;
    if (order_about_itself(s, o))
        return 0;
    r = carry_out(s, &t, o, fds, &e);
    if (r < 0)
        front_answer_error(s, &t, r, &e);
    return 0;
}

/* ---- greeting a new front -------------------------------------------------------------------- */

static void tell_tls(struct server *s)
{
    struct order_answer a = {.tell = TELL_TLS};
    AUTO(close_p) int cert = -1, key = -1;
    struct sg_error e;

    if (!s->texts.cert.text)
        return;
    cert = text_memfd(s->texts.cert.text, s->texts.cert.len, &e);
    key = text_memfd(s->texts.key.text, s->texts.key.len, &e);
    if (cert >= 0 && key >= 0)
        front_tell(s, &a, (int[]){cert, key}, 2);
    else
        log_line(LEVEL_ERROR, "%s", e.message);
}

void orders_tell_settings(struct server *s)
{
    struct order_answer a = {.tell = TELL_SETTINGS};
    AUTO(close_p) int fd = -1, patterns = -1;
    struct sg_error e;

    fd = text_memfd(s->told->front.text, s->told->front.len, &e);
    patterns = text_memfd(s->texts.patterns.text, s->texts.patterns.len, &e);
    if (fd >= 0 && patterns >= 0)
        front_tell(s, &a, (int[]){fd, patterns}, 2);
    else
        log_line(LEVEL_ERROR, "%s", e.message);
    tell_tls(s);
}

void orders_greet(struct server *s)
{
    struct order_answer ready = {.tell = TELL_READY};

    for (size_t i = 0; i < s->n_listeners; i++) {
        struct order_answer a = {.tell = TELL_LISTENER,
                                 .flags = i >= s->n_plain_listeners ? TELL_METRICS_HERE
                                          : s->texts.cert.text      ? TELL_TLS_HERE
                                                                    : 0};
        front_tell(s, &a, &s->listeners[i], 1);
    }
    orders_tell_settings(s);
    guard_meet_front(s);
    workers_meet_front(s);
    sandboxes_introduce(s);
    checkpoints_introduce(s);
    if (s->front.turn > 1) {
        sandboxes_tell_ends(s);
        ready.flags |= TELL_AGAIN;
    }
    front_tell(s, &ready, NULL, 0);
}
