#include "cli/client/create_options.h"

CLIENT_FLAG(create_options, auto_pause)
CLIENT_FLAG(create_options, json)

static int apply_timeout(void *self, const char *value, struct sg_error *e)
{
    struct create_options *o = self;

    return client_parse_seconds("--timeout", value, &o->timeout_s, e);
}

static int apply_env(void *self, const char *value, struct sg_error *e)
{
    struct create_options *o = self;

    return env_list_set_or_copy(&o->env, "--env", value, e);
}

static int apply_env_file(void *self, const char *value, struct sg_error *e)
{
    struct create_options *o = self;

    if (o->n_env_files == CREATE_ENV_FILES_MAX)
        return err_set(e, SG_ERR_INVALID, -E2BIG, "--env-file: more than %d files",
                       CREATE_ENV_FILES_MAX);
    o->env_files[o->n_env_files++] = value;
    return 0;
}

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

static int apply_metadata(void *self, const char *value, struct sg_error *e)
{
    int r = client_check_pair("--metadata", value, e);

    return r < 0 ? r : set_metadata(self, value, e);
}

static int apply_name(void *self, const char *value, struct sg_error *e)
{
    AUTO(free_p) char *pair = NULL;

    if (!*value)
        return err_set(e, SG_ERR_INVALID, -EINVAL, "--name: the name is empty");
    if (asprintf(&pair, "name=%s", value) < 0)
        return err_set(e, SG_ERR_INTERNAL, -ENOMEM, "out of memory");
    return set_metadata(self, pair, e);
}

static int positional(void *self, const char *arg, struct sg_error *e)
{
    struct create_options *o = self;

    if (o->template)
        return err_set(e, SG_ERR_INVALID, -EINVAL, "unexpected argument '%.64s'", arg);
    if (!*arg)
        return err_set(e, SG_ERR_INVALID, -EINVAL, "the name of the template is empty");
    o->template = arg;
    return 0;
}

static const struct cli_option options[] = {
    {"timeout", 0, "TIME", "how long it lives: 30s, 5m (default), 1h", apply_timeout},
    {"env", 'e', "NAME[=VALUE]", "set a variable, or copy it from the environment", apply_env},
    {"env-file", 0, "FILE", "set variables from lines NAME=VALUE", apply_env_file},
    {"metadata", 'm', "KEY=VALUE", "remember this with it; may be repeated", apply_metadata},
    {"name", 0, "NAME", "the same as --metadata name=NAME", apply_name},
    {"auto-pause", 0, NULL, "pause it at its end instead of ending it", apply_auto_pause},
    {"json", 0, NULL, "print the server's object", apply_json},
    CLIENT_OPTIONS,
};
const struct cli_syntax create_syntax = {options, ARRAY_SIZE(options), positional};

void create_options_done(struct create_options *o)
{
    for (size_t i = 0; i < o->n_metadata; i++)
        free(o->metadata[i]);
    o->n_metadata = 0;
    env_list_done(&o->env);
}
