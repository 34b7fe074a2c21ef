/* sandglass agents: the hosted agents of a server, through Sandglass's own API (/v1/agents). */
#include <fcntl.h>
#include <sys/mman.h>

#include "lib/text/base64.h"
#include "lib/base/fd.h"
#include "lib/text/json.h"
#include "lib/command/ui.h"
#include "lib/command/when.h"
#include "cli/shared/acp_source.h"
#include "cli/shared/env_options.h"
#include "cli/client/api.h"
#include "cli/client/jr.h"
#include "cli/client/payload.h"
#include "cli/client/show.h"
#include "cli/client/url.h"

#define TEXT_MAX   (256u * 1024)
#define SOURCE_MAX (12u * 1024 * 1024) /* with so much, its base64 still fits into a request */
#define BODY_MAX   (18u * 1024 * 1024)
#define ENV_HINT   "split it, or put the values into a file of the source"
#define START_MS   180000 /* time to make a sandbox and unpack the source in it */

struct agents_options {
    struct client_actions base;
    uint64_t timeout_s;
    const char *template, *sandbox, *conversation, *path, *source, *into, *user, *cwd, *network;
    bool serve_fs;
    struct env_list env;
    struct env_files env_files;
};

/* ---- ls -------------------------------------------------------------------------------------- */

static void add_state(struct table *t, const char *state)
{
    enum table_colour colour = strcmp(state, "running") == 0    ? TABLE_GREEN
                               : strcmp(state, "starting") == 0 ? TABLE_YELLOW
                               : strcmp(state, "failed") == 0 || strcmp(state, "lost") == 0 ||
                                       strcmp(state, "timed_out") == 0
                                   ? TABLE_RED
                                   : TABLE_PLAIN;

    table_add(t, colour, *state ? state : "-");
}

static void add_row(struct table *t, const json_t *row)
{
    char text[64];

    table_add(t, TABLE_PLAIN, jr_text(row, "agentId"));
    add_state(t, jr_text(row, "state"));
    show_time(t, row, "startedAt");
    show_time(t, row, *jr_text(row, "endedAt") ? "endedAt" : "endAt");
    snprintf(text, sizeof(text), "%llu/%llu", (unsigned long long)jr_count(row, "messagesIn"),
             (unsigned long long)jr_count(row, "messagesOut"));
    table_add(t, TABLE_PLAIN, text);
    show_cell(t, jr_text(row, "sandboxId"));
    show_cell(t, jr_text(row, "command"));
}

static const struct table_column columns[] = {
    {"ID", TABLE_TEXT},      {"STATE", TABLE_TEXT},    {"STARTED", TABLE_TEXT},
    {"ENDS", TABLE_TEXT},    {"IN/OUT", TABLE_NUMBER}, {"SANDBOX", TABLE_SPARE},
    {"COMMAND", TABLE_NAME},
};
static const struct show_list shown = {columns, ARRAY_SIZE(columns), add_row, "agentId"};

static int ls_fn(struct client *c, void *options, struct sg_error *e)
{
    const struct agents_options *o = options;
    AUTO(jr_free_p) json_t *answer = NULL;
    int r = api_get(c, &answer, e, "/v1/agents");

    return r < 0 ? r
                 : show_list(&shown, json_object_get(answer, "agents"), o->base.json, o->base.quiet,
                             e);
}

/* ---- show ------------------------------------------------------------------------------------ */

static const struct show_field fields[] = {
    {"id", "agentId", SHOW_OPTIONAL, NULL},
    {"state", "state", SHOW_OPTIONAL, NULL},
    {"command", "command", SHOW_OPTIONAL, NULL},
    {"sandbox", "sandboxId", SHOW_OPTIONAL, NULL},
    {"conversation", "conversationId", SHOW_OPTIONAL, NULL},
    {"path", "pathId", SHOW_OPTIONAL, NULL},
    {"started", "startedAt", SHOW_TIME | SHOW_OPTIONAL, NULL},
    {"ends", "endAt", SHOW_TIME | SHOW_OPTIONAL, "endedAt"},
    {"ended", "endedAt", SHOW_TIME | SHOW_OPTIONAL, NULL},
    {"reason", "reason", SHOW_OPTIONAL, NULL},
    {"fault", "fault", SHOW_OPTIONAL, NULL},
    {"status", "exitCode", SHOW_COUNT | SHOW_OPTIONAL, NULL},
    {"signal", "signal", SHOW_OPTIONAL, NULL},
    {"messages in", "messagesIn", SHOW_COUNT | SHOW_OPTIONAL, NULL},
    {"messages out", "messagesOut", SHOW_COUNT | SHOW_OPTIONAL, NULL},
    {"noise", "noise", SHOW_COUNT | SHOW_OPTIONAL, NULL},
    {"connected", "connected", SHOW_COUNT | SHOW_OPTIONAL, NULL},
    {"acp", "acp", SHOW_OPTIONAL, NULL},
};

