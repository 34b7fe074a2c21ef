/* Requests about contexts: create, list, remove, restart, interrupt, warm. */
#include <string.h>

#include "inside/agent/kernels.h"
#include "inside/agent/path.h"

#define CONTEXT_MAX (KERNEL_ID_LEN + KERNEL_LANGUAGE_MAX + OPS_PATH_MAX + 64)

static int request_context(struct agent *a, struct wire_reader *r, struct context **ret,
                           struct sg_error *e)
{
    const char *id = wire_get_str(r, KERNEL_ID_LEN);
    int res = request_done(r, e);

    if (res < 0)
        return res;
    *ret = context_find(a, id, e);
    return *ret ? 0 : e->code;
}

static void answer_context(struct agent *a, struct chan_stream *s, const struct context *c)
{
    struct strbuf out;

    strbuf_init(&out, CONTEXT_MAX);
    context_put(c, &out);
    chan_end(a->chan, s, 0, NULL, out.buf, out.len);
    strbuf_done(&out);
}

static int request_language(struct wire_reader *r, struct kernel_language *ret, struct sg_error *e)
{
    const char *name = wire_get_str(r, KERNEL_NAME_MAX);

    if (r->bad)
        return err_set(e, SG_ERR_INVALID, -EINVAL, "the request has no valid name of a language");
    return kernel_language_find(name, ret, e);
}

int kernel_create(struct agent *a, struct chan_stream *s, struct wire_reader *r, struct sg_error *e)
{
    struct kernel_language language;
    char cwd[OPS_PATH_MAX];
    int res = request_language(r, &language, e);

    if (res == 0)
        res = request_path(r, agent_user_find("user"), cwd, e);
    if (res == 0)
        res = request_done(r, e);
    if (res < 0)
        return res;
    struct context *c = context_new(a, &language, cwd, false, e);
    if (!c)
        return e->code;
    answer_context(a, s, c);
    return 0;
}

int kernel_remove(struct agent *a, struct chan_stream *s, struct wire_reader *r, struct sg_error *e)
{
    struct context *c;
    int res = request_context(a, r, &c, e);

    if (res < 0)
        return res;
    context_drop_kernel(c);
    context_end_waiting(c, KERNEL_REMOVED);
    context_cell_over(c, KERNEL_REMOVED, 0);
    context_free(c);
    chan_end(a->chan, s, 0, NULL, NULL, 0);
    return 0;
}

/* A context that never had a kernel gets none: its first execution also brings the environment. */
int kernel_restart(struct agent *a, struct chan_stream *s, struct wire_reader *r,
                   struct sg_error *e)
{
    struct context *c;
    int res = request_context(a, r, &c, e);

    if (res < 0)
        return res;
    context_drop_kernel(c);
    context_end_waiting(c, KERNEL_RESTARTED);
    context_cell_over(c, KERNEL_RESTARTED, 0);
    c->note = NULL;
    c->cells = 0;
    c->failures = 0;
    if (c->had_kernel)
        context_start(c);
    answer_context(a, s, c);
    return 0;
}

int kernel_stop_cell(struct agent *a, struct chan_stream *s, struct wire_reader *r,
                     struct sg_error *e)
{
    struct context *c;
    int res = request_context(a, r, &c, e);

    if (res < 0)
        return res;
    context_interrupt(c);
    chan_end(a->chan, s, 0, NULL, NULL, 0);
    return 0;
}

int kernel_warm(struct agent *a, struct chan_stream *s, struct wire_reader *r, struct sg_error *e)
{
    AUTO(strbuf_done) struct strbuf env = {0};
    struct kernel_language language;
    int res = request_language(r, &language, e);

    strbuf_init(&env, OPS_OPEN_MAX);
    if (res == 0)
        res = request_variables(r, &env, e);
    if (res == 0)
        res = request_done(r, e);
    if (res < 0)
        return res;
    struct context *c = context_default(a, &language, e);
    if (!c)
        return e->code;
    if (context_state(c) == KERNEL_ABSENT) {
        strbuf_done(&c->env);
        c->env = env;
        strbuf_init(&env, 0);
        context_start(c);
    }
    chan_end(a->chan, s, 0, NULL, NULL, 0);
    return 0;
}

/* Sends one context at a time: the host may be slow. */
struct lister {
    struct op op;
    uint64_t last; /* serial of the last context that was sent */
};

static void list_more(struct op *op)
{
    struct lister *l = CONTAINER_OF(op, struct lister, op);
    const struct context *c;

    while ((c = context_after(op->agent, l->last))) {
        struct strbuf out;

        if (!op_may_send(op))
            return;
        strbuf_init(&out, CONTEXT_MAX);
        context_put(c, &out);
        chan_event(op->agent->chan, op->stream, EVENT_CONTEXT, out.buf, out.len);
        strbuf_done(&out);
        l->last = c->serial;
    }
    op_end(op, NULL);
}

static void list_destroy(struct op *op)
{
    (void)op;
}

static const struct op_ops list_ops = {.resume = list_more, .destroy = list_destroy};

int kernel_list(struct agent *a, struct chan_stream *s, struct wire_reader *r, struct sg_error *e)
{
    static const struct kernel_language listed[] = {{"python", PROGRAM_PYTHON},
                                                    {"javascript", PROGRAM_NODE}};
    int res = request_done(r, e);

    if (res < 0)
        return res;
    /* If there are too many contexts, these are not listed; they cannot be used then either. */
    for (size_t i = 0; i < ARRAY_SIZE(listed); i++)
        context_default(a, &listed[i], NULL);
    list_more(op_new(a, s, &list_ops, sizeof(struct lister)));
    return 0;
}
