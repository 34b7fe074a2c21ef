/* OP_KERNEL_ADOPT: replaces the contexts of this sandbox by those of another sandbox, or by its own
 * of an earlier time, with the copies of their kernels that have arrived. The whole request is
 * checked before anything changes. */
#include <stdio.h>
#include <string.h>

#include "inside/agent/environ.h"
#include "inside/agent/kernels.h"

void adopt_done(struct adopt_list *l)
{
    for (size_t i = 0; i < l->n; i++) {
        free(l->v[i].note);
        strbuf_done(&l->v[i].env);
    }
    free(l->v);
    *l = (struct adopt_list){0};
}

static bool is_id(const char *id)
{
    return strlen(id) == KERNEL_ID_LEN && strspn(id, "0123456789abcdef-") == KERNEL_ID_LEN;
}

static int read_one(struct wire_reader *r, struct adopt *w, struct sg_error *e)
{
    const char *id = wire_get_str(r, KERNEL_ID_LEN);
    const char *language = wire_get_str(r, KERNEL_NAME_MAX);

    if (r->bad || !is_id(id))
        return err_set(e, SG_ERR_INVALID, -EINVAL, "the request has no valid id of a context");
    memcpy(w->id, id, sizeof(w->id));
    snprintf(w->language, sizeof(w->language), "%s", language);
    int res = request_path(r, agent_user_find("user"), w->cwd, e);
    if (res < 0)
        return res;
    w->is_default = wire_get_u32(r) != 0;
    w->cells = wire_get_u32(r);
    w->was = wire_get_u32(r);
    const char *note = wire_get_str(r, KERNEL_NOTE_MAX);
    if (r->bad)
        return err_set(e, SG_ERR_INVALID, -EINVAL, "the request is malformed");
    w->note = note[0] ? xstrdup(note) : NULL;
    return request_variables(r, &w->env, e);
}

int adopt_read(struct wire_reader *r, struct adopt_list *l, struct sg_error *e)
{
    uint32_t n = wire_get_u32(r);
    int res = 0;

    *l = (struct adopt_list){0};
    if (r->bad || n > KERNELS_MAX)
        return err_set(e, SG_ERR_INVALID, -EINVAL, "the request has more than %d contexts",
                       KERNELS_MAX);
    l->v = xcalloc(n + 1, sizeof(*l->v));
    for (; l->n < n && res == 0; l->n++) {
        strbuf_init(&l->v[l->n].env, OPS_OPEN_MAX);
        res = read_one(r, &l->v[l->n], e);
    }
    if (res < 0)
        adopt_done(l);
    return res;
}

/* Checks one context, also against those before it in the list. */
static int check_one(const struct agent *a, const struct adopt_list *l, struct adopt *w,
                     struct sg_error *e)
{
    int res = kernel_language_find(w->language, &w->found, e);

    if (res < 0)
        return res;
    for (const struct adopt *o = l->v; o < w; o++)
        if (strcmp(o->id, w->id) == 0 || (w->was > 0 && o->was == w->was) ||
            (w->is_default && o->is_default && strcmp(o->found.name, w->found.name) == 0))
            return err_set(
                e, SG_ERR_INVALID, -EINVAL,
                "two contexts have the same id or kernel, or are the default of the same language");
    if (w->was > 0 && !kernel_arrived(a, w->was))
        return err_set(e, SG_ERR_NOT_FOUND, -ENOENT, "the copy of kernel %u has not arrived",
                       w->was);
    return 0;
}

static void remove_all(struct agent *a)
{
    LIST_EACH(struct context, c, &a->kernels.contexts, link) {
        context_end(c, KERNEL_RESTARTED);
        context_free(c);
    }
}

/* Makes the context. Returns whether it has a kernel. */
static bool make_one(struct agent *a, struct adopt *w)
{
    struct context *c = context_new(a, &w->found, w->cwd, w->is_default, NULL);
    struct kernel *k = w->was > 0 ? kernel_arrived(a, w->was) : NULL;

    memcpy(c->id, w->id, sizeof(c->id));
    c->cells = w->cells;
    c->note = c->own_note = w->note;
    w->note = NULL;
    c->env = w->env;
    w->env = strbuf_upto(0);
    c->had_kernel = k || w->cells > 0;
    if (!k)
        return false;
    kernel_leaves(k);
    c->kernel = k;
    k->context = c;
    kernel_variables(k, 'G', &c->env);
    if (!k->packets.ready)
        countdown_start(&c->start, KERNEL_START_MS);
    return true;
}

int kernel_adopt(struct request *q)
{
    AUTO(adopt_done) struct adopt_list l = {0};
    uint32_t with_kernel = 0;
    int res = adopt_read(q->r, &l, q->e);

    if (res == 0)
        res = request_done(q);
    for (size_t i = 0; i < l.n && res == 0; i++)
        res = check_one(q->agent, &l, &l.v[i], q->e);
    if (res < 0)
        return res;
    remove_all(q->agent);
    for (size_t i = 0; i < l.n; i++)
        with_kernel += make_one(q->agent, &l.v[i]);
    kernels_arrived_free(q->agent); /* the copies that no context adopts */
    wire_put_u32(&q->answer, with_kernel);
    return 0;
}
