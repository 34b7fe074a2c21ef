#include "cli/client/ctx.h"

#include "cli/client/url.h"

struct ctx_action {
    const char *name;
    const char *arguments; /* names of the arguments, for messages */
    size_t min, max;       /* how many arguments it takes */
    unsigned options;      /* the options it takes, CTX_* */
    int (*fn)(struct client *c, const struct ctx_options *o);
};

#define ACTIONS "ls, get, touch, branch, log, rewind, merge or rm"

static const struct ctx_action actions[] = {
    {"ls", "[CONVERSATION]", 0, 1, CTX_JSON | CTX_QUIET | CTX_STATUS, ctx_ls},
    {"get", "ID, or CONVERSATION PATH", 1, 2, CTX_JSON, ctx_get},
    {"touch", "ID, or CONVERSATION PATH", 1, 2, CTX_JSON | CTX_TTL, ctx_touch},
    {"branch", "CONVERSATION FROM TO", 3, 3,
     CTX_JSON | CTX_INHERIT | CTX_STATE | CTX_REPLAY | CTX_AT | CTX_WAIT | CTX_TTL |
         CTX_ACCEPT_FILES,
     ctx_branch},
    {"log", "ID, or CONVERSATION PATH", 1, 2, CTX_JSON, ctx_log},
    {"rewind", "ID MESSAGE, or CONVERSATION PATH MESSAGE", 1, 3,
     CTX_JSON | CTX_CHECKPOINT | CTX_ACCEPT_FILES, ctx_rewind},
    {"merge", "CONVERSATION SOURCE TARGET", 3, 3, CTX_JSON, ctx_merge},
    {"rm", "ID...", 0, CTX_ARGS_MAX,
     CTX_JSON | CTX_QUIET | CTX_CONVERSATION | CTX_EXPIRED | CTX_YES, ctx_rm},
};

/* ---- the command line ------------------------------------------------------------------------ */

static const struct ctx_action *find_action(const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(actions); i++)
        if (strcmp(actions[i].name, name) == 0)
            return &actions[i];
    return NULL;
}

static int positional(void *self, const char *arg, struct sg_error *e)
{
    struct ctx_options *o = self;

    if (!o->action) {
        o->action = find_action(arg);
        return o->action ? 0 : err_set(e, SG_ERR_INVALID, -EINVAL, "'%.64s' is not " ACTIONS, arg);
    }
    if (o->n_args == o->action->max)
        return err_set(e, SG_ERR_INVALID, -EINVAL, "unexpected argument '%.64s': %s takes %s", arg,
                       o->action->name, o->action->arguments);
    if (!*arg)
        return err_set(e, SG_ERR_INVALID, -EINVAL, "an argument of %s is empty: it takes %s",
                       o->action->name, o->action->arguments);
    o->args[o->n_args++] = arg;
    return 0;
}

#define FLAG(name, bit)                                                        \
    static int apply_##name(void *self, const char *value, struct sg_error *e) \
    {                                                                          \
        struct ctx_options *o = self;                                          \
                                                                               \
        (void)value, (void)e;                                                  \
        o->given |= (bit);                                                     \
        return 0;                                                              \
    }
FLAG(json, CTX_JSON)
FLAG(quiet, CTX_QUIET)
FLAG(expired, CTX_EXPIRED)
FLAG(yes, CTX_YES)
FLAG(state, CTX_STATE)
FLAG(replay, CTX_REPLAY)
FLAG(accept_files, CTX_ACCEPT_FILES)

