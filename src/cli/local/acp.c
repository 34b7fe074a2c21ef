/* sandglass acp: runs an agent of the Agent Client Protocol in a sandbox of its own. To the editor
 * that starts us we are that agent: its messages pass in both directions unchanged, its standard
 * error stays apart, and its exit status becomes ours. We add only one line at the end, which says
 * whose doing a failure was, and a log if one is wanted. */
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "inside/agent/agent.h"
#include "inside/agent/launch.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/log/log_form.h"
#include "lib/text/parse.h"
#include "cli/local/acp_options.h"
#include "cli/local/acp_source_put.h"
#include "cli/local/cage_inputs.h"
#include "cli/local/cli.h"
#include "cli/local/report.h"
#include "cli/local/signals.h"
#include "lib/command/ui.h"

#define SERVE_FS      "/usr/local/lib/sandglass/kernels/acp/serve_fs.py"
#define STATUS_OWN    123 /* the highest status below ours; see own_status */
#define STATUS_CANNOT 126
#define STATUS_NONE   127

static void print_help(void)
{
    printf(
        "Usage: sandglass acp [OPTION]... -- AGENT [ARG]...\n\n"
        "Runs an agent of the Agent Client Protocol in a sandbox. An editor starts this in place "
        "of\nthe agent: messages pass on standard input and output as they are.\n\n");
    cli_print_options(stdout, &acp_syntax);
    printf(
        "\nExit status: the agent's own; 124 after a timeout; 125 if the sandbox could not be set "
        "up\nor broke; 126 if the agent cannot be run, 127 if it does not exist; 2 for bad usage, "
        "a bad\nsource, or what the policy refuses; 128 + N if signal N ended the agent or "
        "sandglass.\n");
}

/* ---- the log --------------------------------------------------------------------------------- */

/* The log of one hosted agent, for whoever started it: lines of JSON in the form of the server's
 * log (lib/log/log_form.h), to a file or to standard error. */
struct acp_log {
    int fd;   /* -1: no log is wanted */
    bool own; /* log_done closes fd */
    char sandbox_id[24];
};

/* path NULL: no log; "-": standard error; else a file that lines are appended to. */
static int log_open(struct acp_log *l, const char *path, struct sg_error *e)
{
    *l = (struct acp_log){.fd = -1};
    if (!path)
        return 0;
    if (strcmp(path, "-") == 0) {
        l->fd = STDERR_FILENO;
        return 0;
    }
    l->fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0600);
    l->own = l->fd >= 0;
    return l->fd < 0 ? err_errno(e, "--log: cannot open '%.200s'", path) : 0;
}

static void log_done(struct acp_log *l)
{
    if (l->own)
        close_p(&l->fd);
    *l = (struct acp_log){.fd = -1};
}

/* Writes one line. status and ns are 0 if they do not apply. */
static void log_say(const struct acp_log *l, enum settings_level level, enum fault fault,
                    int status, uint64_t ns, const char *fmt, ...) PRINTF(6, 7);

static void log_say(const struct acp_log *l, enum settings_level level, enum fault fault,
                    int status, uint64_t ns, const char *fmt, ...)
{
    AUTO(strbuf_done) struct strbuf line = strbuf_upto(LOG_LINE_MAX);
    char message[1024];
    va_list ap;

    if (l->fd < 0)
        return;
    va_start(ap, fmt);
    vsnprintf(message, sizeof(message), fmt, ap);
    va_end(ap);
    log_form_json(
        &(struct log_record){
            .ms = clock_wall_ms(),
            .level = level,
            .about = {.fault = fault, .sandbox_id = l->sandbox_id, .status = status, .ns = ns},
            .message = message},
        &line);
    fd_write_all(l->fd, line.buf, line.len); /* a full disk does not end the agent */
}

/* ---- how it ends ----------------------------------------------------------------------------- */

/* How the agent ended, or why it never ran. */
struct ending {
    int status;
    const char *whose; /* "agent", "timeout", "sandbox", "infrastructure", "client" */
    enum fault fault;
    char text[600];
};

struct hosting {
    const struct acp_options *o;
    struct cage_inputs in;
    struct acp_source source;
    struct sg_secret *secrets;
    struct acp_log log;
    int signal_fd;
    uint64_t deadline_ns;
    char into[512]; /* where the source goes; "" without one */
    struct sg_engine *engine;
    struct sg_sandbox *sandbox_id;
    struct ending end;
};

static int end_with(struct hosting *h, int status, const char *whose, enum fault fault,
                    const char *fmt, ...) PRINTF(5, 6);

static int end_with(struct hosting *h, int status, const char *whose, enum fault fault,
                    const char *fmt, ...)
{
    va_list ap;

    h->end = (struct ending){.status = status, .whose = whose, .fault = fault};
    va_start(ap, fmt);
    vsnprintf(h->end.text, sizeof(h->end.text), fmt, ap);
    va_end(ap);
    return -1;
}

