#include "warden/sandboxes/sandbox_volumes.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/log/log.h"
#include "warden/sandboxes/sandbox_impl.h"
#include "warden/sandboxes/volume.h"
#include "warden/server.h"

#define MOUNT_NS 5000000000ull

int sandbox_volumes_open(struct server *s, const struct order *o, struct sandbox_volumes *ret,
                         struct sg_error *e)
{
    struct sandbox_volumes v = {0};
    int r = 0;

    if (o->n_volumes > ORDER_VOLUMES_MAX)
        return err_set(e, SG_ERR_INVALID, -E2BIG, "a sandbox has at most %d volumes",
                       ORDER_VOLUMES_MAX);
    for (uint32_t i = 0; r == 0 && i < o->n_volumes; i++) {
        const struct order_volume *q = &o->volumes[i];

        if (q->target[0] != '/')
            r = err_invalid(e, "a volume's mount path is absolute");
        if (r == 0)
            r = volume_use(s, o->tenant, q->id, &v.v[i].volume, e);
        v.n += r == 0;
        v.v[i].readonly = q->readonly;
        memcpy(v.v[i].target, q->target, sizeof(q->target));
    }
    if (r < 0)
        sandbox_volumes_done(&v);
    else
        *ret = v;
    return r;
}

void sandbox_volumes_done(struct sandbox_volumes *v)
{
    for (uint32_t i = 0; i < v->n; i++)
        volume_release(v->v[i].volume);
    v->n = 0;
}

/* ---- mounting -------------------------------------------------------------------------------- */

static void on_late(struct loop_timer *timer)
{
    struct sandbox *g = CONTAINER_OF(timer, struct sandbox, timer);

    g->volumes.pending = 0;
    sandbox_happens(g, ON_MOUNTED, &(struct happening){.r = -ETIMEDOUT});
}

int sandbox_mount(struct sandbox *g, struct sg_error *e)
{
    struct sandbox_volumes *v = &g->volumes;
    int r = 0;

    v->code = 0;
    v->pending = 0;
    for (uint32_t i = 0; r == 0 && i < v->n; i++) {
        r = OPS(g->instance)
                ->mount(g->instance, volume_dir(v->v[i].volume), v->v[i].target, v->v[i].readonly,
                        e);
        v->pending += r == 0;
    }
    return r;
}

/* The agent answers in the order in which it was asked. */
void sandbox_mount_answered(struct sandbox *g, int code)
{
    struct sandbox_volumes *v = &g->volumes;

    if (v->pending == 0)
        return;
    if (code != 0 && v->code == 0) {
        v->code = code < 0 ? code : -EPROTO;
        memcpy(v->target, v->v[v->n - v->pending].target, sizeof(v->target));
    }
    if (--v->pending == 0)
        sandbox_happens(g, ON_MOUNTED, &(struct happening){.r = v->code});
}

/* In BOOTING: its processes have ended. Its files are what they were, so it is stored again. */
void sandbox_mount_lost(struct sandbox *g)
{
    g->volumes.pending = 0;
    sandbox_happens(g, ON_MOUNTED, &(struct happening){.r = -ESRCH});
}

/* What is in the way was made by programs inside, or by the template. */
int sandbox_not_mounted(const struct sandbox *g, int code, struct sg_error *e)
{
    if (code == -ELOOP || code == -EXDEV)
        return err_set(e, SG_ERR_INVALID, -EINVAL,
                       "the mount path '%s' leads through a symbolic link or another mount: name a "
                       "real directory",
                       g->volumes.target);
    if (code == -ENOTDIR || code == -EEXIST)
        return err_set(e, SG_ERR_INVALID, -EINVAL, "a part of the mount path '%s' is no directory",
                       g->volumes.target);
    return err_set(e, SG_ERR_GONE, -EBUSY, "the sandbox could not mount its volumes: %s",
                   strerror(-code));
}

/* In MOUNTING and BOOTING. */
void action_mount(struct sandbox *g, const struct happening *h UNUSED)
{
    struct sg_error e = {0};
    int r = sandbox_mount(g, &e);

    if (r < 0) {
        log_sandbox(LEVEL_WARN, FAULT_INFRASTRUCTURE, g->id, "%s", e.message);
        g->volumes.pending = 0;
        sandbox_happens(g, ON_MOUNTED, &(struct happening){.r = r});
        return;
    }
    g->timer.fn = on_late;
    loop_timer_set(&g->server->loop, &g->timer, clock_ns() + MOUNT_NS);
}

void action_mounted(struct sandbox *g, const struct happening *h)
{
    struct happening next = {.fd = -1};
    struct sg_error e = {0};

    loop_timer_cancel(&g->server->loop, &g->timer);
    next.r = h->r < 0 ? sandbox_not_mounted(g, h->r, &e) : sandbox_connect(g, &e);
    next.e = &e;
    next.fd = next.r;
    sandbox_happens(g, next.r < 0 ? ON_FAILED : ON_STARTED, &next);
}
