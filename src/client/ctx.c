#include "client/ctx.h"

#include "client/url.h"

struct ctx_action {
    const char *name;
    const char *arguments; /* for messages */
    size_t min, max;       /* of them */
    unsigned options;      /* CTX_* */
    int (*fn)(struct client *c, const struct ctx_options *o);
};

static const struct ctx_action actions[] = {
    {"ls", "[CONVERSATION]", 0, 1, CTX_JSON | CTX_QUIET | CTX_STATUS, ctx_ls},
    {"get", "ID, or CONVERSATION PATH", 1, 2, CTX_JSON, ctx_get},
    {"touch", "ID, or CONVERSATION PATH", 1, 2, CTX_JSON | CTX_TTL, ctx_touch},
    {"branch", "CONVERSATION FROM TO", 3, 3, CTX_JSON | CTX_INHERIT | CTX_TTL, ctx_branch},
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
        return o->action ? 0
                         : err_set(e, SG_ERR_INVALID, -EINVAL,
                                   "'%.64s' is not ls, get, touch, branch, merge or rm", arg);
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

static int apply_ttl(void *self, const char *value, struct sg_error *e)
{
    struct ctx_options *o = self;

    o->given |= CTX_TTL;
    return client_parse_seconds("--ttl", value, &o->ttl_s, e);
}

static const struct cli_option options[] = {
    {"status", 's', "STATUS", "ls: creating, ready, terminated, error (several: a,b), or all",
     apply_status},
    {"inherit", 0, "none|files", "branch: what the new path gets of the other (default: none)",
     apply_inherit},
    {"ttl", 0, "TIME", "touch, branch with files: how long it lives unused: 10m, 2h", apply_ttl},
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
    } names[] = {{CTX_STATUS, "--status"},   {CTX_INHERIT, "--inherit"},
                 {CTX_TTL, "--ttl"},         {CTX_CONVERSATION, "--conversation"},
                 {CTX_EXPIRED, "--expired"}, {CTX_YES, "--yes"},
                 {CTX_QUIET, "--quiet"}};

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

static int check(void *self, char **rest, struct sg_error *e)
{
    const struct ctx_options *o = self;

    (void)rest;
    if (!o->action)
        return err_set(e, SG_ERR_INVALID, -EINVAL,
                       "what to do is missing: ls, get, touch, branch, merge or rm");
    if (o->n_args < o->action->min)
        return err_set(e, SG_ERR_INVALID, -EINVAL, "%s takes %s", o->action->name,
                       o->action->arguments);
    if (foreign_option(o))
        return err_set(e, SG_ERR_INVALID, -EINVAL, "%s is no option of %s", foreign_option(o),
                       o->action->name);
    return o->action->fn == ctx_rm ? check_rm(o, e) : 0;
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
             "merge [OPTION]... CONVERSATION SOURCE TARGET\n"
             "rm [OPTION]... ID...\n"
             "rm [OPTION]... --conversation CONVERSATION\n"
             "rm [OPTION]... --expired",
    .about = "Shows and changes execution contexts: the sandboxes that belong to the paths of "
             "conversations.\nWith a conversation, ls shows the tree of its paths.",
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
