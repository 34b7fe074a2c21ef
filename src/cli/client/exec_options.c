#include "cli/client/exec_options.h"

#include "lib/text/parse.h"

#define TIMEOUT_MAX_MS (30ull * 24 * 3600 * 1000)

CLIENT_FLAG(exec_options, interactive)
CLIENT_FLAG(exec_options, tty)
CLIENT_FLAG(exec_options, detach)

static int apply_user(void *self, const char *value, struct sg_error *e)
{
    struct exec_options *o = self;

    return client_take_user(value, &o->user, e);
}

static int apply_cwd(void *self, const char *value, struct sg_error *e)
{
    struct exec_options *o = self;

    if (!*value)
        return err_set(e, SG_ERR_INVALID, -EINVAL, "--cwd: the name of the directory is empty");
    o->cwd = value;
    return 0;
}

static int apply_env(void *self, const char *value, struct sg_error *e)
{
    struct exec_options *o = self;

    return env_list_set_or_copy(&o->env, "--env", value, e);
}

static int apply_timeout(void *self, const char *value, struct sg_error *e)
{
    struct exec_options *o = self;
    uint64_t ms;
    int r = parse_duration_ms("--timeout", value, &ms, e);

    if (r < 0)
        return r;
    if (ms < 1 || ms > TIMEOUT_MAX_MS)
        return err_set(e, SG_ERR_INVALID, -ERANGE, "--timeout '%.64s' is not between 1ms and 30d",
                       value);
    o->timeout_ms = ms;
    return 0;
}

static int positional(void *self, const char *arg, struct sg_error *e)
{
    struct exec_options *o = self;

    o->id = arg;
    return client_check_id(arg, e);
}

static const struct cli_option options[] = {
    {"interactive", 'i', NULL, "pass standard input on", apply_interactive},
    {"tty", 't', NULL, "run on a pseudo-terminal", apply_tty},
    {"user", 'u', "NAME", "who runs it (default: the sandbox's user)", apply_user},
    {"cwd", 'w', "DIR", "directory to start in (default: the user's home)", apply_cwd},
    {"env", 'e', "NAME[=VALUE]", "set a variable, or copy it from the environment", apply_env},
    {"timeout", 0, "TIME", "end it after this time: 500ms, 30s, 5m (default: never)",
     apply_timeout},
    {"detach", 'd', NULL, "leave it running and print its process id", apply_detach},
    CLIENT_OPTIONS,
};
const struct cli_syntax exec_syntax = {options, ARRAY_SIZE(options), positional};

int exec_options_check(void *self, char **rest, struct sg_error *e)
{
    struct exec_options *o = self;

    if (!o->id)
        return err_set(e, SG_ERR_INVALID, -EINVAL,
                       "no sandbox given: exec ID COMMAND; 'sandglass ps' lists them");
    if (!rest || !*rest || !**rest)
        return err_set(e, SG_ERR_INVALID, -EINVAL, "nothing to run: give a command, such as bash");
    if (o->detach && (o->interactive || o->tty || o->timeout_ms))
        return err_set(e, SG_ERR_INVALID, -EINVAL,
                       "--detach leaves the program: --interactive, --tty and --timeout need us "
                       "to stay");
    o->command = rest;
    return 0;
}
