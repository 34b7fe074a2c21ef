#include "warden/sandboxes/squash.h"

#include <stdio.h>
#include <string.h>

#include "lib/log/log.h"
#include "warden/processes/files_worker.h"
#include "warden/sandboxes/sandbox_impl.h"
#include "warden/server.h"
#include "warden/layers/layer_stack.h"

#define SQUASH_AT 12

struct squash {
    struct server *server;
    struct layer *run[STACK_MAX]; /* the layers to merge, each in use */
    size_t n;
    char dir[LAYER_NAME];
};

static void squash_free(struct squash *q)
{
    for (size_t i = 0; i < q->n; i++)
        layer_release(q->run[i]);
    free(q);
}

/* Finds the longest run of a stack: *ret_at is its first layer, the result its length. */
static size_t find_run(const struct stack *s, size_t *ret_at)
{
    size_t best = 0;

    for (size_t at = 0, end; at < s->n; at = end) {
        for (end = at + 1; end < s->n && s->v[end]->users == s->v[at]->users &&
                           s->v[end]->scratch == s->v[at]->scratch;)
            end++;
        if (end - at > best) {
            best = end - at;
            *ret_at = at;
        }
    }
    return best;
}

/* The index of the run in a stack, or -1. */
static long run_in(const struct stack *s, const struct squash *q)
{
    for (size_t at = 0; s && at + q->n <= s->n; at++)
        if (memcmp(&s->v[at], q->run, q->n * sizeof(q->run[0])) == 0)
            return (long)at;
    return -1;
}

/* Copies a stack with `by` in place of the run; NULL: the stack does not have the run. */
static struct stack *replaced(const struct stack *s, const struct squash *q, struct layer *by)
{
    long at = run_in(s, q);
    struct stack *copy;
    size_t n = 0;

    if (at < 0)
        return NULL;
    copy = xcalloc(1, sizeof(*copy));
    for (size_t i = 0; i < s->n; i++) {
        if (i > (size_t)at && i < (size_t)at + q->n)
            continue;
        copy->v[n++] = layer_use(i == (size_t)at ? by : s->v[i]);
    }
    copy->n = n;
    return copy;
}

static void replace_everywhere(struct squash *q, struct layer *by)
{
    struct server *s = q->server;
    struct stack *copy;

    LIST_EACH(struct checkpoint, m, &s->checkpoints, link)
        if ((copy = replaced(m->stack, q, by))) {
            stack_free(m->stack);
            m->stack = copy;
        }
    MAP_EACH(struct sandbox, g, &s->sandboxes, by_id)
        if (g->instance && (copy = replaced(OPS(g->instance)->files->stack(g->instance), q, by)))
            OPS(g->instance)->files->swap(g->instance, copy);
}

static void on_merged(void *arg, const struct files_answer *a)
{
    struct squash *q = arg;
    struct server *s = q->server;

    s->squashing = false;
    if (a->code == 0) {
        struct layer *by = layer_new(q->run[0]->scratch, q->dir);

        replace_everywhere(q, by);
        layer_release(by);
    } else {
        log_line(LEVEL_DEBUG, "merging the layers of a sandbox failed and is tried again later: %s",
                 a->message);
    }
    squash_free(q);
}

static bool has_any(const struct stack *s, const struct squash *q)
{
    for (size_t i = 0; i < stack_depth(s); i++)
        for (size_t k = 0; k < q->n; k++)
            if (s->v[i] == q->run[k])
                return true;
    return false;
}

/* Adds the upper layers of all sandboxes that have a layer of the run. -E2BIG: too many. */
static int add_uppers(const struct squash *q, struct files_order *o)
{
    struct layer_stack_view view;
    int r = 0;

    MAP_EACH(struct sandbox, g, &q->server->sandboxes, by_id) {
        if (r < 0 || !g->instance || !has_any(OPS(g->instance)->files->stack(g->instance), q))
            continue;
        OPS(g->instance)->files->layers(g->instance, &view);
        r = files_order_add(o, view.v[view.n - 1].mount, view.v[view.n - 1].first_id,
                            view.v[view.n - 1].dir, true);
    }
    return r;
}

static void start(struct squash *q)
{
    AUTO(free_p) struct files_order *o = xcalloc(1, sizeof(*o));
    struct scratch *scratch = q->run[0]->scratch;
    struct sg_error e = {0};
    int r = 0;

    files_order_init(o, FILES_MERGE);
    snprintf(q->dir, sizeof(q->dir), "m%u", ++scratch->n_uppers);
    snprintf(o->request.name, sizeof(o->request.name), "%s", q->dir);
    snprintf(o->request.aside, sizeof(o->request.aside), "n%u", scratch->n_uppers);
    for (size_t i = 0; r == 0 && i < q->n; i++)
        r = files_order_add(o, scratch->mount, scratch->first_id, q->run[i]->dir, false);
    if (r == 0)
        r = add_uppers(q, o);
    q->server->squashing = r == 0 && files_worker_start(q->server, o, on_merged, q, &e);
    if (!q->server->squashing) {
        log_line(LEVEL_DEBUG, "the layers of a sandbox cannot be merged now: %s", e.message);
        squash_free(q);
    }
}

/* One squash at a time: it is not urgent. */
void squash_consider(struct server *s, struct sandbox *g)
{
    const struct stack *stack = g->instance ? OPS(g->instance)->files->stack(g->instance) : NULL;
    size_t at = 0, n;
    struct squash *q;

    if (s->squashing || s->closing || stack_depth(stack) < SQUASH_AT)
        return;
    n = find_run(stack, &at);
    if (n < 2)
        return;
    q = xcalloc(1, sizeof(*q));
    q->server = s;
    q->n = n;
    for (size_t i = 0; i < n; i++)
        q->run[i] = layer_use(stack->v[at + i]);
    start(q);
}
