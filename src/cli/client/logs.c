/* sandglass logs: shows the log of a sandbox or of a server; with -f goes on as lines come. */
#include "lib/base/clock.h"
#include "lib/text/parse.h"
#include "lib/command/ui.h"
#include "cli/client/api.h"
#include "cli/client/journal.h"
#include "cli/client/jr.h"
#include "cli/client/server_log.h"
#include "lib/command/when.h"

#include <time.h>

#define PAGE_ENTRIES 1000
#define POLL_MS      1000

struct logs_options {
    struct client_common common;
    const char *id;
    bool server;
    struct server_log_query query; /* for a sandbox too */
};

/* How far the log has been shown. Entries have no number, only a time, so we remember the entries
 * of the last millisecond to tell which of them are new. */
struct position {
    int64_t last_ms;
    char **seen;
    size_t n_seen, cap;
};

static int apply_level(void *self, const struct cli_option *option UNUSED, const char *value,
                       struct sg_error *e)
{
    struct logs_options *o = self;

    if (journal_level_parse(value, &o->query.level) < 0)
        return err_invalid(e, "--level '%.64s' is not debug, info, warn or error", value);
    return 0;
}

static int apply_since(void *self, const struct cli_option *option UNUSED, const char *value,
                       struct sg_error *e)
{
    struct logs_options *o = self;
    uint64_t ms;

    if (when_parse_ms(value, &o->query.since_ms) == 0)
        return 0;
    if (parse_duration_ms("--since", value, &ms, NULL) < 0 || ms > INT64_MAX / 2)
        return err_invalid(
            e, "--since '%.64s' is not a time: use 30s, 5m, 1h or 2026-03-01T12:00:00Z", value);
    o->query.since_ms = clock_wall_ms() - (int64_t)ms;
    if (o->query.since_ms < 0)
        o->query.since_ms = 0;
    return 0;
}

static int positional(void *self, const char *arg, struct sg_error *e)
{
    struct logs_options *o = self;

    if (o->id)
        return err_invalid(e, "unexpected argument '%.64s'", arg);
    o->id = arg;
    return client_check_id(arg, e);
}

static int check(void *self, char **rest UNUSED, struct sg_error *e)
{
    const struct logs_options *o = self;

    if (o->server && o->id)
        return err_invalid(e, "--server is about all sandboxes: use --sandbox '%.64s' to see one",
                           o->id);
    if (!o->server && (o->query.state || o->query.request || o->query.sandbox || o->query.lines))
        return err_invalid(e, "--lines, --request, --sandbox and --state go with --server");
    if (!o->id && !o->server)
        return err_invalid(e, "no sandbox given: 'sandglass ps' lists them");
    return 0;
}

static const struct cli_option options[] = {
    {"server", 0, NULL, "the server's own log, from its state directory",
     CLI_FLAG(logs_options, server)},
    {"follow", 'f', NULL, "keep running until the sandbox has ended",
     CLI_FLAG(logs_options, query.follow)},
    {"lines", 'n', "NUMBER", "with --server: only the last lines",
     CLI_COUNT(logs_options, query.lines, 1, SERVER_LOG_LINES_MAX)},
    {"level", 0, "LEVEL", "least level: debug (default), info, warn, error", .apply = apply_level},
    {"since", 0, "TIME", "only newer lines: 30s, 5m, 2026-03-01T12:00:00Z", .apply = apply_since},
    {"layer", 0, "LAYER", "only this fault: code, agent, sandbox, infrastructure, client",
     CLI_WORD(logs_options, query.layer, "code|agent|sandbox|infrastructure|client")},
    {"request", 0, "ID", "with --server: only lines of this request",
     CLI_TEXT(logs_options, query.request)},
    {"sandbox", 0, "ID", "with --server: only lines of this sandbox",
     CLI_AT(client_id, logs_options, query.sandbox)},
    {"json", 0, NULL, "print the server's entries as JSON, one per line",
     CLI_FLAG(logs_options, query.json)},
    {"state", 0, "DIR", "the server's state directory", CLI_TEXT(logs_options, query.state)},
    CLIENT_OPTIONS,
};

/* ---- entries, each once ---------------------------------------------------------------------- */

static void forget_seen(struct position *p)
{
    for (size_t i = 0; i < p->n_seen; i++)
        free(p->seen[i]);
    p->n_seen = 0;
}

static void position_done(struct position *p)
{
    forget_seen(p);
    free(p->seen);
}

static void remember(struct position *p, char *text)
{
    p->seen = xgrow(p->seen, p->n_seen, &p->cap, sizeof(p->seen[0]));
    p->seen[p->n_seen++] = text;
}

