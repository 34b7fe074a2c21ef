/* Changes the network of a context's sandbox, also for a sandbox that replaces it later.
 *
 *   put in force --> kept in the store --> answered
 *                        |
 *                        +-- failed --> old network put in force, and kept --> refused
 *
 * The store comes second for a reason. If the new text were stored first and then the change
 * failed, or the front crashed, the text would survive, and it may be the more open of the two. A
 * network that is in force but not kept has not been confirmed to anybody yet. If the store's
 * answer is lost, the store may have the new text, so the old one is stored again.
 *
 * Each sandbox has one change at a time, so that what was kept last is also in force. */
#include <string.h>

#include "front/contexts/impl.h"
#include "front/core/egress.h"

struct network_change {
    struct list link;
    struct sandbox *sandbox;
    json_t *network, *before; /* owned until handed over */
    int allow_internet, allow_before;
    sandbox_done done;
    void *arg;
    struct sg_error e; /* why the change is taken back */
};

static void begin(struct network_change *c);

static struct network_change *first_of(const struct sandbox *b)
{
    return LIST_FIND(struct network_change, c, &b->front->contexts->changes, link, c->sandbox == b);
}

static void finish(struct network_change *c, int r, const struct sg_error *e)
{
    struct sandbox *b = c->sandbox;

    list_remove(&c->link);
    struct network_change *next = first_of(b);
    c->done(c->arg, b, r, e);
    json_decref(c->network);
    json_decref(c->before);
    free(c);
    if (next)
        begin(next);
    sandbox_unref(b);
}

static int keep(struct network_change *c, ctx_done done, struct sg_error *e)
{
    const struct sandbox_spec *spec = &c->sandbox->spec;
    struct contexts *t = c->sandbox->front->contexts;
    AUTO(free_p) char *text = NULL;
    int r = kept_seal_running(t->key, spec->context, spec, &text, e);

    if (r == 0)
        ctx_call(t->store, keep, spec->tenant, spec->context, c->sandbox->id, text, done, c);
    return r;
}

/* The change is refused either way. */
static void on_kept_before(void *arg, const struct ctx_reply *reply UNUSED)
{
    struct network_change *c = arg;

    finish(c, c->e.code, &c->e);
}

static void on_taken_back(void *arg, struct sandbox *b, int r, const struct sg_error *e)
{
    struct network_change *c = arg;
    struct sg_error ignored;

    if (r < 0 && b->state != SANDBOX_ENDED)
        err_set(&c->e, SG_ERR_LIMIT, -EAGAIN,
                "the network was changed, but the change could not be stored for a later sandbox "
                "of the context, nor undone: try again: %.200s",
                e->message);
    if (r < 0 || keep(c, on_kept_before, &ignored) < 0)
        finish(c, c->e.code, &c->e);
}

static void take_back(struct network_change *c, int r, const struct sg_error *e)
{
    if (c->sandbox->state == SANDBOX_ENDED) {
        err_set(&c->e, SG_ERR_NOT_FOUND, -ENOENT, "the sandbox has ended");
        finish(c, c->e.code, &c->e);
        return;
    }
    /* -ESTALE: the sandbox is being replaced, or its context ends. */
    err_set(&c->e, r == -ESTALE ? SG_ERR_LIMIT : e->kind, r == -ESTALE ? -EAGAIN : r,
            "the network was not changed, because the change could not be stored: %.400s",
            e->message);
    sandbox_set_network(c->sandbox, steal_ptr(&c->before), c->allow_before, on_taken_back, c);
}

static void on_kept(void *arg, const struct ctx_reply *reply)
{
    struct network_change *c = arg;

    if (reply->r < 0)
        take_back(c, reply->r, &reply->e);
    else
        finish(c, 0, NULL);
}

static void on_in_force(void *arg, struct sandbox *b UNUSED, int r, const struct sg_error *e)
{
    struct network_change *c = arg;
    struct sg_error why;

    if (r < 0)
        finish(c, r, e);
    else if ((r = keep(c, on_kept, &why)) < 0)
        take_back(c, r, &why);
}

static void begin(struct network_change *c)
{
    struct sandbox *b = c->sandbox;

    c->before = json_incref(b->spec.network);
    c->allow_before = b->spec.allow_internet;
    sandbox_set_network(b, steal_ptr(&c->network), c->allow_internet, on_in_force, c);
}

void context_set_network(struct sandbox *b, json_t *network, int allow_internet, sandbox_done done,
                         void *arg)
{
    bool first = !first_of(b);
    struct sg_error e;

    if (exploration_of(b)) {
        err_set(&e, SG_ERR_GONE, -EBUSY,
                "the sandbox is a candidate: adopt it before you change its network");
        json_decref(network);
        done(arg, b, -EBUSY, &e);
        return;
    }
    struct network_change *c =
        NEW(struct network_change, .sandbox = sandbox_ref(b), .network = network,
            .allow_internet = allow_internet, .done = done, .arg = arg);

    list_append(&b->front->contexts->changes, &c->link);
    if (first)
        begin(c);
}
