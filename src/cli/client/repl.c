/* sandglass repl: a prompt on the code interpreter of a sandbox, or one cell from a pipe. */
#include <signal.h>

#include "lib/base/languages.h"
#include "lib/command/exit_status.h"
#include "cli/shared/text_file.h"
#include "lib/command/ui.h"
#include "cli/client/repl_command.h"
#include "cli/client/repl_whole.h"
#include "cli/client/url.h"

#define CODE_HINT "copy it in with 'sandglass cp' and import it"
#define ENDED     "the sandbox has ended (its timeout expired): :new makes another"

/* ---- the command line ------------------------------------------------------------------------ */

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

static int check(void *self, char **rest UNUSED, struct sg_error *e)
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

/* ---- the prompt ------------------------------------------------------------------------------ */

/* Extends the sandbox's life at each key. While nobody types, looks whether the sandbox still
 * exists. */
static bool idle(void *arg, bool typed)
{
    struct repl_session *s = arg;

    if (typed)
        repl_life_touch(&s->life);
    else if (repl_life_is_over(&s->life)) {
        putchar('\n');
        fflush(stdout);
        ui_note(ENDED);
        return true;
    }
    return false;
}

static void explain(int r, const struct sg_error *e)
{
    if (r == -ENXIO)
        ui_error(ENDED);
    else if (r == -ECANCELED)
        ui_note("left the cell, which is being stopped; :restart starts a new kernel");
    else if (r == -ENOENT)
        ui_error("%s; continue with :restart, :language or :new", e->message);
    else if (r != -EINTR)
        ui_error("%s", e->message);
}

static void converse(struct repl_session *s)
{
    struct sg_error e;

    while (!s->over && !s->watch.ending) {
        AUTO(strbuf_done) struct strbuf code = strbuf_upto(REPL_CELL_MAX);
        const struct repl_context *context = &s->contexts[s->current];

        enum repl_input_end end =
            repl_input_cell(&s->input, context->language, context->count + 1, &code);
        if (end == REPL_INPUT_OVER)
            return;
        if (end == REPL_INPUT_CLEARED || code.len == 0)
            continue;
        if (repl_is_command(code.buf)) {
            repl_command(s, code.buf);
            continue;
        }
        int r = repl_session_run(s, code.buf, code.len, &e);
        if (r < 0)
            explain(r, &e);
    }
}

static int talk(struct repl_session *s, const struct repl_options *o)
{
    struct sg_error e;

    s->input =
        (struct repl_input){.watch = &s->watch, .idle = idle, .arg = s, .colour = s->show.colour};
    if (repl_input_open(&s->input, &e) < 0) {
        repl_input_close(&s->input);
        return client_fail(&e);
    }
    repl_input_language(&s->input, s->contexts[0].language);
    printf("%s in sandbox %s%s; :help, ^D to leave\n", s->contexts[0].language, s->life.id,
           s->life.own && !o->keep ? ", which ends with this session" : "");
    fflush(stdout);
    converse(s);
    repl_input_close(&s->input);
    if (o->keep && s->life.id && !s->life.gone)
        printf("Sandbox %s keeps running, with its contexts: sandglass repl %s\n", s->life.id,
               s->life.id);
    return s->watch.ending ? CLI_EXIT_SIGNAL + s->watch.ending : 0;
}

/* ---- one cell -------------------------------------------------------------------------------- */

static int run_input(struct repl_session *s, const char *code, size_t len)
{
    struct sg_error e;
    int r = repl_session_run(s, code, len, &e);

    if (r == -EINTR)
        return CLI_EXIT_SIGNAL + s->watch.ending;
    if (r == -ECANCELED)
        return CLI_EXIT_SIGNAL + SIGINT;
    if (r < 0)
        return client_fail(&e);
    return s->show.failed ? CLIENT_EXIT_REFUSED : 0;
}

static int repl_fn(struct client *c, void *self, struct sg_error *e)
{
    struct repl_options *o = self;
    bool terminal = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && !o->json;
    AUTO(free_p) char *code = NULL;
    struct repl_session s;
    size_t len = 0;
    int r = 0, status;

    if (o->no_colour)
        setenv("NO_COLOR", "1", 1); /* for messages too */
    /* Reads the code before the sandbox is made, so that no sandbox waits for it. */
    if (!terminal)
        r = text_fd_load("code", "standard input", STDIN_FILENO, REPL_CELL_MAX, CODE_HINT, &code,
                         &len, e);
    if (r < 0)
        return r;
    if (repl_session_open(&s, c, o, terminal, e) < 0)
        status = client_fail(e);
    else
        status = terminal ? talk(&s, o) : run_input(&s, code, len);
    repl_session_close(&s);
    env_list_done(&o->env);
    return status;
}

const struct client_verb repl_verb = {
    .name = "repl",
    .usage = "[OPTION]... [ID]\n[OPTION]... [ID] < FILE",
    .about = "A prompt that runs cells of code in a sandbox: in ID, or in a new one that ends with "
             "the prompt.\nIf standard input is not a terminal, it is run as one cell; the exit "
             "status is 1 if the cell\nends with an error.",
    .syntax = &(const struct cli_syntax){options, ARRAY_SIZE(options), positional, 0},
    .options_size = sizeof(struct repl_options),
    .check = check,
    .fn = repl_fn,
};
