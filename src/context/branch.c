/* A new path of a conversation. With files: what the parent's sandbox has on disk now becomes a
 * layer, the new sandbox is made on top of it, and the layer is forgotten as soon as that holds it.
 */
#include <string.h>

#include "context/impl.h"

struct branching {
    struct front *front;
    struct store_tenant tenant;
    char conversation[CTX_NAME_MAX + 1], from[CTX_NAME_MAX + 1], to[CTX_NAME_MAX + 1];
    char template_id[CTX_TEMPLATE_MAX + 1]; /* of the parent */
    uint64_t ttl_ms;
    bool files;
    char layer[ID_LEN + 1];
    struct box *parent;
    context_spec spec;
    context_done done;
    void *arg;
};

static void finish(struct branching *b, const struct context_answer *a)
{
    b->done(b->arg, a);
    box_unref(b->parent);
    free(b);
}

static void fail(struct branching *b, int r, const struct sg_error *e)
{
    finish(b, &(struct context_answer){.r = r, .e = e});
}

static void on_made(void *arg, const struct context_answer *a)
{
    struct branching *b = arg;
    struct sg_error e;

    box_forget_layer(b->front, b->layer);
    if (a->r == 0 && !a->created) {
        err_set(&e, SG_ERR_GONE, -EALREADY, "path '%.64s' has got a context of its own meanwhile",
                b->to);
        fail(b, -EEXIST, &e);
        return;
    }
    finish(b, a);
}

/* As the caller wants it, on top of the parent's files. */
static int spec_with_files(void *arg, const char *template_id, struct box_spec *ret,
                           char layer[ID_LEN + 1], struct sg_error *e)
{
    struct branching *b = arg;
    int r = b->spec(b->arg, template_id ? template_id : b->template_id, ret, layer, e);

    if (r == 0)
        memcpy(layer, b->layer, sizeof(b->layer));
    return r;
}

static void on_saved(void *arg, int r, const struct sg_error *e, uint64_t bytes)
{
    struct branching *b = arg;
    struct context_ask ask = {.tenant = &b->tenant,
                              .conversation = b->conversation,
                              .path = b->to,
                              .ttl_ms = b->ttl_ms,
                              .template_id = b->template_id,
                              .spec = spec_with_files};

    (void)bytes;
    if (r < 0)
        fail(b, r, e);
    else
        context_obtain(b->front, &ask, on_made, b);
}

/* When the parent runs and nothing else is done with it: several may branch from it at a time. */
static void save_files(void *arg, struct box *parent, int r, const struct sg_error *e)
{
    struct branching *b = arg;
    bool runs = parent->state == BOX_RUNNING && parent->busy != BUSY_PAUSING;

    if (r < 0 && r != -EALREADY) {
        fail(b, r, e);
    } else if (parent->state == BOX_ENDED || (runs && parent->busy == BUSY_NO)) {
        id_random(b->layer);
        box_snapshot(parent, b->layer, false, on_saved, b);
    } else if (runs) {
        box_when_settled(parent, save_files, b);
    } else {
        box_resume(parent, true, parent->spec.timeout_ms, save_files, b);
    }
}

static void on_parent(void *arg, const struct ctx_reply *reply)
{
    struct branching *b = arg;
    struct context_answer a = {0};
    struct sg_error e;

    if (reply->r < 0) {
        fail(b, reply->r, &reply->e);
        return;
    }
    const struct ctx_row *row = reply->n > 0 ? &reply->rows[0] : NULL;
    if (row && context_is_elsewhere(b->front, row, &a, &e)) {
        finish(b, &a);
        return;
    }
    struct box *parent = row ? box_get(b->front, b->tenant.id, row->sandbox) : NULL;
    /* No files to have; or those of another path, if the database says so. */
    if (!parent || strcmp(parent->spec.context, row->id) != 0) {
        finish(b, &a);
        return;
    }
    b->parent = box_ref(parent);
    snprintf(b->template_id, sizeof(b->template_id), "%s", row->template_id);
    save_files(b, parent, 0, NULL);
}

static void on_noted(void *arg, const struct ctx_reply *reply)
{
    struct branching *b = arg;
    struct ctx_store *s = b->front->contexts->store;
    struct sg_error e;

    if (reply->r == -EEXIST) {
        err_set(&e, SG_ERR_GONE, -EALREADY,
                "path '%.64s' has a context already: end that first, or branch to another path",
                b->to);
        fail(b, -EEXIST, &e);
    } else if (reply->r < 0) {
        fail(b, reply->r, &reply->e);
    } else if (!b->files) {
        finish(b, &(struct context_answer){0});
    } else {
        struct ctx_list q = {.tenant = b->tenant.id,
                             .conversation = b->conversation,
                             .path = b->from,
                             .statuses = 1u << CTX_READY,
                             .limit = 1};
        s->ops->list(s, &q, on_parent, b);
    }
}

void context_branch(struct front *f, const struct context_ask *ask, const char *from, bool files,
                    context_done done, void *arg)
{
    struct ctx_store *s = f->contexts->store;
    struct branching *b = xcalloc(1, sizeof(*b));

    *b = (struct branching){.front = f,
                            .tenant = *ask->tenant,
                            .ttl_ms = ask->ttl_ms,
                            .files = files,
                            .spec = ask->spec,
                            .done = done,
                            .arg = arg};
    snprintf(b->conversation, sizeof(b->conversation), "%s", ask->conversation);
    snprintf(b->from, sizeof(b->from), "%s", from);
    snprintf(b->to, sizeof(b->to), "%s", ask->path);
    s->ops->branch(s, b->tenant.id, b->conversation, b->from, b->to, on_noted, b);
}
