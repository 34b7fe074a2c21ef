#include "warden/sandboxes/unborn.h"

#include <string.h>

#include "lib/log/log.h"
#include "warden/providers/process/process.h"
#include "warden/sandboxes/grave.h"
#include "warden/sandboxes/layer.h"
#include "warden/sandboxes/moment.h"
#include "warden/server.h"
#include "warden/sandboxes/ward.h"

struct unborn {
    struct moment *moment;
    struct ward *ward;
    struct sg_limits limits;
    struct instance *instance; /* NULL: it has failed */
    bool rooted, may_copy, only;
    struct event_source line;
};

static void on_gone(void *arg, int r, const struct sg_error *e)
{
    (void)r, (void)e;
    ward_return(arg);
}

/* In a server that closes all sandboxes end with their ward. */
static void drop_instance(struct unborn *u)
{
    struct server *s = u->ward->server;

    reactor_unwatch(&s->reactor, &u->line);
    if (u->instance && !s->closing)
        grave_dig(u->ward, steal_ptr(&u->instance), on_gone, u->ward);
}

static void fail(struct unborn *u, const struct sg_error *e)
{
    log_line(LEVEL_WARN, "a sandbox that is made ready: %s", e->message);
    drop_instance(u);
}

/* The first of the kernels; the guest asks for the others. */
static void copy(struct unborn *u)
{
    const struct moment *m = u->moment;
    struct sg_error e = {0};

    if (!u->instance || !u->rooted || !u->may_copy || m->n_kernels == 0 || m->ward != u->ward)
        return;
    instance_kernel_keep(u->instance);
    if (instance_kernel_copy(u->instance, m->mould, m->kernels[0], u->only, &e) < 0)
        fail(u, &e);
}

static void on_line(struct event_source *src, uint32_t events)
{
    struct unborn *u = CONTAINER_OF(src, struct unborn, line);
    struct sg_error e = {0};
    enum line_news news;
    int code = 0, r = instance_line_take(u->instance, &news, &code);

    (void)events;
    if (r == -EAGAIN)
        return;
    if (r == 0 && news == LINE_ROOT_DONE && code == 0 && !u->rooted) {
        u->rooted = true;
        instance_files_moved(u->instance, true);
        if (u->may_copy)
            copy(u);
        else if (instance_kernel_gather(u->instance, &e) < 0)
            fail(u, &e);
        return;
    }
    err_set(&e, SG_ERR_INTERNAL, -EIO, "its agent did not take over the files of another");
    fail(u, &e);
}

static int send_root(struct unborn *u, struct sg_error *e)
{
    const struct moment *m = u->moment;
    const int *layer = m->layer ? layer_dir(m->layer) : NULL;
    int root = -1, r = instance_files_take(u->instance, m->stack, layer, m->written, &root, e);

    return r < 0 ? r : instance_root_send(u->instance, root, true, e);
}

struct unborn *unborn_begin(struct moment *m, struct ward *w, const struct sg_limits *limits)
{
    struct instance *i = ward_take(w, limits);
    struct sg_error e = {0};
    struct unborn *u;

    if (!i)
        return NULL;
    u = xcalloc(1, sizeof *u);
    *u = (struct unborn){.moment = m,
                         .ward = w,
                         .limits = *limits,
                         .instance = i,
                         .line = {.fd = -1, .fn = on_line}};
    if (send_root(u, &e) < 0)
        fail(u, &e);
    else
        reactor_watch(&w->server->reactor, &u->line, instance_fd(i), EPOLLIN);
    return u;
}

void unborn_copy(struct unborn *u, bool only)
{
    u->may_copy = true;
    u->only = only;
    copy(u);
}

static void unborn_free(struct unborn *u)
{
    drop_instance(u);
    free(u);
}

struct instance *unborn_take(struct unborn *u, const struct ward *w, const struct sg_limits *limits,
                             bool *ret_rooted)
{
    struct instance *i = NULL;

    if (u->ward == w && memcmp(&u->limits, limits, sizeof *limits) == 0) {
        i = steal_ptr(&u->instance);
        *ret_rooted = u->rooted;
    }
    unborn_free(u);
    return i;
}

void unborn_drop(struct unborn *u)
{
    if (u)
        unborn_free(u);
}
