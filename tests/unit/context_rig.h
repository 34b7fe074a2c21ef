/* The manager of contexts, with the store in memory and a warden that does what the test says. */
#pragma once

#include "e2b_server.h"

#include "front/contexts/context.h"
#include "front/contexts/impl.h"
#include "front/core/lifecycle.h"
#include "front/store/contexts.h"

#define OTHER "othernodeothernodeot"

/* ---- a store that can fail ------------------------------------------------------------------- */

/* The real one, but for what may be told to fail. */
static struct {
    struct ctx_store *real;
    struct ctx_store_ops ops;
    const struct ctx_store_ops *real_ops;
    int settle_fails, lost_fails;     /* the next one, with this; 0: it does not */
    int touch_fails, terminate_fails; /* each */
    bool end_first;                   /* somebody terminates the row before it is settled */
    bool settled_unheard;             /* it is settled, and the answer is lost */
    int keep_fails;                   /* the next one, with this */
    bool kept_unheard;                /* and yet it is kept */
} shaky;

struct delayed {
    uv_timer_t timer;
    ctx_done done;
    void *arg;
    struct ctx_reply reply;
};

static inline void on_delayed_closed(uv_handle_t *h)
{
    free(h->data);
}

static inline void on_delayed(uv_timer_t *t)
{
    struct delayed *d = t->data;

    d->done(d->arg, &d->reply);
    uv_close((uv_handle_t *)t, on_delayed_closed);
}

static inline void answer_later(int r, ctx_done done, void *arg)
{
    struct delayed *d = xcalloc(1, sizeof(*d));

    d->done = done;
    d->arg = arg;
    d->reply.r = err_set(&d->reply.e, SG_ERR_LIMIT, r, "the test said so");
    d->timer.data = d;
    uv_timer_init(server.front.loop, &d->timer);
    uv_timer_start(&d->timer, on_delayed, 1, 0);
}

static inline void on_ended_first(void *arg, const struct ctx_reply *reply)
{
    (void)arg;
    EXPECT(reply->r == 0);
}

static inline void shaky_settle(struct ctx_store *s, const char *tenant, const char *id,
                                const char *node, const char *sandbox_id, const char *error,
                                const char *kept, ctx_done done, void *arg)
{
    int r = shaky.settle_fails;

    shaky.settle_fails = 0;
    if (shaky.end_first)
        s->ops->terminate(s, tenant, id, on_ended_first, NULL);
    shaky.end_first = false;
    if (shaky.settled_unheard)
        shaky.real_ops->settle(s, tenant, id, node, sandbox_id, error, kept, on_ended_first, NULL);
    shaky.settled_unheard = false;
    if (r < 0)
        answer_later(r, done, arg);
    else
        shaky.real_ops->settle(s, tenant, id, node, sandbox_id, error, kept, done, arg);
}

static inline void shaky_keep(struct ctx_store *s, const char *tenant, const char *id,
                              const char *sandbox_id, const char *kept, ctx_done done, void *arg)
{
    int r = shaky.keep_fails;

    shaky.keep_fails = 0;
    if (r < 0 && shaky.kept_unheard)
        shaky.real_ops->keep(s, tenant, id, sandbox_id, kept, on_ended_first, NULL);
    shaky.kept_unheard = false;
    if (r < 0)
        answer_later(r, done, arg);
    else
        shaky.real_ops->keep(s, tenant, id, sandbox_id, kept, done, arg);
}

static inline void shaky_lost(struct ctx_store *s, const char *tenant, const char *id,
                              const char *sandbox_id, ctx_done done, void *arg)
{
    int r = shaky.lost_fails;

    shaky.lost_fails = 0;
    if (r < 0)
        answer_later(r, done, arg);
    else
        shaky.real_ops->lost(s, tenant, id, sandbox_id, done, arg);
}

static inline void shaky_touch(struct ctx_store *s, const char *tenant, const char *id,
                               uint64_t ttl_ms, ctx_done done, void *arg)
{
    if (shaky.touch_fails < 0)
        answer_later(shaky.touch_fails, done, arg);
    else
        shaky.real_ops->touch(s, tenant, id, ttl_ms, done, arg);
}

static inline void shaky_terminate(struct ctx_store *s, const char *tenant, const char *id,
                                   ctx_done done, void *arg)
{
    if (shaky.terminate_fails < 0)
        answer_later(shaky.terminate_fails, done, arg);
    else
        shaky.real_ops->terminate(s, tenant, id, done, arg);
}

/* ---- asking ---------------------------------------------------------------------------------- */