static int end_by_signal(struct hosting *h)
{
    int sig = signals_taken(h->signal_fd);

    return end_with(h, CLI_EXIT_SIGNAL + (sig ? sig : SIGTERM), "client", FAULT_CLIENT,
                    "sandglass received signal %d (%s)", sig ? sig : SIGTERM,
                    strsignal(sig ? sig : SIGTERM));
}

static int end_by_timeout(struct hosting *h, const char *when)
{
    char time[32];

    format_duration_us(h->o->cage.timeout_ms * 1000, time, sizeof(time));
    return end_with(h, CLI_EXIT_TIMEOUT, "timeout", FAULT_SANDBOX,
                    "the time limit of %s was reached%s%s; raise it with --timeout", time,
                    *when ? " " : "", when);
}

/* An invalid, denied or missing thing that the caller asked for is the caller's fault, not ours. */
static int end_by_error(struct hosting *h, const struct sg_error *e)
{
    bool asked =
        e->kind == SG_ERR_INVALID || e->kind == SG_ERR_DENIED || e->kind == SG_ERR_NOT_FOUND;

    return end_with(h, asked ? CLI_EXIT_USAGE : CLI_EXIT_SETUP, asked ? "client" : "infrastructure",
                    asked ? FAULT_CLIENT : FAULT_INFRASTRUCTURE, "%s", e->message);
}

static uint64_t time_left_ms(const struct hosting *h)
{
    uint64_t now = clock_ns();

    return now >= h->deadline_ns ? 1 : (h->deadline_ns - now) / 1000000 + 1;
}

/* ---- before the agent ------------------------------------------------------------------------ */

/* W3C's 00-TRACE-SPAN-FLAGS, in small letters. Anything else counts as no trace parent. */
static bool is_traceparent(const char *s)
{
    static const char hex[] = "0123456789abcdef";
    static const size_t parts[] = {2, 32, 16, 2};

    for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
        size_t n = strspn(s, hex);

        if (n != parts[i] || s[n] != (i + 1 < ARRAY_SIZE(parts) ? '-' : '\0'))
            return false;
        if ((i == 0 && strncmp(s, "00", 2) != 0) || ((i == 1 || i == 2) && strspn(s, "0") == n))
            return false;
        s += n + 1;
    }
    return true;
}

static int add_traceparent(struct env_list *env, struct sg_error *e)
{
    const char *ours = getenv("TRACEPARENT");

    if (!ours || !is_traceparent(ours) || env_list_has(env, "TRACEPARENT"))
        return 0;
    return env_list_set_or_copy(env, "TRACEPARENT", "TRACEPARENT", e);
}

/* The secrets' values stay in our environment: h->secrets only points to them. */
static int load_secrets(struct hosting *h, struct sg_error *e)
{
    const struct acp_options *o = h->o;

    h->secrets = xcalloc(o->n_secrets + 1, sizeof(*h->secrets));
    for (size_t i = 0; i < o->n_secrets; i++) {
        const struct acp_secret *s = &o->secrets[i];
        const char *value = getenv(s->variable);

        if (env_list_has(&h->in.env, s->name))
            return err_invalid(e, "'%s' is given both by --env-file and by --secret", s->name);
        if (!value || !*value)
            return err_set(e, SG_ERR_INVALID, -ENOENT,
                           "--secret %s: there is no variable '%s' in the environment", s->name,
                           s->variable);
        h->secrets[i] = (struct sg_secret){.name = s->name, .value = value, .hosts = s->hosts};
    }
    return 0;
}

/* Makes --into an absolute path: "~/x" and "x" are below the home of the agent's user. */
static int place_source(struct hosting *h, struct sg_error *e)
{
    const struct agent_user *user = agent_user_find(h->o->cage.user ? h->o->cage.user : "user");
    const char *into = h->o->into ? h->o->into : ACP_DEFAULT_INTO;

    if (!h->o->source)
        return 0;
    if (!user)
        return err_set(e, SG_ERR_INVALID, -EUSERS, "unknown user '%.32s': use user or root",
                       h->o->cage.user);
    if (into[0] == '/')
        snprintf(h->into, sizeof(h->into), "%s", into);
    else
        snprintf(h->into, sizeof(h->into), "%s/%s", user->home,
                 strncmp(into, "~/", 2) == 0 ? into + 2 : into);
    if (strlen(into) + strlen(user->home) + 2 > sizeof(h->into))
        return err_set(e, SG_ERR_INVALID, -ENAMETOOLONG, "--into '%.64s...' is too long", into);
    return acp_source_open(h->o->source, &h->source, e);
}

