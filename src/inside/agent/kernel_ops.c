/* Requests about contexts: create, list, remove, restart, interrupt, warm. */
#include <string.h>

#include "inside/agent/kernels.h"
#include "inside/agent/path.h"

#define CONTEXT_MAX (KERNEL_ID_LEN + KERNEL_LANGUAGE_MAX + OPS_PATH_MAX + 64)

/* NULL: *q->e says why. */
static struct context *request_context(struct request *q)
{
    const char *id = wire_get_str(q->r, KERNEL_ID_LEN);

    return request_done(q) < 0 ? NULL : context_find(q->agent, id, q->e);
}

static int request_language(struct request *q, struct kernel_language *ret)
{
    const char *name = wire_get_str(q->r, KERNEL_NAME_MAX);

    if (q->r->bad)
        return err_set(q->e, SG_ERR_INVALID, -EINVAL,
                       "the request has no valid name of a language");
    return kernel_language_find(name, ret, q->e);
}

int kernel_create(struct request *q)
{
    struct kernel_language language;
    int res = request_language(q, &language);

    if (res == 0)
        res = request_path(q->r, agent_user_find("user"), q->path, q->e);
    if (res == 0)
        res = request_done(q);
    if (res < 0)
        return res;
    struct context *c = context_new(q->agent, &language, q->path, false, q->e);
    if (!c)
        return q->e->code;
    context_put(c, &q->answer);
    return 0;
}

int kernel_remove(struct request *q)
{
    struct context *c = request_context(q);

    if (!c)
        return q->e->code;
    context_end(c, KERNEL_REMOVED);
    context_free(c);
    return 0;
}

/* A context that never had a kernel gets none: its first execution also brings the environment. */
int kernel_restart(struct request *q)
{
    struct context *c = request_context(q);

    if (!c)
        return q->e->code;
    context_end(c, KERNEL_RESTARTED);
    c->note = NULL;
    c->cells = 0;
    c->failures = 0;
    if (c->had_kernel)
        context_start(c);
    context_put(c, &q->answer);
    return 0;
}

int kernel_stop_cell(struct request *q)
{
    struct context *c = request_context(q);

    if (!c)
        return q->e->code;
    context_interrupt(c);
    return 0;
}

int kernel_warm(struct request *q)
{
    AUTO(strbuf_done) struct strbuf env = strbuf_upto(OPS_OPEN_MAX);
    struct kernel_language language;
    int res = request_language(q, &language);

    if (res == 0)
        res = request_variables(q->r, &env, q->e);
    if (res == 0)
        res = request_done(q);
    if (res < 0)
        return res;
    struct context *c = context_default(q->agent, &language, q->e);
    if (!c)
        return q->e->code;
    if (context_state(c) == KERNEL_ABSENT) {
        strbuf_done(&c->env);
        c->env = env;
        env = strbuf_upto(0);
        context_start(c);
    }
    return 0;
}

/* Sends one context at a time: the host may be slow. First the defaults, as E2B does: there they are
 * made before all others. */
struct lister {
    struct op op;
    uint64_t last; /* serial of the last context that was sent */
    bool created;  /* the defaults are sent: now those that somebody created */
};

static const struct context *next_listed(struct lister *l)
{
    const struct context *c;

    for (;; l->created = true, l->last = 0) {
        while ((c = context_after(l->op.agent, l->last)) && c->is_default == l->created)
            l->last = c->serial;
        if (c || l->created)
            return c;
    }
}

static void list_more(struct op *op)
{
    struct lister *l = CONTAINER_OF(op, struct lister, op);
    const struct context *c;

    while ((c = next_listed(l))) {
        AUTO(strbuf_done) struct strbuf out = strbuf_upto(CONTEXT_MAX);

        if (!op_may_send(op))
            return;
        context_put(c, &out);
        chan_event(op->agent->chan, op->stream, EVENT_CONTEXT, out.buf, out.len);
        l->last = c->serial;
    }
    op_end(op, NULL);
}

static const struct op_ops list_ops = {.resume = list_more};

int kernel_list(struct request *q)
{
    static const struct kernel_language listed[] = {{"python", PROGRAM_PYTHON},
                                                    {"javascript", PROGRAM_NODE}};
    int res = request_done(q);

    if (res < 0)
        return res;
    /* If there are too many contexts, these are not listed; they cannot be used then either. */
    for (size_t i = 0; i < ARRAY_SIZE(listed); i++)
        context_default(q->agent, &listed[i], NULL);
    list_more(op_new(q, &list_ops, sizeof(struct lister)));
    return 0;
}