static void print_agent(const json_t *row)
{
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(TEXT_MAX);

    show_object(&out, fields, ARRAY_SIZE(fields), row);
    fputs(out.buf, stdout);
}

static int show_fn(struct client *c, void *options, struct sg_error *e)
{
    const struct agents_options *o = options;
    AUTO(jr_free_p) json_t *row = NULL;
    int r = api_get(c, &row, e, "/v1/agents/%s", o->base.args[0]);

    return show_answer(r, row, o->base.json, print_agent, e);
}

/* ---- logs ------------------------------------------------------------------------------------ */

static void print_entry(const json_t *entry)
{
    AUTO(strbuf_done) struct strbuf line = strbuf_upto(TEXT_MAX);
    const char *text = jr_text(entry, "text"), *stream = jr_text(entry, "stream");
    size_t len = strlen(text);
    char local[64] = "-";
    int64_t then;

    while (len > 0 && (text[len - 1] == '\n' || text[len - 1] == '\r'))
        len--;
    if (when_parse_ms(jr_text(entry, "time"), &then) == 0)
        when_local(then, local, sizeof(local));
    strbuf_addf(&line, "%s ", local);
    size_t width = table_clean(&line, stream, strlen(stream));
    for (; width < 7; width++)
        strbuf_addch(&line, ' ');
    table_clean(&line, text, len);
    puts(line.buf);
}

static int logs_fn(struct client *c, void *options, struct sg_error *e)
{
    const struct agents_options *o = options;
    AUTO(jr_free_p) json_t *answer = NULL;
    int r = api_get(c, &answer, e, "/v1/agents/%s/logs", o->base.args[0]);
    const json_t *entries = json_object_get(answer, "entries");

    if (r == 0 && o->base.json)
        return jr_print(entries, e);
    for (size_t i = 0; i < json_array_size(entries); i++)
        print_entry(json_array_get(entries, i));
    return r;
}

/* ---- start: what is sent --------------------------------------------------------------------- */

/* Writes --network: "block", "open", or names with commas between, which allow nothing else. */
static void put_network(struct json *j, const char *network)
{
    jw_key(j, "network");
    if (strcmp(network, "block") == 0 || strcmp(network, "open") == 0) {
        jw_string(j, network);
        return;
    }
    jw_object_begin(j);
    jw_array_begin(jw_key(j, "allowOut"));
    for (const char *p = network;; p += strcspn(p, ",") + 1) {
        size_t len = strcspn(p, ",");

        jw_bytes(j, p, len);
        if (!p[len])
            break;
    }
    jw_array_end(j);
    jw_object_end(j);
}

/* Loads the source: a directory becomes a tar in memory, an archive is read as it is. */
static int load_source(const struct acp_source *s, char **ret, size_t *ret_len, struct sg_error *e)
{
    AUTO(close_p) int memory = -1;
    struct acp_tar_count count;
    int from = s->fd, r = 0;

    if (s->kind == ACP_SOURCE_DIRECTORY) {
        from = memory = memfd_create("source", MFD_CLOEXEC);
        r = memory < 0 ? err_errno(e, "cannot keep a tar in memory")
                       : acp_tar_write(s->fd, s->path, memory, &count, e);
        if (r == 0 && count.left_out > 0)
            ui_note("left out of the source: '%s'%s, no file, directory or link",
                    count.first_left_out, count.left_out > 1 ? " and others" : "");
        if (r == 0 && lseek(memory, 0, SEEK_SET) < 0)
            r = err_errno(e, "cannot read the tar");
    }
    if (r < 0)
        return r;
    r = fd_read_all(from, SOURCE_MAX, ret, ret_len);
    if (r == -EFBIG)
        return err_set(e, SG_ERR_INVALID, r,
                       "the source '%.128s' is over %u MiB: put it into a sandbox with 'sandglass "
                       "cp', and start the agent there with --sandbox",
                       s->path, SOURCE_MAX >> 20);
    return r < 0 ? err_code(e, r, "cannot read '%.128s'", s->path) : 0;
}

