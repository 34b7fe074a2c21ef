/* sandglass create: makes a sandbox and prints its id. */
#include "cli/client/api.h"
#include "cli/client/payload.h"
#include "cli/client/create_options.h"
#include "cli/client/jr.h"
#include "cli/client/url.h"

#define DEFAULT_TEMPLATE  "base"
#define DEFAULT_TIMEOUT_S 300
#define ENV_HINT          "split it, or copy the values in with 'sandglass cp'"

static int create(struct client *c, const struct create_options *o, json_t **ret,
                  struct sg_error *e)
{
    AUTO(strbuf_done) struct strbuf body_v2 = {0}, body_v1 = {0};
    AUTO(env_list_done) struct env_list env = {0};
    struct payload_create b = {.template = o->template ? o->template : DEFAULT_TEMPLATE,
                               .timeout_s = o->timeout_s ? o->timeout_s : DEFAULT_TIMEOUT_S,
                               .env = &env,
                               .metadata = (const char *const *)o->metadata,
                               .n_metadata = o->n_metadata,
                               .auto_pause = o->auto_pause};
    int r = env_load(&o->env_files, &o->env, ENV_HINT, &env, e);

    if (r < 0)
        return r;
    payload_create(&body_v2, &b);
    b.secure = true;
    payload_create(&body_v1, &b);
    return api_call_newest(c, "/sandboxes", &body_v2, &body_v1, ret, e);
}

static int create_fn(struct client *c, void *self)
{
    AUTO(jr_free_p) json_t *sandbox = NULL;
    struct create_options *o = self;
    struct sg_error e;
    int r = create(c, o, &sandbox, &e);

    create_options_done(o);
    if (r == 0 && !url_is_plain_name(jr_text(sandbox, "sandboxID")))
        r = err_set(&e, SG_ERR_INTERNAL, -EPROTO, "the server's answer has no id of a sandbox");
    if (r == 0 && o->json)
        r = jr_print(sandbox, &e);
    if (r < 0)
        return client_fail(&e);
    if (!o->json)
        puts(jr_text(sandbox, "sandboxID"));
    return 0;
}

const struct client_verb create_verb = {
    .name = "create",
    .usage = "[OPTION]... [TEMPLATE]",
    .about = "Makes a sandbox from a template (default: " DEFAULT_TEMPLATE ") and prints its id.",
    .syntax = &create_syntax,
    .options_size = sizeof(struct create_options),
    .fn = create_fn,
};
