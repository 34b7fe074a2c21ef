#include "cli/client/agents.h"

#include "cli/client/url.h"

struct agents_action {
    const char *name;
    const char *arguments; /* names of the arguments, for messages */
    size_t min, max;       /* how many arguments it takes */
    unsigned options;      /* the options it takes, AGENTS_* */
    int (*fn)(struct client *c, struct agents_options *o);
};

#define ACTIONS "ls, start, show, logs, extend or stop"

static const struct agents_action actions[] = {
    {"ls", "no arguments", 0, 0, AGENTS_JSON | AGENTS_QUIET, agents_ls_fn},
    {"start", "-- COMMAND [ARG]...", 1, AGENTS_ARGS_MAX,
     AGENTS_JSON | AGENTS_TIMEOUT | AGENTS_START, agents_start_fn},
    {"show", "ID", 1, 1, AGENTS_JSON, agents_show_fn},
    {"logs", "ID", 1, 1, AGENTS_JSON, agents_logs_fn},
    {"extend", "ID", 1, 1, AGENTS_JSON | AGENTS_TIMEOUT, agents_extend_fn},
    {"stop", "ID...", 1, AGENTS_ARGS_MAX, AGENTS_JSON | AGENTS_QUIET, agents_stop_fn},
};

static const struct agents_action *find_action(const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(actions); i++)
        if (strcmp(actions[i].name, name) == 0)
            return &actions[i];
    return NULL;
}

static int positional(void *self, const char *arg, struct sg_error *e)
{
    struct agents_options *o = self;

    if (!o->action) {
        o->action = find_action(arg);
        return o->action ? 0 : err_set(e, SG_ERR_INVALID, -EINVAL, "'%.64s' is not " ACTIONS, arg);
    }
    if (o->n_args == o->action->max)
        return err_set(e, SG_ERR_INVALID, -EINVAL, "unexpected argument '%.64s': %s takes %s", arg,
                       o->action->name, o->action->arguments);
    if (o->action->fn != agents_start_fn && !url_is_plain_name(arg))
        return err_set(e, SG_ERR_INVALID, -EINVAL,
                       "'%.64s' is not the id of an agent: 'sandglass agents ls' lists them", arg);
    o->args[o->n_args++] = arg;
    return 0;
}

/* ---- options --------------------------------------------------------------------------------- */

#define FLAG(name, bit)                                                        \
    static int apply_##name(void *self, const char *value, struct sg_error *e) \
    {                                                                          \
        struct agents_options *o = self;                                       \
                                                                               \
        (void)value, (void)e;                                                  \
        o->given |= (bit);                                                     \
        return 0;                                                              \
    }
FLAG(json, AGENTS_JSON)
FLAG(quiet, AGENTS_QUIET)

static int start_text(struct agents_options *o, const char *option, const char **to,
                      const char *value, struct sg_error *e)
{
    if (!*value)
        return err_set(e, SG_ERR_INVALID, -EINVAL, "%s: the value is empty", option);
    o->given |= AGENTS_START;
    o->start_only = option;
    *to = value;
    return 0;
}

