#include "cli/client/ctx.h"

enum action { LS, GET, TOUCH, BRANCH, LOG, REWIND, MERGE, RM };
#define OF(action) (1u << (action))

static const struct client_action actions[] = {
    [LS] = {"ls", "[CONVERSATION]", 0, 1, ctx_ls, NULL},
    [GET] = {"get", "ID, or CONVERSATION PATH", 1, 2, ctx_get, NULL},
    [TOUCH] = {"touch", "ID, or CONVERSATION PATH", 1, 2, ctx_touch, NULL},
    [BRANCH] = {"branch", "CONVERSATION FROM TO", 3, 3, ctx_branch, NULL},
    [LOG] = {"log", "ID, or CONVERSATION PATH", 1, 2, ctx_log, NULL},
    [REWIND] = {"rewind", "ID MESSAGE, or CONVERSATION PATH MESSAGE", 1, 3, ctx_rewind, NULL},
    [MERGE] = {"merge", "CONVERSATION SOURCE TARGET", 3, 3, ctx_merge, NULL},
    [RM] = {"rm", "ID...", 0, CLIENT_ARGS_MAX, ctx_rm, NULL},
};

/* ---- the command line ------------------------------------------------------------------------ */

static int check_argument(const struct client_actions *o, const char *arg, struct sg_error *e)
{
    if (*arg)
        return 0;
    return err_invalid(e, "an argument of %s is empty: it takes %s", o->action->name,
                       o->action->arguments);
}

#define FLAG(member) CLI_FLAG(ctx_options, member)
#define TEXT(member) CLI_FILLED(ctx_options, member, "the value")
static const struct cli_option options[] = {
    {"status", 's', "STATUS", "ls: creating, ready, terminated, error (several: a,b), or all",
     TEXT(status), .actions = OF(LS)},
    {"inherit", 0, "none|files|state|replay",
     "branch: what the new path gets from the old one (default: none)", TEXT(inherit),
     .actions = OF(BRANCH)},
    {"state", 0, NULL, "branch: variables and files, as --inherit state", FLAG(state),
     .actions = OF(BRANCH)},
    {"replay", 0, NULL, "branch: as --inherit replay: cells run again where variables are lost",
     FLAG(replay), .actions = OF(BRANCH)},
    {"at", 0, "MESSAGE", "branch: from the state before this message", TEXT(at),
     .actions = OF(BRANCH)},
    {"wait", 0, "TIME", "branch: how long to wait for a cell to end: 500ms, 30s",
     CLI_AT(client_wait, ctx_options, wait_ms), .actions = OF(BRANCH)},
    {"checkpoint", 0, "ID", "rewind: to this checkpoint, instead of a message", TEXT(checkpoint),
     .actions = OF(REWIND)},
    {"accept-files", 0, NULL,
     "rewind, branch --at: accept the files alone if the variables are lost", FLAG(accept_files),
     .actions = OF(BRANCH) | OF(REWIND)},
    {"ttl", 0, "TIME", "touch, branch: how long an unused context lives: 10m, 2h",
     CLI_AT(client_seconds, ctx_options, ttl_s), .actions = OF(TOUCH) | OF(BRANCH)},
    {"conversation", 0, "ID", "rm: all contexts of this conversation", TEXT(conversation),
     .actions = OF(RM)},
    {"expired", 0, NULL, "rm: all expired contexts", FLAG(expired), .actions = OF(RM)},
    {"yes", 'y', NULL, "rm: do not ask", FLAG(yes), .actions = OF(RM)},
    {"quiet", 'q', NULL, "ls: print the ids only; rm: print nothing", FLAG(base.quiet),
     .actions = OF(LS) | OF(RM)},
    {"json", 0, NULL, "print the server's answer", FLAG(base.json)},
    CLIENT_OPTIONS,
};

static int check_rm(const struct ctx_options *o, struct sg_error *e)
{
    int ways = (o->base.n_args > 0) + (o->conversation != NULL) + o->expired;

    if (ways == 0)
        return err_invalid(e, "no context given: 'sandglass ctx ls' lists them");
    if (ways > 1)
        return err_invalid(e, "give ids, --conversation or --expired: only one of them");
    return 0;
}

const char *ctx_inherit(const struct ctx_options *o)
{
    if (o->replay)
        return "replay";
    /* --at means the path as it was before a message, with its variables and not only its files. */
    if (o->state || (o->at && !o->inherit))
        return "state";
    return o->inherit;
}

static int check_branch(const struct ctx_options *o, struct sg_error *e)
{
    const char *inherit = ctx_inherit(o);
    bool live = inherit && (strcmp(inherit, "state") == 0 || strcmp(inherit, "replay") == 0);

    if ((o->inherit != NULL) + o->state + o->replay > 1)
        return err_invalid(e, "give --inherit, --state or --replay: only one of them");
    if ((o->at || client_given(&o->base, "wait")) && !live)
        return err_invalid(e, "%s needs --state or --replay", o->at ? "--at" : "--wait");
    if (o->accept_files && !o->at)
        return err_invalid(e, "--accept-files needs --at");
    return 0;
}

static int check_rewind(const struct ctx_options *o, struct sg_error *e)
{
    if (o->checkpoint && o->base.n_args == 3)
        return err_invalid(e, "give a message or --checkpoint, not both");
    if (!o->checkpoint && o->base.n_args == 1)
        return err_invalid(
            e, "no target given: name a message or --checkpoint; 'sandglass ctx log' lists them");
    return 0;
}

static int check(void *self, char **rest UNUSED, struct sg_error *e)
{
    const struct ctx_options *o = self;
    const struct client_action *a = o->base.action;

    return a == &actions[RM]       ? check_rm(o, e)
           : a == &actions[BRANCH] ? check_branch(o, e)
           : a == &actions[REWIND] ? check_rewind(o, e)
                                   : 0;
}

const struct client_verb ctx_verb = {
    .name = "ctx",
    .usage = "ls [OPTION]... [CONVERSATION]\n"
             "get [OPTION]... ID\n"
             "get [OPTION]... CONVERSATION PATH\n"
             "touch [OPTION]... ID\n"
             "touch [OPTION]... CONVERSATION PATH\n"
             "branch [OPTION]... CONVERSATION FROM TO\n"
             "log [OPTION]... ID\n"
             "log [OPTION]... CONVERSATION PATH\n"
             "rewind [OPTION]... ID MESSAGE\n"
             "rewind [OPTION]... CONVERSATION PATH MESSAGE\n"
             "merge [OPTION]... CONVERSATION SOURCE TARGET\n"
             "rm [OPTION]... ID...\n"
             "rm [OPTION]... --conversation CONVERSATION\n"
             "rm [OPTION]... --expired",
    .about = "Shows and changes execution contexts: the sandboxes that belong to the paths of "
             "conversations.\nWith a conversation, ls shows the tree of its paths. log shows the "
             "checkpoints of a path, which\nrewind and branch go back to.",
    .syntax = &(const struct cli_syntax){options, ARRAY_SIZE(options), CLIENT_ACTIONS_SYNTAX},
    .options_size = sizeof(struct ctx_options),
    .check = check,
    .fn = client_actions_fn,
    .actions = actions,
    .n_actions = ARRAY_SIZE(actions),
    .check_argument = check_argument,
};
