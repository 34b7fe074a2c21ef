/* sandglass exec: runs a command in a sandbox, its streams connected to ours. */
#include <signal.h>
#include <sys/signalfd.h>

#include "lib/text/parse.h"
#include "lib/command/exit_status.h"
#include "cli/shared/env_list.h"
#include "lib/command/terminal.h"
#include "lib/command/ui.h"
#include "cli/client/exec_options.h"
#include "cli/client/exec_session.h"

/* Turns signals into events of the session's loop, so that we can restore the terminal before we
 * end. */
static int open_signals(void)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH};
    sigset_t set;

    sigemptyset(&set);
    for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
        sigaddset(&set, signals[i]);
    sigprocmask(SIG_BLOCK, &set, NULL);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

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
    AUTO(close_p) int signal_fd = open_signals();
    struct exec_session_options session = {
        .start = {.command = o->command,
                  .env = &o->env,
                  .cwd = o->cwd,
                  .pty = o->tty,
                  .stdin_open = o->interactive},
        .input = o->interactive,
        .detach = o->detach,
        .timeout_ms = o->timeout_ms,
        .signal_fd = signal_fd,
    };

    if (signal_fd < 0)
        return err_errno(e, "cannot watch for signals");
    if (o->tty) {
        int r = add_terminal_env(&o->env, e);

        if (r < 0)
            return r;
        terminal_size(&session.start.rows, &session.start.cols);
    }
    if (o->tty && o->interactive)
        terminal_raw(&terminal, STDIN_FILENO);
    return exec_session_run(sandbox, &session, ret, e);
}

static int exec_fn(struct client *c, void *options, struct sg_error *e)
{
    AUTO(sandbox_close) struct sandbox sandbox = {0};
    struct exec_options *o = options;
    struct exec_result result = {0};
    int r = sandbox_open(&sandbox, c, o->id, o->user, e);

    if (r == 0)
        r = run(&sandbox, o, &result, e);
    env_list_done(&o->env);
    if (r < 0)
        return r;
    if (o->detach && result.exit_status == 0)
        printf("%u\n", result.pid);
    return result.exit_status;
}

const struct client_verb exec_verb = {
    .name = "exec",
    .usage = "[OPTION]... ID COMMAND [ARG]...\n[OPTION]... ID 'COMMAND LINE'",
    .about = "Runs a command in a sandbox. One argument with blanks in it is given to a shell. "
             "The exit status\nis the command's own; 124 after a timeout, 125 if the server "
             "cannot be reached, 1 if it refuses,\n128 + N if signal N ended the command.",
    .syntax = &exec_syntax,
    .options_size = sizeof(struct exec_options),
    .command = true,
    .check = exec_options_check,
    .fn = exec_fn,
};
