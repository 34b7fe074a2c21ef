/* sandglass create: makes a sandbox and prints its id. */
#include "cli/client/create.h"

#include "cli/client/jr.h"
#include "cli/client/payload.h"
#include "cli/client/sandbox.h"

#define DEFAULT_TEMPLATE  "base"
#define DEFAULT_TIMEOUT_S 300
#define ENV_HINT          "split it, or copy the values in with 'sandglass cp'"

/* ---- the command line ------------------------------------------------------------------------ */

/* Adds a pair. If a key is given twice, the last value counts. */
static int set_metadata(struct create_options *o, const char *pair, struct sg_error *e)
{
    size_t key = strcspn(pair, "=") + 1, i = 0;

    while (i < o->n_metadata && strncmp(o->metadata[i], pair, key) != 0)
        i++;
    if (i == CREATE_METADATA_MAX)
        return err_set(e, SG_ERR_INVALID, -E2BIG, "--metadata: more than %d of them",
                       CREATE_METADATA_MAX);
    free(o->metadata[i]);
    o->metadata[i] = xstrdup(pair);
    if (i == o->n_metadata)
        o->n_metadata++;
    return 0;
}

static int apply_metadata(void *self, const struct cli_option *option UNUSED, const char *value,
                          struct sg_error *e)
{
    int r = client_check_pair("--metadata", value, e);

    return r < 0 ? r : set_metadata(self, value, e);
}

static int apply_name(void *self, const struct cli_option *option UNUSED, const char *value,
                      struct sg_error *e)
{
    AUTO(free_p) char *pair = NULL;

    if (!*value)
        return err_invalid(e, "--name: the name is empty");
    if (asprintf(&pair, "name=%s", value) < 0)
        return err_set(e, SG_ERR_INTERNAL, -ENOMEM, "out of memory");
    return set_metadata(self, pair, e);
}

static int positional(void *self, const char *arg, struct sg_error *e)
{
    struct create_options *o = self;

    if (o->template)
        return err_invalid(e, "unexpected argument '%.64s'", arg);
    if (!*arg)
        return err_invalid(e, "the name of the template is empty");
    o->template = arg;
    return 0;
}

static const struct cli_option options[] = {
    {"timeout", 0, "TIME", "how long the sandbox lives: 30s, 5m (default), 1h",
     CLI_AT(client_seconds, create_options, timeout_s)},
    {"env", 'e', "NAME[=VALUE]", "set a variable, or copy it from the environment",
     CLI_AT(env_option, create_options, env)},
    {"env-file", 0, "FILE", "set variables from lines NAME=VALUE",
     CLI_AT(env_file_option, create_options, env_files)},
    {"metadata", 'm', "KEY=VALUE", "metadata of the sandbox; may be repeated",
     .apply = apply_metadata},
    {"name", 0, "NAME", "the same as --metadata name=NAME", .apply = apply_name},
    {"auto-pause", 0, NULL, "pause the sandbox at its timeout, instead of ending it",
     CLI_FLAG(create_options, auto_pause)},
    {"json", 0, NULL, "print the server's object", CLI_FLAG(create_options, json)},
    CLIENT_OPTIONS,
};

void create_options_done(struct create_options *o)
{
    for (size_t i = 0; i < o->n_metadata; i++)
        free(o->metadata[i]);
    o->n_metadata = 0;
    env_list_done(&o->env);
}

/* ---- the call -------------------------------------------------------------------------------- */

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
    .syntax = &(const struct cli_syntax){options, ARRAY_SIZE(options), positional, 0},
    .options_size = sizeof(struct create_options),
    .fn = create_fn,
};