struct asked {
    bool came;
    int r;
    char message[sizeof(((struct sg_error *)0)->message)];
    struct ctx_row row;
    char sandbox_id[ID_LEN + 1];
    bool has_row, created, replaced, kept_lost;
    char checkpoint[ID_LEN + 1], report[4096];
    char elsewhere[CTX_URL_MAX + 1];
    int spec_fails;
    char template_id[CTX_TEMPLATE_MAX + 1]; /* that the spec was asked for */
};

static inline int make_spec(void *arg, const char *template_id, struct sandbox_spec *ret,
                            char snapshot[ID_LEN + 1], struct sg_error *e)
{
    struct asked *a = arg;

    snprintf(a->template_id, sizeof(a->template_id), "%s", template_id ? template_id : "");
    if (a->spec_fails)
        return err_set(e, SG_ERR_INVALID, a->spec_fails, "a bad specification");
    sandbox_spec_init(ret);
    ret->envs = json_object();
    snprintf(ret->tenant, sizeof(ret->tenant), "%s", server.acme_tenant.id);
    snprintf(ret->template_id, sizeof(ret->template_id), "base");
    snapshot[0] = '\0';
    return 0;
}

static inline void on_answer(void *arg, const struct context_answer *answer)
{
    struct asked *a = arg;

    EXPECT(!a->came);
    a->came = true;
    a->r = answer->r;
    snprintf(a->message, sizeof(a->message), "%s", answer->e ? answer->e->message : "");
    a->has_row = answer->row != NULL;
    if (answer->row)
        a->row = *answer->row;
    snprintf(a->sandbox_id, sizeof(a->sandbox_id), "%s",
             answer->sandbox ? answer->sandbox->id : "");
    a->created = answer->created;
    a->replaced = answer->replaced;
    a->kept_lost = answer->kept_lost;
    if (answer->checkpoint)
        snprintf(a->checkpoint, sizeof(a->checkpoint), "%s", answer->checkpoint->name);
    AUTO(free_p) char *report = answer->report ? json_dumps(answer->report, JSON_COMPACT) : NULL;
    snprintf(a->report, sizeof(a->report), "%s", report ? report : "");
    snprintf(a->elsewhere, sizeof(a->elsewhere), "%s", answer->elsewhere ? answer->elsewhere : "");
}

static inline void turn_until(const bool *flag)
{
    uint64_t deadline = clock_ns() + SERVER_DEADLINE_NS;

    while (!*flag && clock_ns() < deadline)
        server_turn(-1);
    EXPECT(*flag);
}

static inline void turn_for(unsigned ms)
{
    uint64_t until = clock_ns() + ms * 1000000ull;

    while (clock_ns() < until)
        server_turn(-1);
}

static inline void on_started(struct front *f)
{
    (void)f;
}

/* Once: the manager on a store of its own. */
static inline void begin(void)
{
    static bool begun;
    struct front *f = &server.front;
    struct sg_error e;

    server.n_orders = 0;
    if (begun)
        return;
    begun = true;
    if (ctx_store_sqlite(f->loop, NULL, &shaky.real, &e) < 0)
        server_fail(e.message);
    shaky.real_ops = shaky.real->ops;
    shaky.ops = *shaky.real_ops;
    shaky.ops.settle = shaky_settle;
    shaky.ops.keep = shaky_keep;
    shaky.ops.lost = shaky_lost;
    shaky.ops.touch = shaky_touch;
    shaky.ops.terminate = shaky_terminate;
    shaky.real->ops = &shaky.ops;
    f->settings.reap_every_ms = 100;
    f->settings.tenant_contexts = f->settings.conversation_contexts = 1000;
    f->settings.tenant_sandboxes = 1000;
    EXPECT(contexts_start(f, shaky.real, on_started, &e) == 0);
    turn_until(&f->contexts->recovered);
}

static inline void ask_path(struct asked *a, const char *conversation, const char *path,
                            uint64_t ttl_ms)
{
    struct context_ask q = {.tenant = &server.acme_tenant,
                            .conversation = conversation,
                            .path = path,
                            .ttl_ms = ttl_ms,
                            .spec = make_spec};

    *a = (struct asked){.spec_fails = a->spec_fails};
    context_obtain(&server.front, &q, on_answer, a);
}

/* The answer to one who asks alone. */
static inline struct asked *obtain(const char *conversation, const char *path)
{
    static struct asked a;

    a = (struct asked){0};
    ask_path(&a, conversation, path, 60000);
    turn_until(&a.came);
    return &a;
}

static inline size_t orders(enum order_op op)
{
    size_t n = 0;

    for (size_t i = 0; i < server.n_orders; i++)
        n += server.orders[i].op == (uint32_t)op;
    return n;
}
