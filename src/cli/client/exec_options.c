#include "cli/client/exec_options.h"

#include "lib/text/parse.h"

#define TIMEOUT_MAX_MS (30ull * 24 * 3600 * 1000)

static int positional(void *self, const char *arg, struct sg_error *e)
{
    struct exec_options *o = self;

    o->id = arg;
    return client_check_id(arg, e);
}

static const struct cli_option options[] = {
    {"interactive", 'i', NULL, "pass standard input on", CLI_FLAG(exec_options, interactive)},
    {"tty", 't', NULL, "run on a pseudo-terminal", CLI_FLAG(exec_options, tty)},
    {"user", 'u', "NAME", "user that runs the command (default: the sandbox's user)",
     CLI_AT(client_user, exec_options, user)},
    {"cwd", 'w', "DIR", "directory to start in (default: the user's home)",
     CLI_FILLED(exec_options, cwd, "the name of the directory")},
    {"env", 'e', "NAME[=VALUE]", "set a variable, or copy it from the environment",
     CLI_AT(env_option, exec_options, env)},
    {"timeout", 0, "TIME", "end the command after this time: 500ms, 30s, 5m (default: never)",
     CLI_TIME(exec_options, timeout_ms, 1, TIMEOUT_MAX_MS, "1ms and 30d")},
    {"detach", 'd', NULL, "leave the command running and print its process id",
     CLI_FLAG(exec_options, detach)},
    CLIENT_OPTIONS,
};
const struct cli_syntax exec_syntax = {options, ARRAY_SIZE(options), positional, 0};

int exec_options_check(void *self, char **rest, struct sg_error *e)
{
    struct exec_options *o = self;

    if (!o->id)
        return err_invalid(e, "no sandbox given: exec ID COMMAND; 'sandglass ps' lists them");
    if (!rest || !*rest || !**rest)
        return err_invalid(e, "no command given: name one, such as bash");
    if (o->detach && (o->interactive || o->tty || o->timeout_ms))
        return err_invalid(
            e, "--detach leaves the program alone: it excludes --interactive, --tty and --timeout");
    o->command = rest;
    return 0;
}