static int load(struct hosting *h, struct sg_error *e)
{
    int r = cage_inputs_load(&h->o->cage, &h->in, e);

    if (r == 0)
        r = add_traceparent(&h->in.env, e);
    if (r == 0)
        r = load_secrets(h, e);
    if (r == 0)
        r = place_source(h, e);
    if (r == 0)
        r = log_open(&h->log, h->o->log, e);
    return r;
}

static int open_sandbox(struct hosting *h)
{
    struct sg_options options = SG_OPTIONS_INIT;
    uint64_t started = clock_ns();
    struct sg_error e;

    cage_fill_options(&h->o->cage, &h->in, &options);
    options.secrets = h->secrets;
    options.n_secrets = h->o->n_secrets;
    if (sg_engine_open(1, &h->engine, &e) < 0 ||
        sg_sandbox_open(h->engine, &options, &h->sandbox_id, &e) < 0)
        return end_by_error(h, &e);
    snprintf(h->log.sandbox_id, sizeof(h->log.sandbox_id), "%s", sg_sandbox_id(h->sandbox_id));
    log_say(&h->log, LEVEL_INFO, FAULT_SANDBOX, 0, clock_ns() - started, "the sandbox was made");
    return 0;
}

static void tell_source(struct hosting *h, const struct acp_tar_count *count, uint64_t started)
{
    log_say(&h->log, LEVEL_INFO, FAULT_SANDBOX, 0, clock_ns() - started, "the source is in %s",
            h->into);
    if (count->left_out == 0)
        return;
    log_say(&h->log, LEVEL_WARN, FAULT_CLIENT, 0, 0,
            "%llu entries of the source were left out, because they are not files, directories "
            "or links: %s",
            (unsigned long long)count->left_out, count->first_left_out);
    if (!h->o->cage.quiet)
        ui_note("left out of the source: '%s'%s, no file, directory or link", count->first_left_out,
                count->left_out > 1 ? " and others" : "");
}

static int put_source(struct hosting *h)
{
    struct acp_source_call call = {.sandbox_id = h->sandbox_id,
                                   .user = h->o->cage.user,
                                   .into = h->into,
                                   .timeout_ms = time_left_ms(h),
                                   .interrupt_fd = h->signal_fd};
    uint64_t started = clock_ns();
    struct acp_tar_count count;
    struct sg_error e = {0};

    if (h->source.fd < 0)
        return 0;
    switch (acp_source_put(&h->source, &call, &count, &e)) {
    case ACP_SOURCE_DONE:
        tell_source(h, &count, started);
        return 0;
    case ACP_SOURCE_BAD:
        return end_with(h, CLI_EXIT_USAGE, "client", FAULT_CLIENT, "%s", e.message);
    case ACP_SOURCE_NO_ROOM:
        return end_with(h, CLI_EXIT_SETUP, "sandbox", FAULT_SANDBOX, "%s", e.message);
    case ACP_SOURCE_TIMEOUT:
        return end_by_timeout(h, e.message);
    case ACP_SOURCE_INTERRUPTED:
        return end_by_signal(h);
    case ACP_SOURCE_BROKEN:
    default:
        return end_by_error(h, &e);
    }
}

/* ---- the agent ------------------------------------------------------------------------------- */

/* Statuses 124 to 127 tell the caller that somebody else ended the run, for example our time limit.
 * An agent that ends with one of them by itself must not look like that, so its status becomes
 * STATUS_OWN. With --serve-fs, 126 and 127 come from serve_fs.py, which could not run the agent,
 * and stay. From 128 on a status means a signal, as in shells, and stays too. */
static int own_status(const struct hosting *h, int status)
{
    bool cannot = h->o->serve_fs && (status == STATUS_CANNOT || status == STATUS_NONE);

    return status > STATUS_OWN && status < CLI_EXIT_SIGNAL && !cannot ? STATUS_OWN : status;
}

static int end_by_result(struct hosting *h, const struct sg_result *r)
{
    char line[256] = "";
    int status = own_status(h, r->exit_code);

    if (r->status == SG_STATUS_TIMEOUT)
        return end_by_timeout(h, "");
    if (strcmp(r->error_message, "interrupted") == 0)
        return end_by_signal(h);
    if (r->exit_code == 0)
        return 0;
    if (r->limit != SG_LIMIT_NONE && report_line(line, sizeof(line), r))
        return end_with(h, status, "sandbox", FAULT_SANDBOX, "%s", line);
    if (r->signal)
        return end_with(h, status, "agent", FAULT_AGENT, "ended by signal %d (%s)", r->signal,
                        strsignal(r->signal));
    if (status == STATUS_CANNOT || status == STATUS_NONE)
        return end_with(h, status, "agent", FAULT_AGENT, "'%.128s' %s", h->o->command[0],
                        status == STATUS_NONE ? "does not exist" : "cannot be run");
    return end_with(h, status, "agent", FAULT_AGENT, "exited with status %d%s", r->exit_code,
                    status != r->exit_code ? ", which is reported as 123" : "");
}

