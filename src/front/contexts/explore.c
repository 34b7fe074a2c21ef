/* Best of N: copies the sandbox of a context several times, so that different code can run in each
 * copy (front/v1/explore.c runs it) and one copy can be adopted (adopt.c).
 *
 *   the row is touched --> a checkpoint of its sandbox --> N sandboxes from it --> answered
 *
 * A candidate names the context as the context's own sandbox does, so that it has the same rules
 * and its usage is counted there. But the row names another sandbox. For that reason the reaper
 * would end a candidate, and it does in a front that does not know the exploration. Otherwise a
 * candidate ends at its own deadline, which the warden keeps.
 *
 * If one candidate cannot be made, the others are ended: all or none. */
#include <string.h>

#include "front/contexts/impl.h"

struct exploring {
    struct front *front;
    struct store_tenant tenant;
    char context[ID_LEN + 1];
    uint64_t wait_ms, life_ms;
    void (*copy)(const struct sandbox_spec *from, struct sandbox_spec *ret);
    struct ctx_row row;
    struct sandbox *sandbox; /* held */
    struct exploration *x;
    size_t pending;
    int r; /* the first error */
    struct sg_error e;
    json_t *report;
    struct operation operation;
    explore_done done;
    void *arg;
};

struct making {
    struct exploring *g;
    size_t index;
};

/* ---- the table ------------------------------------------------------------------------------- */

static bool is_empty(const struct exploration *x)
{
    for (size_t i = 0; i < x->n; i++)
        if (x->sandboxes[i])
            return false;
    return true;
}

static void free_if_over(struct exploration *x)
{
    if (!x->kept || x->dropping || !is_empty(x))
        return;
    list_remove(&x->link);
    free(x);
}

static void drop(struct exploration *x, size_t i)
{
    struct sandbox *b = steal_ptr(&x->sandboxes[i]);

    /* Taken out of the list first, because sandbox_kill calls explorations_sandbox_ended. */
    if (b && b->state != SANDBOX_ENDED)
        sandbox_kill(b, NULL, NULL);
    sandbox_unref(b);
}

/* Ends all candidates. Callers that run something in a candidate are told of its end and may come
 * back here: `dropping` keeps x alive, though empty, until the loop is over. */
static void drop_all(struct exploration *x)
{
    bool nested = x->dropping;

    x->dropping = true;
    for (size_t i = 0; i < x->n; i++)
        drop(x, i);
    x->dropping = nested;
}

struct exploration *exploration_of(const struct sandbox *b)
{
    LIST_EACH(struct exploration, x, &b->front->contexts->explorations, link)
        for (size_t i = 0; i < x->n; i++)
            if (x->sandboxes[i] == b)
                return x;
    return NULL;
}

bool explorations_want(const struct sandbox *b)
{
    LIST_EACH(struct exploration, x, &b->front->contexts->explorations, link)
        if (!x->kept && strcmp(x->context, b->spec.context) == 0)
            return true;
    return exploration_of(b) != NULL;
}

void explorations_sandbox_ended(struct sandbox *b)
{
    struct exploration *x = exploration_of(b);

    if (!x)
        return;
    for (size_t i = 0; i < x->n; i++)
        if (x->sandboxes[i] == b)
            sandbox_unref(steal_ptr(&x->sandboxes[i]));
    free_if_over(x);
}

void explorations_end(struct front *f, const char *context)
{
    LIST_EACH(struct exploration, x, &f->contexts->explorations, link) {
        if (strcmp(x->context, context) != 0)
            continue;
        drop_all(x);
        free_if_over(x);
    }
}

void exploration_keep(struct exploration *x, uint64_t ms)
{
    if (ms == 0)
        drop_all(x);
    for (size_t i = 0; i < x->n; i++)
        if (x->sandboxes[i])
            sandbox_set_timeout(x->sandboxes[i], ms, false, NULL, NULL);
    x->kept = true;
    free_if_over(x);
}

/* ---- making candidates ----------------------------------------------------------------------- */

static void finish(struct exploring *g, const struct context_answer *a, struct exploration *x)
{
    if (a->elsewhere)
        g->operation.label = NULL;
    operation_end(&g->operation, g->front, g->sandbox, a->r, a->e, NULL);
    g->done(g->arg, a, x);
    if (g->sandbox)
        context_release(g->sandbox);
    json_decref(g->report);
    free(g);
}

static void fail(struct exploring *g, int r, const struct sg_error *e, const json_t *report)
{
    finish(g, &(struct context_answer){.r = r, .e = e, .report = report}, NULL);
}

static void all_answered(struct exploring *g)
{
    struct exploration *x = g->x;

    if (g->r < 0) {
        exploration_keep(x, 0);
        fail(g, g->r, &g->e, g->report);
        return;
    }
    finish(g, &(struct context_answer){.row = &g->row, .sandbox = g->sandbox, .report = g->report},
           x);
}

