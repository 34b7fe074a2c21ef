/* sandglass exec: runs a command in a sandbox, its streams connected to ours. */
#include "cli/client/exec.h"

#include "lib/text/parse.h"
#include "lib/command/exit_status.h"
#include "cli/shared/env_list.h"
#include "lib/command/terminal.h"
#include "lib/command/ui.h"
#include "cli/client/exec_session.h"

#define TIMEOUT_MAX_MS (30ull * 24 * 3600 * 1000)

/* ---- the command line ------------------------------------------------------------------------ */

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

static int check(void *self, char **rest, struct sg_error *e)
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

/* ---- the program ----------------------------------------------------------------------------- */

/* A program on a terminal draws for the terminal that shows it, which is ours; its locale is UTF-8,
 * as with the SDKs. */
static int add_terminal_env(struct env_list *env, struct sg_error *e)
{
    static const char *const others[] = {"LANG=C.UTF-8", "LC_ALL=C.UTF-8"};
    const char *term = getenv("TERM");
    int r = 0;

    if (!env_list_has(env, "TERM"))
        r = term && *term ? env_list_set_or_copy(env, "--tty", "TERM", e)
                          : env_list_set(env, "--tty", "TERM=xterm-256color", e);
    if (r == 0 && !env_list_has(env, "LANG") && !env_list_has(env, "LC_ALL"))
        for (size_t i = 0; r == 0 && i < ARRAY_SIZE(others); i++)
            r = env_list_set(env, "--tty", others[i], e);
    return r;
}

static int run(struct sandbox *sandbox, struct exec_options *o, struct exec_result *ret,
               struct sg_error *e)
{
    AUTO(terminal_restore) struct terminal terminal = {.fd = -1};
    AUTO(repl_watch_close) struct repl_watch watch = {.signal_fd = -1};
    struct exec_session_options session = {
        .start = {.command = o->command,
                  .env = &o->env,
                  .cwd = o->cwd,
                  .pty = o->tty,
                  .stdin_open = o->interactive},
        .input = o->interactive,
        .detach = o->detach,
        .timeout_ms = o->timeout_ms,
        .watch = &watch,
    };
    /* Signals become events, so that the terminal is restored before we end. */
    int r = repl_watch_open(&watch, e);

    if (r == 0 && o->tty)
        r = add_terminal_env(&o->env, e);
    if (r < 0)
        return r;
    if (o->tty)
        terminal_size(&session.start.rows, &session.start.cols);
    if (o->tty && o->interactive)
        terminal_raw(&terminal, STDIN_FILENO);
    return exec_session_run(sandbox, &session, ret, e);
}

static int exec_fn(struct client *c, void *self, struct sg_error *e)
{
    AUTO(sandbox_close) struct sandbox sandbox = {0};
    struct exec_options *o = self;
    struct exec_result result = {0};
    int r = sandbox_open(&sandbox, c, o->id, o->user, e);

    if (r == 0)
        r = run(&sandbox, o, &result, e);
    env_list_done(&o->env);
    if (r < 0)
        return r;
    if (o->detach && result.exit_status == 0)
        printf("%u\n", result.pid);
    if (result.why[0])
        ui_note("%s", result.why);
    return result.exit_status;
}

const struct client_verb exec_verb = {
    .name = "exec",
    .usage = "[OPTION]... ID COMMAND [ARG]...\n[OPTION]... ID 'COMMAND LINE'",
    .about = "Runs a command in a sandbox. One argument with blanks in it is given to a shell. "
             "The exit status\nis the command's own; 124 after a timeout, 125 if the server "
             "cannot be reached, 1 if it refuses,\n128 + N if signal N ended the command.",
    .syntax = &(const struct cli_syntax){options, ARRAY_SIZE(options), positional, 0},
    .options_size = sizeof(struct exec_options),
    .command = true,
    .check = check,
    .fn = exec_fn,
};
