#include "cli/client/agents.h"

#include "cli/client/url.h"

enum action { LS, START, SHOW, LOGS, EXTEND, STOP };
#define OF(action) (1u << (action))

static const struct client_action actions[] = {
    [LS] = {"ls", "no arguments", 0, 0, agents_ls_fn, NULL},
    [START] = {"start", "-- COMMAND [ARG]...", 1, CLIENT_ARGS_MAX, agents_start_fn, NULL},
    [SHOW] = {"show", "ID", 1, 1, agents_show_fn, NULL},
    [LOGS] = {"logs", "ID", 1, 1, agents_logs_fn, NULL},
    [EXTEND] = {"extend", "ID", 1, 1, agents_extend_fn, NULL},
    [STOP] = {"stop", "ID...", 1, CLIENT_ARGS_MAX, agents_stop_fn, NULL},
};

static int check_argument(const struct client_actions *o, const char *arg, struct sg_error *e)
{
    if (o->action == &actions[START] || url_is_plain_name(arg))
        return 0;
    return err_invalid(e, "'%.64s' is not the id of an agent: 'sandglass agents ls' lists them",
                       arg);
}

/* ---- options --------------------------------------------------------------------------------- */

static int take_user(void *to, const struct cli_option *o, const char *value, struct sg_error *e)
{
    int r = cli_filled(to, o, value, e);

    return r < 0 ? r : client_user(to, o, value, e);
}

#define TEXT(member) CLI_FILLED(agents_options, member, "the value"), .actions = OF(START)
static const struct cli_option options[] = {
    {"template", 0, "NAME", "start: the template of its sandbox", TEXT(template)},
    {"timeout", 0, "TIME", "start, extend: how long it may run: 30m, 2h",
     CLI_AT(client_seconds, agents_options, timeout_s), .actions = OF(START) | OF(EXTEND)},
    {"env", 'e', "NAME[=VALUE]", "start: set a variable, or copy it",
     CLI_AT(env_option, agents_options, env), .actions = OF(START)},
    {"env-file", 0, "FILE", "start: set variables from lines NAME=VALUE",
     CLI_AT(env_file_option, agents_options, env_files), .actions = OF(START)},
    {"source", 's', "PATH", "start: put a directory, a tar or a git bundle into the sandbox",
     TEXT(source)},
    {"into", 0, "DIR", "start: where --source goes (default ~/project)", TEXT(into)},
    {"serve-fs", 0, NULL, "start: answer the agent's file and terminal requests inside",
     CLI_FLAG(agents_options, serve_fs), .actions = OF(START)},
    {"sandbox", 0, "ID", "start: use this sandbox, not a new one", TEXT(sandbox)},
    {"conversation", 0, "ID", "start: use the sandbox of this conversation", TEXT(conversation)},
    {"path", 0, "ID", "start: use this path of the conversation (default main)", TEXT(path)},
    {"network", 0, "block|open|LIST", "start: what the sandbox may reach", TEXT(network)},
    {"user", 'u', "NAME", "start: user inside: user (default) or root",
     CLI_AT(take_user, agents_options, user), .words = "the value", .actions = OF(START)},
    {"cwd", 'w', "DIR", "start: directory to start in", TEXT(cwd)},
    {"quiet", 'q', NULL, "ls: print the ids only; stop: print nothing",
     CLI_FLAG(client_actions, quiet), .actions = OF(LS) | OF(STOP)},
    {"json", 0, NULL, "print the server's answer", CLI_FLAG(client_actions, json)},
    CLIENT_OPTIONS,
};
static const struct cli_syntax syntax = {options, ARRAY_SIZE(options), CLIENT_ACTIONS_SYNTAX};

static int check(void *self, char **rest UNUSED, struct sg_error *e)
{
    const struct agents_options *o = self;

    if (o->base.action == &actions[EXTEND] && !o->timeout_s)
        return err_invalid(e, "extend needs --timeout: how long from now on");
    if (o->sandbox && o->conversation)
        return err_invalid(e, "give --sandbox or --conversation, not both");
    if (o->path && !o->conversation)
        return err_invalid(e, "--path needs --conversation");
    if (o->into && !o->source)
        return err_invalid(e, "--into is for what --source puts in");
    return 0;
}

static int fn(struct client *c, void *self, struct sg_error *e)
{
    struct agents_options *o = self;
    int status = client_actions_fn(c, o, e);

    env_list_done(&o->env);
    return status;
}

const struct client_verb agents_verb = {
    .name = "agents",
    .usage = "ls [OPTION]...\n"
             "start [OPTION]... -- COMMAND [ARG]...\n"
             "show [OPTION]... ID\n"
             "logs [OPTION]... ID\n"
             "extend [OPTION]... --timeout TIME ID\n"
             "stop [OPTION]... ID...",
    .about = "Starts, lists and ends hosted agents: programs that speak the Agent Client Protocol "
             "and run in\nsandboxes of a server. Clients talk to an agent over a WebSocket, "
             "/v1/agents/ID/acp.",
    .syntax = &syntax,
    .options_size = sizeof(struct agents_options),
    .check = check,
    .fn = fn,
    .actions = actions,
    .n_actions = ARRAY_SIZE(actions),
    .check_argument = check_argument,
};
