/* OP_KERNEL_ADOPT: gives a sandbox the contexts of a checkpoint. The agent has the copies of the
 * kernels by then. A context without a copy keeps its id and its directory, and its next cell says
 * why its variables are gone. */
#include <stdio.h>
#include <string.h>

#include "lib/json/values.h"
#include "lib/channel/wire.h"
#include "front/core/call.h"
#include "front/core/checkpoint_impl.h"
#include "front/core/identity.h"

struct adopting {
    struct sandbox *sandbox;
    struct checkpoint *from;
    struct call call;
    const char *gone; /* why no kernel comes along; NULL: kernels do */
    bool no_env;
    adopt_done done;
    void *arg;
};

static void ask(struct adopting *a);

static void finish(struct adopting *a, int r, const struct sg_error *e)
{
    a->done(a->arg, r, e, a->gone);
    checkpoint_unref(a->from);
    sandbox_unref(a->sandbox);
    free(a);
}

static void on_end(struct call *call, int status, const char *message, const void *result UNUSED,
                   size_t len UNUSED)
{
    struct adopting *a = call->owner;
    struct sg_error e = {0};

    if (status == 0) {
        finish(a, 0, NULL);
    } else if (status == ENOENT && !a->gone) {
        a->gone = REASON_GONE;
        ask(a);
    } else if (status == CALL_GONE) {
        finish(a, err_set(&e, SG_ERR_NOT_FOUND, -ENOENT, "the sandbox has ended"), &e);
    } else {
        finish(a,
               err_set(&e, SG_ERR_GONE, -EBUSY,
                       "the sandbox cannot take over the copied kernels: %s", message),
               &e);
    }
}

/* A copied kernel is told the environment variables of the new sandbox here; other kernels get them
 * when they are started. */
static void put_context(struct adopting *a, const json_t *entry, struct strbuf *q)
{
    bool carried = !a->gone && jr_flag(entry, "carried");
    json_int_t cells = jr_int(entry, "cells");
    const char *reason = jr_text_or(entry, "reason", NULL);
    char note[512] = "";

    if (!carried && cells > 0)
        snprintf(note, sizeof(note), "the variables of this context are gone: %s",
                 reason    ? reason
                 : a->gone ? a->gone
                           : "its kernel was not copied");
    wire_put_str(q, jr_text(entry, "id"));
    wire_put_str(q, jr_text(entry, "language"));
    wire_put_str(q, jr_text(entry, "cwd"));
    wire_put_u32(q, jr_flag(entry, "default"));
    wire_put_u32(q, carried ? (uint32_t)cells : 0);
    wire_put_u32(q, carried ? (uint32_t)jr_int(entry, "pid") : 0);
    wire_put_str(q, note);
    if (carried && !a->no_env)
        identity_put_envs(a->sandbox, NULL, NULL, q);
    else
        wire_put_u32(q, 0);
}

static void put_request(struct adopting *a, struct strbuf *q)
{
    const json_t *contexts = a->from->contexts;

    strbuf_init(q, OPS_OPEN_MAX);
    wire_put_u32(q, (uint32_t)json_array_size(contexts));
    for (size_t i = 0; i < json_array_size(contexts); i++)
        put_context(a, json_array_get(contexts, i), q);
}

static void ask(struct adopting *a)
{
    AUTO(strbuf_done) struct strbuf q = {0};
    struct sg_error e = {0};

    put_request(a, &q);
    if (q.truncated) { /* many kernels with large variables: they keep the old ones */
        strbuf_done(&q);
        a->no_env = true;
        put_request(a, &q);
    }
    a->call = (struct call){.owner = a, .uncounted = true, .on_end = on_end};
    int r = call_begin(&a->call, a->sandbox, OP_KERNEL_ADOPT, &q, &e);
    if (r < 0)
        finish(a, r, &e);
}

void checkpoint_adopt(struct sandbox *b, struct checkpoint *c, const char *gone, adopt_done done,
                      void *arg)
{
    struct adopting *a = NEW(struct adopting, .sandbox = sandbox_ref(b), .from = checkpoint_ref(c),
                             .gone = gone, .done = done, .arg = arg);

    ask(a);
}
