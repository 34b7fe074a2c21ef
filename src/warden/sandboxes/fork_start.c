#include "warden/sandboxes/fork_start.h"

#include <string.h>

#include "lib/log/log.h"
#include "warden/providers/provider.h"
#include "warden/sandboxes/teardown.h"
#include "warden/sandboxes/snapshot.h"
#include "warden/sandboxes/checkpoint.h"
#include "warden/server.h"
#include "warden/sandboxes/tenant_pool.h"

struct fork_start {
    struct checkpoint *checkpoint;
    struct tenant_pool *tenant_pool;
    struct sg_limits limits;
    struct instance *instance; /* NULL: the fork start has failed */
    bool rooted, may_copy, only;
    struct loop_source line;
};

/* In a server that is closing, tenant_pools_close ends all sandboxes. */
static void drop_instance(struct fork_start *u)
{
    struct server *s = u->tenant_pool->server;

    loop_unwatch(&s->loop, &u->line);
    if (u->instance && !s->closing)
        teardown_begin(u->tenant_pool, steal_ptr(&u->instance), NULL, NULL);
}

static void fail(struct fork_start *u, const struct sg_error *e)
{
    log_line(LEVEL_WARN, "cannot prepare a sandbox for a fork: %s", e->message);
    drop_instance(u);
}

/* Asks for the first of the kernels; the sandbox asks for the others when it takes this over. */
static void copy(struct fork_start *u)
{
    const struct checkpoint *m = u->checkpoint;
    struct sg_error e = {0};

    if (!u->instance || !u->rooted || !u->may_copy || m->n_kernels == 0 ||
        m->tenant_pool != u->tenant_pool)
        return;
    OPS(u->instance)->kernels->keep(u->instance);
    if (OPS(u->instance)
            ->kernels->copy(u->instance, m->frozen_kernels, m->kernels[0], u->only, &e) < 0)
        fail(u, &e);
}

static void on_line(struct loop_source *src, uint32_t events UNUSED)
{
    struct fork_start *u = CONTAINER_OF(src, struct fork_start, line);
    struct sg_error e = {0};
    enum line_news news;
    int code = 0, r = OPS(u->instance)->line_take(u->instance, &news, &code);

    if (r == -EAGAIN)
        return;
    if (r == 0 && news == LINE_ROOT_DONE && code == 0 && !u->rooted) {
        u->rooted = true;
        OPS(u->instance)->files->moved(u->instance, true);
        if (u->may_copy)
            copy(u);
        else if (OPS(u->instance)->kernels->gather(u->instance, &e) < 0)
            fail(u, &e);
        return;
    }
    err_set(&e, SG_ERR_INTERNAL, -EIO,
            "the agent did not take over the files of the forked sandbox");
    fail(u, &e);
}

static int send_root(struct fork_start *u, struct sg_error *e)
{
    const struct checkpoint *m = u->checkpoint;
    const int *snapshot = m->snapshot ? snapshot_dir(m->snapshot) : NULL;
    const struct provider_files *files = OPS(u->instance)->files;
    int root = -1, r = files->take(u->instance, m->stack, e);

    if (r == 0)
        r = files->root(u->instance, snapshot, &root, e);
    return r < 0 ? r : files->root_send(u->instance, root, true, e);
}

struct fork_start *fork_start_begin(struct checkpoint *m, struct tenant_pool *w,
                                    const struct sg_limits *limits)
{
    /* Sandboxes in the pool have the host's /usr. */
    struct instance *i = snapshot_world(m->snapshot) ? NULL : tenant_pool_take(w, limits);
    struct sg_error e = {0};
    struct fork_start *u;

    if (!i)
        return NULL;
    u = NEW(struct fork_start, .checkpoint = m, .tenant_pool = w, .limits = *limits, .instance = i,
            .line = {.fd = -1, .fn = on_line});
    if (send_root(u, &e) < 0)
        fail(u, &e);
    else
        loop_watch(&w->server->loop, &u->line, OPS(i)->line(i), EPOLLIN);
    return u;
}

void fork_start_copy(struct fork_start *u, bool only)
{
    u->may_copy = true;
    u->only = only;
    copy(u);
}

static void fork_start_free(struct fork_start *u)
{
    drop_instance(u);
    free(u);
}

struct instance *fork_start_take(struct fork_start *u, const struct tenant_pool *w,
                                 const struct sg_limits *limits, bool *ret_rooted)
{
    struct instance *i = NULL;

    if (u->tenant_pool == w && memcmp(&u->limits, limits, sizeof(*limits)) == 0) {
        i = steal_ptr(&u->instance);
        *ret_rooted = u->rooted;
    }
    fork_start_free(u);
    return i;
}

void fork_start_drop(struct fork_start *u)
{
    if (u)
        fork_start_free(u);
}