#define START_TEXT(name)                                                       \
    static int apply_##name(void *self, const char *value, struct sg_error *e) \
    {                                                                          \
        struct agents_options *o = self;                                       \
                                                                               \
        return start_text(o, "--" #name, &o->name, value, e);                  \
    }
START_TEXT(template)
START_TEXT(sandbox)
START_TEXT(conversation)
START_TEXT(path)
START_TEXT(source)
START_TEXT(into)
START_TEXT(cwd)
START_TEXT(network)

static int apply_user(void *self, const char *value, struct sg_error *e)
{
    struct agents_options *o = self;
    int r = start_text(o, "--user", &o->user, value, e);

    return r < 0 ? r : client_take_user(value, &o->user, e);
}

static int apply_serve_fs(void *self, const char *value, struct sg_error *e)
{
    struct agents_options *o = self;

    (void)value, (void)e;
    o->given |= AGENTS_START;
    o->start_only = "--serve-fs";
    o->serve_fs = true;
    return 0;
}

static int apply_env(void *self, const char *value, struct sg_error *e)
{
    struct agents_options *o = self;

    o->given |= AGENTS_START;
    o->start_only = "--env";
    return env_list_set_or_copy(&o->env, "--env", value, e);
}

static int apply_env_file(void *self, const char *value, struct sg_error *e)
{
    struct agents_options *o = self;

    if (o->n_env_files == AGENTS_ENV_FILES_MAX)
        return err_set(e, SG_ERR_INVALID, -E2BIG, "--env-file: more than %d files",
                       AGENTS_ENV_FILES_MAX);
    return start_text(o, "--env-file", &o->env_files[o->n_env_files++], value, e);
}

static int apply_timeout(void *self, const char *value, struct sg_error *e)
{
    struct agents_options *o = self;

    o->given |= AGENTS_TIMEOUT;
    return client_parse_seconds("--timeout", value, &o->timeout_s, e);
}

static const struct cli_option options[] = {
    {"template", 0, "NAME", "start: the template of its sandbox", apply_template},
    {"timeout", 0, "TIME", "start, extend: how long it may run: 30m, 2h", apply_timeout},
    {"env", 'e', "NAME[=VALUE]", "start: set a variable, or copy it", apply_env},
    {"env-file", 0, "FILE", "start: set variables from lines NAME=VALUE", apply_env_file},
    {"source", 's', "PATH", "start: put in a directory, a tar or a git bundle", apply_source},
    {"into", 0, "DIR", "start: where to (default ~/project)", apply_into},
    {"serve-fs", 0, NULL, "start: answer its file and terminal requests inside", apply_serve_fs},
    {"sandbox", 0, "ID", "start: in this sandbox, not one of its own", apply_sandbox},
    {"conversation", 0, "ID", "start: in the sandbox of this conversation's path",
     apply_conversation},
    {"path", 0, "ID", "start: ... of this path (default main)", apply_path},
    {"network", 0, "block|open|LIST", "start: what its sandbox may reach", apply_network},
    {"user", 'u', "NAME", "start: user (default) or root, inside", apply_user},
    {"cwd", 'w', "DIR", "start: directory to start in", apply_cwd},
    {"quiet", 'q', NULL, "ls: print the ids only; stop: print nothing", apply_quiet},
    {"json", 0, NULL, "print the server's answer", apply_json},
    CLIENT_OPTIONS,
};
static const struct cli_syntax syntax = {options, ARRAY_SIZE(options), positional};

static const char *foreign_option(const struct agents_options *o)
{
    unsigned foreign = o->given & ~o->action->options;

    return foreign & AGENTS_START     ? o->start_only
           : foreign & AGENTS_TIMEOUT ? "--timeout"
           : foreign & AGENTS_QUIET   ? "--quiet"
                                      : NULL;
}

static int check(void *self, char **rest, struct sg_error *e)
{
    const struct agents_options *o = self;

    (void)rest;
    if (!o->action)
        return err_set(e, SG_ERR_INVALID, -EINVAL, "what to do is missing: " ACTIONS);
    if (o->n_args < o->action->min)
        return err_set(e, SG_ERR_INVALID, -EINVAL, "%s takes %s", o->action->name,
                       o->action->arguments);
    if (foreign_option(o))
        return err_set(e, SG_ERR_INVALID, -EINVAL, "%s is no option of %s", foreign_option(o),
                       o->action->name);
    if (o->action->fn == agents_extend_fn && !(o->given & AGENTS_TIMEOUT))
        return err_set(e, SG_ERR_INVALID, -EINVAL, "extend needs --timeout: how long from now on");
    if (o->sandbox && o->conversation)
        return err_set(e, SG_ERR_INVALID, -EINVAL, "give --sandbox or --conversation: one of them");
    if (o->path && !o->conversation)
        return err_set(e, SG_ERR_INVALID, -EINVAL, "--path needs --conversation");
    if (o->into && !o->source)
        return err_set(e, SG_ERR_INVALID, -EINVAL, "--into is for what --source puts in");
    return 0;
}

static int fn(struct client *c, void *self)
{
    struct agents_options *o = self;
    int status = o->action->fn(c, o);

    env_list_done(&o->env);
    return status;
}

void agents_path(struct strbuf *path, const char *id, const char *rest)
{
    strbuf_init(path, 1024);
    strbuf_addstr(path, "/v1/agents/");
    url_escape(path, id);
    strbuf_addstr(path, rest);
}

const struct client_verb agents_verb = {
    .name = "agents",
    .usage = "ls [OPTION]...\n"
             "start [OPTION]... -- COMMAND [ARG]...\n"
             "show [OPTION]... ID\n"
             "logs [OPTION]... ID\n"
             "extend [OPTION]... --timeout TIME ID\n"
             "stop [OPTION]... ID...",
    .about = "Starts, lists and ends agents of the Agent Client Protocol that a server hosts in "
             "sandboxes.\nMessages to and from them go over a WebSocket, /v1/agents/ID/acp.",
    .syntax = &syntax,
    .options_size = sizeof(struct agents_options),
    .check = check,
    .fn = fn,
};
