#include "cli/run_inputs.h"

#include "cli/text_file.h"
#include "serve/server.h"

#define CODE_HINT "put the data into a file and show it with --mount"
#define ENV_HINT  "split it, or pass the values in a file with --mount"

/* A suffix decides unless --language does; a file without one, such as a pipe, is in the default
 * language. */
static int language_of(const struct run_options *o, enum sg_language *ret, struct sg_error *e)
{
    const char *base, *dot;

    *ret = o->language;
    if (o->language_given || o->source != RUN_SOURCE_FILE)
        return 0;
    base = strrchr(o->source_text, '/');
    base = base ? base + 1 : o->source_text;
    dot = strrchr(base, '.');
    if (!dot || dot == base)
        return 0;
    return sg_language_of_path(o->source_text, ret, e);
}

static int load_code(const struct run_options *o, struct run_inputs *in, struct sg_error *e)
{
    switch (o->source) {
    case RUN_SOURCE_CODE:
        in->code = xstrdup(o->source_text);
        in->code_len = strlen(in->code);
        return 0;
    case RUN_SOURCE_FILE:
        return text_file_load("code", o->source_text, RUN_CODE_MAX, CODE_HINT, &in->code,
                              &in->code_len, e);
    case RUN_SOURCE_STDIN:
        return text_fd_load("code", "standard input", STDIN_FILENO, RUN_CODE_MAX, CODE_HINT,
                            &in->code, &in->code_len, e);
    case RUN_SOURCE_NONE:
    case RUN_SOURCE_COMMAND:
    default:
        return 0;
    }
}

static int load_env_file(struct env_list *env, const char *path, struct sg_error *e)
{
    AUTO(free_p) char *text = NULL;
    size_t len;
    int r = text_file_load("environment file", path, ENV_FILE_MAX, ENV_HINT, &text, &len, e);

    return r < 0 ? r : env_list_parse(env, path, text, e);
}

static int load_env(const struct run_options *o, struct env_list *env, struct sg_error *e)
{
    int r;

    for (size_t i = 0; i < o->n_env_files; i++) {
        r = load_env_file(env, o->env_files[i], e);
        if (r < 0)
            return r;
    }
    for (size_t i = 0; i < o->env.n; i++) {
        r = env_list_set(env, "--env", o->env.v[i], e);
        if (r < 0)
            return r;
    }
    /* Programs draw for the terminal that shows them, which is the caller's. */
    if (o->tty && getenv("TERM") && !env_list_has(env, "TERM"))
        return env_list_set_or_copy(env, "--tty", "TERM", e);
    return 0;
}

/* What the operator says of all traffic holds here too: where names are looked up, what nobody may
 * reach. It is in the server's settings. */
static int load_guard(const struct run_options *o, struct run_inputs *in, struct sg_error *e)
{
    AUTO(strbuf_done) struct strbuf text = {0};
    struct settings given, used;
    int r = 0;

    if (o->network.mode != SG_NETWORK_BLOCK)
        r = serve_settings(&(struct serve_call){0}, &given, e);
    if (r < 0 || o->network.mode == SG_NETWORK_BLOCK)
        return r;
    settings_init(&used);
    used.log_level = LEVEL_ERROR; /* standard error is the program's */
    for (enum setting k = 0; k < SETTING_MAX_; k++)
        if (strncmp(setting_info(k)->key, "egress_", strlen("egress_")) == 0)
            settings_copy(&used, &given, k);
    strbuf_init(&text, SETTINGS_TEXT_MAX);
    settings_print(&used, &text);
    in->guard_settings = strbuf_detach(&text, NULL);
    in->guard_program = given.guard_program[0] ? xstrdup(given.guard_program) : NULL;
    return 0;
}

static int load_all(const struct run_options *o, struct run_inputs *in, struct sg_error *e)
{
    int r = language_of(o, &in->language, e);

    if (r == 0)
        r = policy_file_load(&in->policy, o->policy, e);
    if (r == 0)
        r = load_env(o, &in->env, e);
    if (r == 0)
        r = load_guard(o, in, e);
    if (r == 0)
        r = load_code(o, in, e);
    return r;
}

int run_inputs_load(const struct run_options *o, struct run_inputs *ret, struct sg_error *e)
{
    /* In place: the policy points into itself. */
    *ret = (struct run_inputs){0};
    int r = load_all(o, ret, e);

    if (r < 0)
        run_inputs_done(ret);
    return r;
}

void run_inputs_done(struct run_inputs *in)
{
    free(in->code);
    free(in->guard_settings);
    free(in->guard_program);
    env_list_done(&in->env);
    policy_file_done(&in->policy);
    *in = (struct run_inputs){0};
}
