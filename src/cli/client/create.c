/* sandglass create: makes a sandbox and prints its id. */
#include "cli/client/create_options.h"
#include "cli/client/jr.h"
#include "cli/client/payload.h"
#include "cli/client/sandbox.h"

#define DEFAULT_TEMPLATE  "base"
#define DEFAULT_TIMEOUT_S 300
#define ENV_HINT          "split it, or copy the values in with 'sandglass cp'"

static int create(struct client *c, const struct create_options *o, json_t **ret,
                  struct sg_error *e)
{
    AUTO(env_list_done) struct env_list env = {0};
    struct payload_create b = {.template = o->template ? o->template : DEFAULT_TEMPLATE,
                               .timeout_s = o->timeout_s ? o->timeout_s : DEFAULT_TIMEOUT_S,
                               .env = &env,
                               .metadata = (const char *const *)o->metadata,
                               .n_metadata = o->n_metadata,
                               .auto_pause = o->auto_pause};
    int r = env_load(&o->env_files, &o->env, ENV_HINT, &env, e);

    return r < 0 ? r : sandbox_create(c, &b, ret, e);
}

static int create_fn(struct client *c, void *self, struct sg_error *e)
{
    AUTO(jr_free_p) json_t *sandbox = NULL;
    struct create_options *o = self;
    int r = create(c, o, &sandbox, e);

    create_options_done(o);
    if (r == 0 && o->json)
        r = jr_print(sandbox, e);
    else if (r == 0)
        puts(jr_text(sandbox, "sandboxID"));
    return r;
}

const struct client_verb create_verb = {
    .name = "create",
    .usage = "[OPTION]... [TEMPLATE]",
    .about = "Makes a sandbox from a template (default: " DEFAULT_TEMPLATE ") and prints its id.",
    .syntax = &create_syntax,
    .options_size = sizeof(struct create_options),
    .fn = create_fn,
};