/* Whether the entry has not been shown yet. Remembers it as shown. */
static bool is_new(struct position *p, const json_t *entry)
{
    AUTO(free_p) char *text = json_dumps(entry, JSON_COMPACT);
    int64_t ms = journal_ms(entry);

    if (!text || ms < p->last_ms)
        return false;
    if (ms > p->last_ms)
        forget_seen(p);
    p->last_ms = ms;
    for (size_t i = 0; i < p->n_seen; i++)
        if (strcmp(p->seen[i], text) == 0)
            return false;
    remember(p, steal_ptr(&text));
    return true;
}

static void show(const struct logs_options *o, const json_t *entry)
{
    AUTO(strbuf_done) struct strbuf line = strbuf_upto(JOURNAL_LINE_MAX);

    if (journal_level(entry) < o->query.level)
        return;
    if (o->query.layer &&
        strcmp(o->query.layer, jr_text(json_object_get(entry, "fields"), "layer")) != 0)
        return;
    if (o->query.json) {
        json_dumpf(entry, stdout, JSON_COMPACT | JR_DIGITS);
        putchar('\n');
        return;
    }
    journal_format(entry, &line, ui_has_colour(STDOUT_FILENO));
    puts(line.buf);
}

/* ---- pages ----------------------------------------------------------------------------------- */

/* Shows the new entries of the page that begins at the position. *ret_more: another page
 * follows. */
static int show_page(struct client *c, const struct logs_options *o, struct position *p,
                     size_t *ret_new, bool *ret_more, struct sg_error *e)
{
    AUTO(jr_free_p) json_t *tree = NULL;
    char start[32] = "";

    if (p->last_ms > 0)
        snprintf(start, sizeof(start), "start=%lld&", (long long)p->last_ms);
    int r = api_get(c, &tree, e, "/sandboxes/%s/logs?%slimit=%d", o->id, start, PAGE_ENTRIES);
    if (r < 0)
        return r;
    const json_t *entries = json_object_get(tree, "logEntries");
    if (json_array_size(entries) == 0)
        entries = json_object_get(tree, "logs");
    *ret_new = 0;
    for (size_t i = 0; i < json_array_size(entries); i++) {
        if (!is_new(p, json_array_get(entries, i)))
            continue;
        show(o, json_array_get(entries, i));
        ++*ret_new;
    }
    *ret_more = json_array_size(entries) >= PAGE_ENTRIES;
    /* A whole page lies within one millisecond: the rest of that millisecond cannot be reached, so
     * skip it. */
    if (*ret_more && *ret_new == 0)
        p->last_ms++;
    return 0;
}

/* Shows all entries so far. */
static int show_all(struct client *c, const struct logs_options *o, struct position *p,
                    size_t *ret_new, struct sg_error *e)
{
    bool more = true;
    size_t n;

    *ret_new = 0;
    while (more) {
        int r = show_page(c, o, p, &n, &more, e);

        if (r < 0)
            return r;
        *ret_new += n;
    }
    return jr_flush(e);
}

static int follow(struct client *c, const struct logs_options *o, struct position *p,
                  struct sg_error *e)
{
    struct timespec pause = {.tv_sec = POLL_MS / 1000, .tv_nsec = POLL_MS % 1000 * 1000000L};
    bool gone = false;

    for (;;) {
        size_t n_new;
        int r = show_all(c, o, p, &n_new, e);

        /* -ENOENT is no error: a server may forget the log together with the sandbox. */
        if (gone || r < 0)
            return r == -ENOENT ? 0 : r;
        if (n_new == 0) {
            r = api_get(c, NULL, e, "/sandboxes/%s", o->id);
            gone = r == -ENOENT;
            if (r < 0 && !gone)
                return r;
        }
        if (!gone)
            nanosleep(&pause, NULL);
    }
}

static bool is_local(const void *self)
{
    return ((const struct logs_options *)self)->server;
}

static int logs_fn(struct client *c, void *self, struct sg_error *e)
{
    const struct logs_options *o = self;
    AUTO(position_done) struct position p = {.last_ms = o->query.since_ms};
    size_t n_new;

    if (o->server)
        return server_log_show(&o->query, e);
    int r = show_all(c, o, &p, &n_new, e);
    return r == 0 && o->query.follow ? follow(c, o, &p, e) : r;
}

const struct client_verb logs_verb = {
    .name = "logs",
    .usage = "[OPTION]... ID\n[OPTION]... --server",
    .about = "Shows the log of a sandbox, or of a server on this machine.",
    .syntax = &(const struct cli_syntax){options, ARRAY_SIZE(options), positional, 0},
    .options_size = sizeof(struct logs_options),
    .check = check,
    .fn = logs_fn,
    .is_local = is_local,
};
