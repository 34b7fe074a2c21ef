#include "warden/sandboxes/diff.h"

#include <string.h>

#include "warden/layers/attach.h"
#include "warden/layers/template.h"
#include "warden/layers/world.h"
#include "warden/processes/files_worker.h"
#include "warden/providers/provider.h"
#include "warden/sandboxes/snapshot.h"
#include "warden/server.h"

#define WORKERS_MAX 16 /* while so many files workers run, whatever they do, no diff begins */

struct diff {
    struct server *server;
    struct ticket ticket;
    struct snapshot *of, *against; /* or NULL */
};

static void on_done(void *arg, const struct files_answer *a)
{
    struct diff *d = arg;
    struct sg_error e = {0};

    if (a->code == 0) {
        front_answer(d->server, &d->ticket, NULL, -1);
    } else {
        err_set(&e, (enum sg_error_kind)a->kind, a->code, "%s", a->message);
        front_answer_error(d->server, &d->ticket, a->code, &e);
    }
    snapshot_release(d->of);
    snapshot_release(d->against);
    free(d);
}

/* The lowest layers; only needed until the worker has its own mounts of them. */
struct base {
    struct template template;
    int world; /* -1: none */
};

static void base_close(struct base *b)
{
    template_close(&b->template);
    attach_let_go(b->world);
    close_p(&b->world);
}

static int add_base(struct files_order *o, const struct base *b, bool upper)
{
    int r = b->world >= 0 ? files_order_add(o, b->world, 0, ".", upper) : 0;

    return r < 0 ? r
                 : files_order_add(o, b->world >= 0 ? b->template.fixtures : b->template.dir, 0,
                                   ".", upper);
}

static int add_snapshot(struct files_order *o, const struct snapshot *l, bool upper)
{
    const char *name;
    int tree = l ? snapshot_tree(l, &name) : -1;

    return tree < 0 ? 0 : files_order_add(o, tree, 0, name, upper);
}

static int fill(struct files_order *o, const struct base *b, const struct instance *i,
                const struct snapshot *of, const struct snapshot *against)
{
    struct layer_stack_view view = {0};
    int r = add_base(o, b, false);

    if (r == 0)
        r = add_snapshot(o, of, false);
    if (r == 0 && i) {
        OPS(i)->files->layers(i, &view);
        r = files_order_add_view(o, &view);
    }
    if (r == 0)
        r = add_base(o, b, true);
    return r < 0 ? r : add_snapshot(o, against, true);
}

static bool same_world(const struct world_source *a, const struct world_source *b)
{
    return a && b ? strcmp(a->id, b->id) == 0 : !a && !b;
}

int diff_begin(struct server *s, const struct instance *i, struct snapshot *of,
               struct snapshot *against, int list, const struct ticket *t, struct sg_error *e)
{
    AUTO(free_p) struct files_order *o = xcalloc(1, sizeof(*o));
    const struct world_source *source = snapshot_world(of);
    AUTO(base_close) struct base base = {.template = TEMPLATE_NONE, .world = -1};
    struct diff *d;
    int r;

    if (!s->provider->files)
        return err_set(e, SG_ERR_UNSUPPORTED, -EOPNOTSUPP, "this server cannot compare files");
    if (against && !same_world(source, snapshot_world(against)))
        return err_set(e, SG_ERR_INVALID, -EXDEV, "the two stand on different templates");
    if (s->files.n - s->files.builders >= WORKERS_MAX)
        return err_set(e, SG_ERR_LIMIT, -EAGAIN, "too many files are worked on: try again");
    r = template_open_made(&base.template, e);
    if (r == 0 && source)
        r = world_mount(source->dir, &base.world, e);
    if (r < 0)
        return r;
    files_order_init(o, FILES_DIFF);
    o->list = list;
    if (fill(o, &base, i, of, against) < 0)
        return err_set(e, SG_ERR_LIMIT, -E2BIG, "the files have too many layers to compare them");
    d = NEW(struct diff, .server = s, .ticket = *t, .of = of ? snapshot_use(of) : NULL,
            .against = against ? snapshot_use(against) : NULL);
    if (files_worker_start(s, o, on_done, d, e))
        return 0;
    snapshot_release(d->of);
    snapshot_release(d->against);
    free(d);
    return e->code;
}