static int put_source(struct json *j, const struct agents_options *o, struct sg_error *e)
{
    AUTO(acp_source_close) struct acp_source source = {.fd = -1};
    AUTO(strbuf_done) struct strbuf text = strbuf_upto(BODY_MAX);
    AUTO(free_p) char *data = NULL;
    size_t len = 0;
    int r;

    if (!o->source)
        return 0;
    r = acp_source_open(o->source, &source, e);
    if (r == 0)
        r = load_source(&source, &data, &len, e);
    if (r < 0)
        return r;
    base64_encode(&text, data, len);
    jw_object_begin(jw_key(j, "source"));
    payload_text(j, "type", source.kind == ACP_SOURCE_BUNDLE ? "bundle" : "tar");
    payload_text(j, "data", text.buf);
    payload_text(j, "into", o->into);
    jw_object_end(j);
    return 0;
}

static int make_body(const struct agents_options *o, struct strbuf *body, struct sg_error *e)
{
    AUTO(env_list_done) struct env_list env = {0};
    struct json j = {.out = body};
    int r = env_load(&o->env_files, &o->env, ENV_HINT, &env, e);

    if (r < 0)
        return r;
    jw_object_begin(&j);
    jw_array_begin(jw_key(&j, "command"));
    for (size_t i = 0; i < o->base.n_args; i++)
        jw_string(&j, o->base.args[i]);
    jw_array_end(&j);
    payload_env(&j, "env", &env);
    payload_text(&j, "template", o->template);
    payload_text(&j, "sandboxId", o->sandbox);
    payload_text(&j, "conversationId", o->conversation);
    payload_text(&j, "pathId", o->conversation ? o->path ? o->path : "main" : NULL);
    payload_text(&j, "user", o->user);
    payload_text(&j, "cwd", o->cwd);
    if (o->network)
        put_network(&j, o->network);
    payload_number(&j, "timeout", o->timeout_s);
    if (o->serve_fs)
        jw_bool(jw_key(&j, "serveFs"), true);
    r = put_source(&j, o, e);
    if (r < 0)
        return r;
    jw_object_end(&j);
    return body->truncated
               ? err_set(e, SG_ERR_INVALID, -E2BIG, "command, variables and source are too long")
               : 0;
}

/* ---- start, extend, stop --------------------------------------------------------------------- */

static int print_id(const json_t *answer, const struct agents_options *o, struct sg_error *e)
{
    const char *id = jr_text(answer, "agentId");

    if (o->base.json)
        return jr_print(answer, e);
    if (url_is_plain_name(id))
        puts(id);
    return 0;
}

static int start_fn(struct client *c, void *options, struct sg_error *e)
{
    const struct agents_options *o = options;
    AUTO(jr_free_p) json_t *answer = NULL;
    AUTO(strbuf_done) struct strbuf body = strbuf_upto(BODY_MAX);
    struct api_request q = {.method = "POST", .body = &body, .more_ms = START_MS};

    if (make_body(o, &body, e) < 0)
        return ui_usage("agents", e->message);
    int r = api_ask(c, &q, &answer, e, "/v1/agents");
    return r < 0 ? r : print_id(answer, o, e);
}

static int extend_fn(struct client *c, void *options, struct sg_error *e)
{
    const struct agents_options *o = options;
    AUTO(jr_free_p) json_t *answer = NULL;
    AUTO(strbuf_done) struct strbuf body = {0};

    payload_timeout(&body, o->timeout_s);
    int r = api_call(c, "POST", &body, &answer, e, "/v1/agents/%s/timeout", o->base.args[0]);
    return r < 0 ? r : print_id(answer, o, e);
}

static int stop_fn(struct client *c, void *options, struct sg_error *e)
{
    return client_delete_each(c, options, "/v1/agents/", NULL, NULL, e);
}

/* ---- the command line ------------------------------------------------------------------------ */

enum action { LS, START, SHOW, LOGS, EXTEND, STOP };
#define OF(action) (1u << (action))

static const struct client_action actions[] = {
    [LS] = {"ls", "no arguments", 0, 0, ls_fn, NULL},
    [START] = {"start", "-- COMMAND [ARG]...", 1, CLIENT_ARGS_MAX, start_fn, NULL},
    [SHOW] = {"show", "ID", 1, 1, show_fn, NULL},
    [LOGS] = {"logs", "ID", 1, 1, logs_fn, NULL},
    [EXTEND] = {"extend", "ID", 1, 1, extend_fn, NULL},
    [STOP] = {"stop", "ID...", 1, CLIENT_ARGS_MAX, stop_fn, NULL},
};

