#include "cli/client/exec_event.h"

#include <signal.h>

#include "lib/command/exit_status.h"
#include "lib/text/base64.h"
#include "cli/client/sandbox.h"
#include "cli/client/jr.h"

#define SIGNAL_PREFIX "signal: "
#define SIGNAL_MAX    64

/* Servers describe a signal in the words of Go's runtime. */
static const struct {
    const char *words;
    int sig;
} signals[] = {
    {"aborted", SIGABRT},
    {"alarm clock", SIGALRM},
    {"bad system call", SIGSYS},
    {"broken pipe", SIGPIPE},
    {"bus error", SIGBUS},
    {"CPU time limit exceeded", SIGXCPU},
    {"file size limit exceeded", SIGXFSZ},
    {"floating point exception", SIGFPE},
    {"hangup", SIGHUP},
    {"I/O possible", SIGIO},
    {"illegal instruction", SIGILL},
    {"interrupt", SIGINT},
    {"killed", SIGKILL},
    {"power failure", SIGPWR},
    {"profiling timer expired", SIGPROF},
    {"quit", SIGQUIT},
    {"segmentation fault", SIGSEGV},
    {"stack fault", SIGSTKFLT},
    {"terminated", SIGTERM},
    {"trace/breakpoint trap", SIGTRAP},
    {"user defined signal 1", SIGUSR1},
    {"user defined signal 2", SIGUSR2},
    {"virtual timer expired", SIGVTALRM},
};

int exec_event_signal(const char *status)
{
    static const char number[] = "signal ";

    if (strncmp(status, SIGNAL_PREFIX, strlen(SIGNAL_PREFIX)) != 0)
        return 0;
    status += strlen(SIGNAL_PREFIX);
    for (size_t i = 0; i < ARRAY_SIZE(signals); i++) {
        size_t len = strlen(signals[i].words);

        /* " (core dumped)" may follow. */
        if (strncmp(status, signals[i].words, len) == 0 &&
            (status[len] == '\0' || status[len] == ' '))
            return signals[i].sig;
    }
    if (strncmp(status, number, strlen(number)) != 0)
        return 0;
    long sig = strtol(status + strlen(number), NULL, 10);
    return sig > 0 && sig <= SIGNAL_MAX ? (int)sig : 0;
}

static int exit_status(const json_t *end)
{
    double code = jr_number(end, "exitCode");
    int sig = jr_flag(end, "exited") ? 0 : exec_event_signal(jr_text(end, "status"));

    if (sig)
        return CLI_EXIT_SIGNAL + sig;
    /* The code may be no valid exit status, such as -1 for a signal without a name. */
    return code >= 0 && code <= 255 ? (int)code : CLI_EXIT_SIGNAL;
}

static int take_data(const json_t *data, struct exec_event *ret, struct strbuf *out,
                     struct sg_error *e)
{
    static const struct {
        const char *key;
        enum exec_event_kind kind;
    } streams[] = {
        {"stdout", EXEC_EVENT_STDOUT}, {"stderr", EXEC_EVENT_STDERR}, {"pty", EXEC_EVENT_STDOUT}};

    for (size_t i = 0; i < ARRAY_SIZE(streams); i++) {
        const json_t *text = json_object_get(data, streams[i].key);

        if (!json_is_string(text))
            continue;
        ret->kind = streams[i].kind;
        if (base64_decode(out, json_string_value(text), json_string_length(text)) < 0)
            return err_set(e, SG_ERR_INTERNAL, -EPROTO, "the server's output is not base64");
    }
    return 0;
}

int exec_event_parse(const char *message, size_t len, struct exec_event *ret, struct strbuf *data,
                     struct sg_error *e)
{
    AUTO(jr_free_p) json_t *tree = NULL;
    int r = jr_parse(message, len, &tree, e);

    if (r < 0)
        return r;
    const json_t *event = json_object_get(tree, "event"), *part;
    *ret = (struct exec_event){.kind = EXEC_EVENT_OTHER};
    if ((part = json_object_get(event, "start"))) {
        ret->kind = EXEC_EVENT_START;
        ret->pid = (uint32_t)jr_count(part, "pid");
    } else if ((part = json_object_get(event, "data"))) {
        return take_data(part, ret, data, e);
    } else if ((part = json_object_get(event, "end"))) {
        ret->kind = EXEC_EVENT_END;
        ret->exit_status = exit_status(part);
        if (strcmp(jr_text(part, "error"), jr_text(part, "status")) != 0)
            snprintf(ret->why, sizeof(ret->why), "%s", jr_text(part, "error"));
    }
    return 0;
}

int exec_event_parse_last(const char *message, size_t len, struct sg_error *e)
{
    AUTO(jr_free_p) json_t *tree = NULL;
    int r = jr_parse(message, len, &tree, e);

    if (r < 0)
        return r;
    const json_t *error = json_object_get(tree, "error");
    return error ? sandbox_error(error, e) : 0;
}