#define TEXT(name, bit)                                                                    \
    static int apply_##name(void *self, const char *value, struct sg_error *e)             \
    {                                                                                      \
        struct ctx_options *o = self;                                                      \
                                                                                           \
        if (!*value)                                                                       \
            return err_set(e, SG_ERR_INVALID, -EINVAL, "--" #name ": the value is empty"); \
        o->given |= (bit);                                                                 \
        o->name = value;                                                                   \
        return 0;                                                                          \
    }
TEXT(status, CTX_STATUS)
TEXT(inherit, CTX_INHERIT)
TEXT(conversation, CTX_CONVERSATION)
TEXT(at, CTX_AT)
TEXT(checkpoint, CTX_CHECKPOINT)

static int apply_ttl(void *self, const char *value, struct sg_error *e)
{
    struct ctx_options *o = self;

    o->given |= CTX_TTL;
    return client_parse_seconds("--ttl", value, &o->ttl_s, e);
}

static int apply_wait(void *self, const char *value, struct sg_error *e)
{
    struct ctx_options *o = self;

    o->given |= CTX_WAIT;
    return client_parse_wait(value, &o->wait_ms, e);
}

static const struct cli_option options[] = {
    {"status", 's', "STATUS", "ls: creating, ready, terminated, error (several: a,b), or all",
     apply_status},
    {"inherit", 0, "none|files|state|replay",
     "branch: what the new path gets of the other (default: none)", apply_inherit},
    {"state", 0, NULL, "branch: variables and files, as --inherit state", apply_state},
    {"replay", 0, NULL, "branch: the same, and cells run again if need be", apply_replay},
    {"at", 0, "MESSAGE", "branch: as it was before this message", apply_at},
    {"wait", 0, "TIME", "branch: wait so long for a cell to end: 500ms, 30s", apply_wait},
    {"checkpoint", 0, "ID", "rewind: to this one, in place of a message", apply_checkpoint},
    {"accept-files", 0, NULL, "rewind, branch --at: the files alone will do if variables are lost",
     apply_accept_files},
    {"ttl", 0, "TIME", "touch, branch: how long it lives unused: 10m, 2h", apply_ttl},
    {"conversation", 0, "ID", "rm: all contexts of this conversation", apply_conversation},
    {"expired", 0, NULL, "rm: those whose time is over", apply_expired},
    {"yes", 'y', NULL, "rm: do not ask", apply_yes},
    {"quiet", 'q', NULL, "ls: print the ids only; rm: print nothing", apply_quiet},
    {"json", 0, NULL, "print the server's answer", apply_json},
    CLIENT_OPTIONS,
};
static const struct cli_syntax syntax = {options, ARRAY_SIZE(options), positional};

/* The first option that was given and does not belong to the action. */
static const char *foreign_option(const struct ctx_options *o)
{
    static const struct {
        enum ctx_option bit;
        const char *name;
    } names[] = {{CTX_STATUS, "--status"},
                 {CTX_INHERIT, "--inherit"},
                 {CTX_TTL, "--ttl"},
                 {CTX_CONVERSATION, "--conversation"},
                 {CTX_EXPIRED, "--expired"},
                 {CTX_YES, "--yes"},
                 {CTX_QUIET, "--quiet"},
                 {CTX_STATE, "--state"},
                 {CTX_REPLAY, "--replay"},
                 {CTX_AT, "--at"},
                 {CTX_WAIT, "--wait"},
                 {CTX_CHECKPOINT, "--checkpoint"},
                 {CTX_ACCEPT_FILES, "--accept-files"}};

    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        if (o->given & names[i].bit & ~o->action->options)
            return names[i].name;
    return NULL;
}

static int check_rm(const struct ctx_options *o, struct sg_error *e)
{
    unsigned ways = (o->n_args > 0) + !!(o->given & CTX_CONVERSATION) + !!(o->given & CTX_EXPIRED);

    if (ways == 0)
        return err_set(e, SG_ERR_INVALID, -EINVAL,
                       "no context given: 'sandglass ctx ls' lists them");
    if (ways > 1)
        return err_set(e, SG_ERR_INVALID, -EINVAL,
                       "give ids, --conversation or --expired: one of them");
    return 0;
}

const char *ctx_inherit(const struct ctx_options *o)
{
    if (o->given & CTX_REPLAY)
        return "replay";
    /* --at means the path as it was before a message, with its variables and not only its files. */
    if (o->given & CTX_STATE || (o->given & CTX_AT && !o->inherit))
        return "state";
    return o->inherit;
}

static int check_branch(const struct ctx_options *o, struct sg_error *e)
{
    const char *inherit = ctx_inherit(o);
    bool live = inherit && (strcmp(inherit, "state") == 0 || strcmp(inherit, "replay") == 0);

    if (!!(o->given & CTX_INHERIT) + !!(o->given & CTX_STATE) + !!(o->given & CTX_REPLAY) > 1)
        return err_set(e, SG_ERR_INVALID, -EINVAL,
                       "give --inherit, --state or --replay: one of them");
    if (o->given & (CTX_AT | CTX_WAIT) && !live)
        return err_set(e, SG_ERR_INVALID, -EINVAL, "%s needs --state or --replay",
                       o->given & CTX_AT ? "--at" : "--wait");
    if (o->given & CTX_ACCEPT_FILES && !(o->given & CTX_AT))
        return err_set(e, SG_ERR_INVALID, -EINVAL, "--accept-files needs --at");
    return 0;
}

static int check_rewind(const struct ctx_options *o, struct sg_error *e)
{
    if (o->given & CTX_CHECKPOINT && o->n_args == 3)
        return err_set(e, SG_ERR_INVALID, -EINVAL, "give a message or --checkpoint: one of them");
    if (!(o->given & CTX_CHECKPOINT) && o->n_args == 1)
        return err_set(e, SG_ERR_INVALID, -EINVAL,
                       "how far back is missing: a message or --checkpoint; 'sandglass ctx log' "
                       "lists them");
    return 0;
}

static int check(void *self, char **rest, struct sg_error *e)
{
    const struct ctx_options *o = self;

    (void)rest;
    if (!o->action)
        return err_set(e, SG_ERR_INVALID, -EINVAL, "what to do is missing: " ACTIONS);
    if (o->n_args < o->action->min)
        return err_set(e, SG_ERR_INVALID, -EINVAL, "%s takes %s", o->action->name,
                       o->action->arguments);
    if (foreign_option(o))
        return err_set(e, SG_ERR_INVALID, -EINVAL, "%s is no option of %s", foreign_option(o),
                       o->action->name);
    return o->action->fn == ctx_rm       ? check_rm(o, e)
           : o->action->fn == ctx_branch ? check_branch(o, e)
           : o->action->fn == ctx_rewind ? check_rewind(o, e)
                                         : 0;
}

static int ctx_fn(struct client *c, void *self)
{
    const struct ctx_options *o = self;

    return o->action->fn(c, o);
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
    .syntax = &syntax,
    .options_size = sizeof(struct ctx_options),
    .check = check,
    .fn = ctx_fn,
};

int ctx_path(struct strbuf *path, const char *id, const char *rest, struct sg_error *e)
{
    if (!url_is_plain_name(id))
        return err_set(e, SG_ERR_INVALID, -EINVAL,
                       "'%.64s' is not the id of a context: 'sandglass ctx ls' lists them", id);
    strbuf_init(path, 1024);
    strbuf_addf(path, "/v1/contexts/%s%s", id, rest);
    return 0;
}