static int check_argument(const struct client_actions *o, const char *arg, struct sg_error *e)
{
    if (o->action == &actions[START] || url_is_plain_name(arg))
        return 0;
    return err_invalid(e, "'%.64s' is not the id of an agent: 'sandglass agents ls' lists them",
                       arg);
}

/* ---- options --------------------------------------------------------------------------------- */

static int take_user(void *to, const struct cli_option *o, const char *value, struct sg_error *e)
{
    int r = cli_filled(to, o, value, e);

    return r < 0 ? r : client_user(to, o, value, e);
}

#define TEXT(member) CLI_FILLED(agents_options, member, "the value"), .actions = OF(START)
static const struct cli_option options[] = {
    {"template", 0, "NAME", "start: the template of its sandbox", TEXT(template)},
    {"timeout", 0, "TIME", "start, extend: how long it may run: 30m, 2h",
     CLI_AT(client_seconds, agents_options, timeout_s), .actions = OF(START) | OF(EXTEND)},
    {"env", 'e', "NAME[=VALUE]", "start: set a variable, or copy it",
     CLI_AT(env_option, agents_options, env), .actions = OF(START)},
    {"env-file", 0, "FILE", "start: set variables from lines NAME=VALUE",
     CLI_AT(env_file_option, agents_options, env_files), .actions = OF(START)},
    {"source", 's', "PATH", "start: put a directory, a tar or a git bundle into the sandbox",
     TEXT(source)},
    {"into", 0, "DIR", "start: where --source goes (default ~/project)", TEXT(into)},
    {"serve-fs", 0, NULL, "start: answer the agent's file and terminal requests inside",
     CLI_FLAG(agents_options, serve_fs), .actions = OF(START)},
    {"sandbox", 0, "ID", "start: use this sandbox, not a new one", TEXT(sandbox)},
    {"conversation", 0, "ID", "start: use the sandbox of this conversation", TEXT(conversation)},
    {"path", 0, "ID", "start: use this path of the conversation (default main)", TEXT(path)},
    {"network", 0, "block|open|LIST", "start: what the sandbox may reach", TEXT(network)},
    {"user", 'u', "NAME", "start: user inside: user (default) or root",
     CLI_AT(take_user, agents_options, user), .words = "the value", .actions = OF(START)},
    {"cwd", 'w', "DIR", "start: directory to start in", TEXT(cwd)},
    {"quiet", 'q', NULL, "ls: print the ids only; stop: print nothing",
     CLI_FLAG(client_actions, quiet), .actions = OF(LS) | OF(STOP)},
    {"json", 0, NULL, "print the server's answer", CLI_FLAG(client_actions, json)},
    CLIENT_OPTIONS,
};

static int check(void *self, char **rest UNUSED, struct sg_error *e)
{
    const struct agents_options *o = self;

    if (o->base.action == &actions[EXTEND] && !o->timeout_s)
        return err_invalid(e, "extend needs --timeout: how long from now on");
    if (o->sandbox && o->conversation)
        return err_invalid(e, "give --sandbox or --conversation, not both");
    if (o->path && !o->conversation)
        return err_invalid(e, "--path needs --conversation");
    if (o->into && !o->source)
        return err_invalid(e, "--into is for what --source puts in");
    return 0;
}

static int fn(struct client *c, void *self, struct sg_error *e)
{
    struct agents_options *o = self;
    int status = client_actions_fn(c, o, e);

    env_list_done(&o->env);
    return status;
}

const struct client_verb agents_verb = {
    .name = "agents",
    .usage = "ls [OPTION]...\n"
             "start [OPTION]... -- COMMAND [ARG]...\n"
             "show [OPTION]... ID\n"
             "logs [OPTION]... ID\n"
             "extend [OPTION]... --timeout TIME ID\n"
             "stop [OPTION]... ID...",
    .about = "Starts, lists and ends hosted agents: programs that speak the Agent Client Protocol "
             "and run in\nsandboxes of a server. Clients talk to an agent over a WebSocket, "
             "/v1/agents/ID/acp.",
    .syntax = &(const struct cli_syntax){options, ARRAY_SIZE(options), CLIENT_ACTIONS_SYNTAX},
    .options_size = sizeof(struct agents_options),
    .check = check,
    .fn = fn,
    .actions = actions,
    .n_actions = ARRAY_SIZE(actions),
    .check_argument = check_argument,
};
