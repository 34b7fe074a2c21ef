/* sandglass run: one program in one sandbox, its streams connected to ours. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>

#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "cli/local/cli.h"
#include "cli/local/live_output.h"
#include "cli/local/report.h"
#include "cli/local/run_inputs.h"
#include "cli/local/signals.h"
#include "lib/command/terminal.h"
#include "lib/command/ui.h"

#define JSON_ROOM   (64u * 1024)
#define RESULTS_MAX (33u * 1024 * 1024) /* the library gives 32 MiB at most, without line ends */
#define JSON_GROWTH 6                   /* an escaped byte is \u00XX at worst */

static void print_help(void)
{
    printf("Usage: sandglass run [OPTION]... CODE\n"
           "       sandglass run [OPTION]... -f FILE\n"
           "       sandglass run [OPTION]... -\n"
           "       sandglass run [OPTION]... -- COMMAND [ARG]...\n\n"
           "Runs code, a file, standard input or a command in a sandbox of its own.\n\n");
    cli_print_options(stdout, &run_syntax);
    printf("\nExit status: the program's own; 124 after a timeout; 125 if the sandbox could not be "
           "set\n"
           "up; 2 for bad usage; 128 + N if signal N ended sandglass or the program.\n");
}

static void fill_run(struct sg_run *run, const struct run_options *o, const struct run_inputs *in)
{
    cage_fill_options(&o->cage, &in->cage, &run->options);
    run->exec.argv = (const char *const *)o->command;
    run->exec.env = (const char *const *)in->cage.env.v;
    run->exec.cwd = o->cage.cwd;
    run->exec.user = o->cage.user;
    run->exec.timeout_ms = o->cage.timeout_ms;
    run->exec.output_limit = o->output_limit;
    if (o->source != RUN_SOURCE_STDIN)
        run->exec.stdin_fd = STDIN_FILENO;
    /* A file is a program. Typed code is a cell: the user wants to see its value. */
    run->exec.cell = o->source == RUN_SOURCE_CODE || o->source == RUN_SOURCE_STDIN;
    run->exec.code_name = o->source == RUN_SOURCE_FILE ? o->source_text : NULL;
    run->exec.tty = o->tty;
    if (o->tty)
        terminal_size(&run->exec.tty_rows, &run->exec.tty_cols);
}

static int call_library(const struct run_inputs *in, const struct sg_run *run,
                        struct sg_result *ret, struct sg_error *e)
{
    if (!in->code)
        return sg_execute_command(run, ret, e);
    return sg_execute_code(in->code, in->code_len, in->language, run, ret, e);
}

/* Writes what is in `out` and frees it. Returns `status` unless writing fails. */
static int put_json(struct strbuf *out, int status)
{
    int r = out->truncated ? -ENOMEM : fd_write_all(STDOUT_FILENO, out->buf, out->len);

    strbuf_done(out);
    if (r == 0)
        return status;
    ui_error("cannot write the result: %s", strerror(-r));
    return r == -EPIPE ? CLI_EXIT_SIGNAL + SIGPIPE : CLI_EXIT_SETUP;
}

static void note_interruption(struct sg_result *r, int sig)
{
    r->exit_code = CLI_EXIT_SIGNAL + sig;
    snprintf(r->error_message, sizeof(r->error_message),
             "interrupted: sandglass received signal %d (%s)", sig, strsignal(sig));
}

static void keep_result(void *arg, const char *json, size_t len)
{
    struct strbuf *results = arg;

    strbuf_add(results, json, len);
    strbuf_addch(results, '\n');
}