static int end_by_failure(struct hosting *h, const struct sg_error *e)
{
    if (strncmp(e->message, LAUNCH_CANNOT_RUN, strlen(LAUNCH_CANNOT_RUN)) == 0)
        return end_with(h, e->code == -ENOENT ? STATUS_NONE : STATUS_CANNOT, "agent", FAULT_AGENT,
                        "%s", e->message);
    if (e->code == -ESHUTDOWN)
        return end_with(h, CLI_EXIT_SIGNAL + SIGPIPE, "client", FAULT_CLIENT,
                        "the client has closed standard output");
    return end_by_error(h, e);
}

/* The agent's command; with --serve-fs, serve_fs.py comes before it and answers for the client. */
static const char **make_command(const struct acp_options *o)
{
    static const char *const before[] = {"/usr/bin/python3", "-I", SERVE_FS, "--"};
    size_t n = 0, prefix = o->serve_fs ? ARRAY_SIZE(before) : 0;
    const char **argv;

    while (o->command[n])
        n++;
    argv = xcalloc(prefix + n + 1, sizeof(*argv));
    for (size_t i = 0; i < prefix; i++)
        argv[i] = before[i];
    for (size_t i = 0; i < n; i++)
        argv[prefix + i] = o->command[i];
    return argv;
}

static int run_agent(struct hosting *h)
{
    AUTO(free_p) const char **argv = make_command(h->o);
    struct sg_exec x = SG_EXEC_INIT;
    uint64_t started = clock_ns();
    struct sg_result result;
    struct sg_error e = {0};
    int r;

    x.argv = argv;
    x.env = (const char *const *)h->in.env.v;
    x.user = h->o->cage.user;
    x.cwd = h->o->cage.cwd ? h->o->cage.cwd : h->into[0] ? h->into : NULL;
    x.timeout_ms = time_left_ms(h);
    x.stdin_fd = STDIN_FILENO;
    x.stdout_fd = STDOUT_FILENO;
    x.stderr_fd = STDERR_FILENO;
    x.interrupt_fd = h->signal_fd;
    log_say(&h->log, LEVEL_INFO, FAULT_AGENT, 0, 0, "the agent is started: %s", h->o->command[0]);
    if (sg_sandbox_exec(h->sandbox_id, &x, &result, &e) < 0) {
        return end_by_failure(h, &e);
    }
    log_say(&h->log, LEVEL_INFO, FAULT_AGENT, result.exit_code, clock_ns() - started,
            "the agent ended: %llu bytes of output, %llu ms of processor time",
            (unsigned long long)result.usage.stdout_bytes,
            (unsigned long long)(result.usage.cpu_user_us + result.usage.cpu_system_us) / 1000);
    r = end_by_result(h, &result);
    sg_result_free(&result);
    return r;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static void tell_ending(const struct hosting *h)
{
    const struct ending *end = &h->end;

    if (!end->whose)
        return;
    log_say(&h->log, LEVEL_ERROR, end->fault, end->status, 0, "%s: %s", end->whose, end->text);
    if (!h->o->cage.quiet)
        ui_error("%s: %s", end->whose, end->text);
}

static void host(struct hosting *h)
{
    int r = open_sandbox(h);

    if (r == 0)
        r = put_source(h);
    if (r == 0)
        run_agent(h);
    sg_sandbox_close(h->sandbox_id, NULL);
    sg_engine_close(h->engine);
}

static void hosting_done(struct hosting *h)
{
    cage_inputs_done(&h->in);
    acp_source_close(&h->source);
    log_done(&h->log);
    free(h->secrets);
    close_p(&h->signal_fd);
}

static int acp_parsed(const struct acp_options *o)
{
    AUTO(hosting_done) struct hosting h = {.o = o, .source.fd = -1, .log.fd = -1, .signal_fd = -1};
    struct sg_error e;

    h.deadline_ns = clock_ns() + o->cage.timeout_ms * 1000000;
    if (load(&h, &e) < 0) {
        ui_error("client: %s", e.message);
        return CLI_EXIT_USAGE;
    }
    h.signal_fd = signals_open();
    if (h.signal_fd < 0) {
        ui_error("infrastructure: cannot watch for signals: %s", strerror(errno));
        return CLI_EXIT_SETUP;
    }
    host(&h);
    tell_ending(&h);
    return h.end.status;
}

int cmd_acp(int argc, char **argv)
{
    AUTO(acp_options_done) struct acp_options o = {0};
    struct sg_error e;

    if (acp_options_parse(argc, argv, &o, &e) < 0)
        return ui_usage("acp", e.message);
    if (o.cage.help) {
        print_help();
        return 0;
    }
    return acp_parsed(&o);
}
