/* The table of contexts. */
#include <stdio.h>
#include <string.h>

#include "inside/agent/kernels.h"
#include "lib/base/uuid.h"

static void free_context(struct loop_trash *trash)
{
    struct context *c = CONTAINER_OF(trash, struct context, trash);

    strbuf_done(&c->env);
    free(c->own_note);
    free(c);
}

struct context *context_new(struct agent *a, const struct kernel_language *language,
                            const char *cwd, bool is_default, struct sg_error *e)
{
    struct kernels *t = &a->kernels;

    if (t->n == KERNELS_MAX) {
        err_set(e, SG_ERR_LIMIT, -EAGAIN,
                "the sandbox has %d contexts, the most there can be: remove one", KERNELS_MAX);
        return NULL;
    }
    struct context *c = xcalloc(1, sizeof(*c));
    c->agent = a;
    c->serial = ++t->serial;
    uuid_random(c->id);
    c->language = *language;
    snprintf(c->cwd, sizeof(c->cwd), "%s", cwd);
    c->is_default = is_default;
    strbuf_init(&c->env, OPS_OPEN_MAX);
    context_start_init(c);
    context_cells_init(c);
    c->trash.fn = free_context;
    list_append(&t->contexts, &c->link);
    t->n++;
    return c;
}

void context_free(struct context *c)
{
    struct kernels *t = &c->agent->kernels;

    list_remove(&c->link);
    t->n--;
    loop_throw_away(&c->agent->loop, &c->trash);
}

struct context *context_find(struct agent *a, const char *id, struct sg_error *e)
{
    struct context *c =
        LIST_FIND(struct context, at, &a->kernels.contexts, link, strcmp(at->id, id) == 0);

    if (!c)
        err_set(e, SG_ERR_NOT_FOUND, -ENOENT, "there is no context '%.40s'", id);
    return c;
}

struct context *context_of_language(struct agent *a, const char *name)
{
    return LIST_FIND(struct context, c, &a->kernels.contexts, link,
                     c->is_default && strcmp(c->language.name, name) == 0);
}

struct context *context_default(struct agent *a, const struct kernel_language *language,
                                struct sg_error *e)
{
    struct context *c = context_of_language(a, language->name);

    return c ? c : context_new(a, language, agent_user_find("user")->home, true, e);
}

struct context *context_after(struct agent *a, uint64_t serial)
{
    return LIST_FIND(struct context, c, &a->kernels.contexts, link, c->serial > serial);
}

enum kernel_state context_state(const struct context *c)
{
    if (c->busy)
        return KERNEL_BUSY;
    if (c->wants_twin || countdown_runs(&c->again) || (c->kernel && !c->kernel->packets.ready))
        return KERNEL_STARTING;
    return c->kernel ? KERNEL_IDLE : KERNEL_ABSENT;
}

void context_put(const struct context *c, struct strbuf *out)
{
    wire_put_str(out, c->id);
    wire_put_str(out, c->language.name);
    wire_put_str(out, c->cwd);
    wire_put_u32(out, context_state(c));
    wire_put_u32(out, c->cells);
    wire_put_u32(out, c->is_default);
    wire_put_u32(out, c->kernel && c->kernel->pidfd < 0);
}
