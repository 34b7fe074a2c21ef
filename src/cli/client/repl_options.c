#include "cli/client/repl_options.h"

#include "cli/client/url.h"
#include "lib/base/languages.h"

static int take_language(void *to, const struct cli_option *o, const char *value,
                         struct sg_error *e)
{
    if (!url_is_plain_name(value))
        return err_invalid(e, "--language '%.64s' is not the name of a language, such as 'python'",
                           value);
    return cli_text(to, o, value, e);
}

static int take_context(void *to, const struct cli_option *o, const char *value, struct sg_error *e)
{
    if (!url_is_plain_name(value))
        return err_invalid(e, "--context '%.64s' is not the id of a context", value);
    return cli_text(to, o, value, e);
}

static int positional(void *self, const char *arg, struct sg_error *e)
{
    struct repl_options *o = self;

    if (o->id)
        return err_invalid(e, "unexpected argument '%.64s'", arg);
    o->id = arg;
    return client_check_id(arg, e);
}

static const struct cli_option options[] = {
    {"language", 'l', "NAME", LANGUAGES_HELP ", ...",
     CLI_AT(take_language, repl_options, language)},
    {"context", 'c', "ID", "continue in this context of the sandbox, and leave it there",
     CLI_AT(take_context, repl_options, context)},
    {"timeout", 0, "TIME", "how long an idle sandbox lives (default: 15m)",
     CLI_AT(client_seconds, repl_options, timeout_s)},
    {"env", 'e', "NAME[=VALUE]", "set a variable, or copy it from the environment",
     CLI_AT(env_option, repl_options, env)},
    {"keep", 0, NULL, "keep the sandbox when the session ends", CLI_FLAG(repl_options, keep)},
    {"no-checkpoints", 0, NULL, "make no checkpoint before each cell; no :back",
     CLI_FLAG(repl_options, no_checkpoints)},
    {"json", 0, NULL, "run standard input and print the server's events",
     CLI_FLAG(repl_options, json)},
    {"no-color", 0, NULL, "no colours", CLI_FLAG(repl_options, no_colour)},
    CLIENT_OPTIONS,
};
const struct cli_syntax repl_syntax = {options, ARRAY_SIZE(options), positional, 0};

int repl_options_check(void *self, char **rest UNUSED, struct sg_error *e)
{
    struct repl_options *o = self;

    if (o->context && !o->id)
        return err_invalid(e, "--context is of a sandbox: give the id of that too");
    if (o->context && o->language)
        return err_invalid(e, "--context has its language: give it or --language");
    if (!o->language)
        o->language = REPL_LANGUAGE;
    if (o->id && o->env.n > 0)
        return err_invalid(e, "--env is for a new sandbox: %s has its variables already", o->id);
    return 0;
}