static void on_forked(void *arg, struct sandbox *b, int r, const struct sg_error *e,
                      const json_t *report)
{
    AUTO(free_p) struct making *m = arg;
    struct exploring *g = m->g;

    if (r == 0) {
        g->x->sandboxes[m->index] = sandbox_ref(b);
    } else if (g->r == 0) {
        g->r = r;
        g->e = *e;
    }
    /* All candidates have the same report, so the first one is kept; of errors, the first one
     * too. */
    if (!g->report && report)
        g->report = json_deep_copy(report);
    if (--g->pending == 0)
        all_answered(g);
}

static void make(struct exploring *g, struct checkpoint *c, size_t i)
{
    struct fork_ask ask = {.timeout_ms = g->life_ms, .last = i + 1 == g->x->n};
    struct making *m = NEW(struct making, .g = g, .index = i);
    struct sandbox_spec spec;

    g->copy(&g->sandbox->spec, &spec);
    snprintf(spec.context, sizeof(spec.context), "%s", g->context);
    spec.auto_pause = false; /* a candidate ends at its deadline */
    sandbox_create_from(g->front, &spec, c, &ask, on_forked, m);
}

static void on_checkpoint(void *arg, struct checkpoint *c, int r, const struct sg_error *e,
                          const json_t *report)
{
    struct exploring *g = arg;

    if (r < 0) {
        exploration_keep(g->x, 0);
        fail(g, r, e, report);
        return;
    }
    /* One more than there are, until all are ordered: one may fail at once, and must not finish the
     * exploration within this loop. */
    g->pending = g->x->n + 1;
    struct trace_ref before = operation_enter(&g->operation.trace);
    for (size_t i = 0; i < g->x->n; i++)
        make(g, c, i); /* the last one uses the checkpoint up */
    operation_leave(&before);
    if (--g->pending == 0)
        all_answered(g);
}

/* Checks that all candidates fit the tenant's limit, before the first is begun. */
static int check_room(const struct exploring *g, struct sg_error *e)
{
    uint32_t limit =
        g->tenant.max_sandboxes ? g->tenant.max_sandboxes : g->front->settings.tenant_sandboxes;
    size_t there = sandboxes_count(g->front, g->tenant.id);

    if (there + g->x->n <= limit)
        return 0;
    return err_set(e, SG_ERR_LIMIT, -EDQUOT,
                   "%zu more sandbox%s would be more than the tenant may have: the limit is %u, "
                   "and %zu run; explore with fewer codes, or end some first",
                   g->x->n, g->x->n == 1 ? "" : "es", limit, there);
}

static void on_ready(void *arg, struct sandbox *b, int r, const struct sg_error *e)
{
    struct exploring *g = arg;
    struct checkpoint_ask ask = {.kind = CHECKPOINT_FORK, .wait_ms = g->wait_ms};
    struct sg_error full;

    if (r == 0) {
        r = check_room(g, &full);
        e = &full;
    }
    if (r < 0) {
        on_checkpoint(g, NULL, r, e, NULL);
        return;
    }
    operation_sandbox(&g->operation, b);
    AUTO(operation_leave) struct trace_ref before UNUSED = operation_enter(&g->operation.trace);
    sandbox_checkpoint(b, &ask, on_checkpoint, g);
}

static void on_touched(void *arg, const struct context_answer *a)
{
    struct exploring *g = arg;
    struct sg_error e;

    if (a->r < 0 || a->elsewhere) {
        exploration_keep(g->x, 0);
        finish(g, a, NULL);
        return;
    }
    g->row = *a->row;
    struct sandbox *b = sandbox_get(g->front, g->row.tenant, g->row.sandbox_id);
    if (!b || strcmp(b->spec.context, g->row.id) != 0) {
        err_set(&e, SG_ERR_GONE, -ENOMSG,
                "the context has no sandbox now: run something on its path first");
        on_checkpoint(g, NULL, -ENOMSG, &e, NULL);
        return;
    }
    context_hold(b);
    g->sandbox = b;
    g->x->auto_pause = b->spec.auto_pause;
    context_when_ready(b, on_ready, g);
}

void context_explore(struct front *f, const struct explore_ask *ask, explore_done done, void *arg)
{
    struct exploration *x = NEW(struct exploration, .front = f, .n = ask->n);
    struct exploring *g =
        NEW(struct exploring, .front = f, .tenant = *ask->tenant, .wait_ms = ask->wait_ms,
            .life_ms = ask->life_ms, .copy = ask->copy, .x = x, .done = done, .arg = arg);

    snprintf(g->context, sizeof(g->context), "%s", ask->context);
    id_random(x->id);
    memcpy(x->tenant, ask->tenant->id, sizeof(x->tenant));
    memcpy(x->context, g->context, sizeof(x->context));
    list_push(&f->contexts->explorations, &x->link);
    operation_begin(&g->operation, OPERATION_CONTEXT_EXPLORE);
    span_number(g->operation.span, KEY_COUNT, (int64_t)ask->n);
    context_touch(f, ask->tenant->id, ask->context, 0, on_touched, g);
}