/* Prints one JSON object on standard output, whatever happens. */
static int run_json(const struct run_inputs *in, struct sg_run *run, int signal_fd)
{
    AUTO(strbuf_done) struct strbuf results = strbuf_upto(RESULTS_MAX);
    uint64_t started = clock_ns();
    struct sg_result result;
    struct sg_error e;
    struct strbuf out;

    run->exec.on_result = keep_result;
    run->exec.on_result_arg = &results;
    if (call_library(in, run, &result, &e) < 0) {
        strbuf_init(&out, JSON_ROOM);
        report_setup_json(&out, &e, (clock_ns() - started) / 1000);
        return put_json(&out, CLI_EXIT_SETUP);
    }
    int sig = signals_taken(signal_fd);
    if (sig)
        note_interruption(&result, sig);
    int status = result.exit_code;
    strbuf_init(&out, JSON_ROOM + JSON_GROWTH * (result.stdout_len + result.stderr_len) +
                          2 * results.len);
    report_json(&out, &result, &results);
    sg_result_free(&result);
    return put_json(&out, status);
}

/* The exit status if a signal or a lost reader cut the run short, 0 if nothing did. */
static int cut_short(const struct live_output *out, int signal_fd)
{
    int sig = signals_taken(signal_fd);

    if (out->gone && out->error != EPIPE) {
        ui_error("cannot write the program's output: %s", strerror(out->error));
        return CLI_EXIT_SETUP;
    }
    if (out->gone)
        return CLI_EXIT_SIGNAL + SIGPIPE;
    return sig ? CLI_EXIT_SIGNAL + sig : 0;
}

/* Runs the program and passes its output through as it comes. */
static int run_live(const struct run_options *o, const struct run_inputs *in, struct sg_run *run,
                    int signal_fd)
{
    AUTO(terminal_restore) struct terminal terminal = {.fd = -1};
    struct live_output out;
    struct sg_result result;
    struct sg_error e;
    char line[256];

    live_output_init(&out, signal_fd, o->cage.timeout_ms);
    run->exec.on_output = live_output_write;
    run->exec.on_output_arg = &out;
    if (o->tty)
        terminal_raw(&terminal, STDIN_FILENO);
    int r = call_library(in, run, &result, &e);
    live_output_done(&out);
    terminal_restore(&terminal);
    int status = cut_short(&out, signal_fd);
    if (r < 0) {
        if (!status)
            ui_error("%s", e.message);
        return status ? status : CLI_EXIT_SETUP;
    }
    if (!status && !o->cage.quiet && report_line(line, sizeof(line), &result))
        ui_note("%s", line);
    if (!status)
        status = result.exit_code;
    sg_result_free(&result);
    return status;
}

/* Whoever gives the name of a file as code wants the file, as a rule. */
static void note_file_as_code(const struct run_options *o)
{
    struct stat st;

    if (o->source == RUN_SOURCE_CODE && !o->cage.quiet && !o->json &&
        stat(o->source_text, &st) == 0 && S_ISREG(st.st_mode))
        ui_note("'%.128s' is taken as code; to run the file of that name: -f %.128s",
                o->source_text, o->source_text);
}

static int run_parsed(const struct run_options *o)
{
    AUTO(run_inputs_done) struct run_inputs in = {0};
    AUTO(close_p) int signal_fd = -1;
    struct sg_run run = SG_RUN_INIT;
    struct sg_error e;

    if (run_inputs_load(o, &in, &e) < 0) {
        ui_error("%s", e.message);
        return CLI_EXIT_USAGE;
    }
    note_file_as_code(o);
    signal_fd = signals_open();
    if (signal_fd < 0) {
        ui_error("cannot watch for signals: %s", strerror(errno));
        return CLI_EXIT_SETUP;
    }
    fill_run(&run, o, &in);
    run.exec.interrupt_fd = signal_fd;
    return o->json ? run_json(&in, &run, signal_fd) : run_live(o, &in, &run, signal_fd);
}

int cmd_run(int argc, char **argv)
{
    AUTO(run_options_done) struct run_options o = {0};
    struct sg_error e;

    if (run_options_parse(argc, argv, &o, &e) < 0)
        return ui_usage("run", e.message);
    if (o.cage.help) {
        print_help();
        return 0;
    }
    return run_parsed(&o);
}
