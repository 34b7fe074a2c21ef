/* sandglass events: shows what happened to sandboxes, contexts and agents; with -f goes on as more
 * happens. */
#include <time.h>

#include "lib/base/clock.h"
#include "lib/text/parse.h"
#include "lib/command/ui.h"
#include "lib/command/when.h"
#include "cli/client/api.h"
#include "cli/client/jr.h"
#include "cli/client/mcp_events.h"
#include "cli/client/table.h"
#include "cli/client/url.h"
#include "cli/client/web.h"

#define PAGE_EVENTS 1000
#define TYPE_WIDTH  20 /* the longest type, sandbox.checkpoint, and two spaces */
#define LINE_MAX_   (64u * 1024)
#define SILENCE_S   45 /* no sign of the server for so long: it is gone (it sends one every 15 s) */
#define PATIENCE_NS (60ull * 1000000000)
#define RETRY_S     1
#define REFUSAL_MAX (64u * 1024)
#define DIM         "\033[2m"
#define YELLOW      "\033[33m"
#define RED         "\033[31m"
#define RESET       "\033[0m"

struct events_options {
    struct client_common common;
    const char *types, *sandbox, *conversation;
    uint64_t after;
    bool given_after, follow, json;
};

static int apply_after(void *self, const struct cli_option *option UNUSED, const char *value,
                       struct sg_error *e)
{
    struct events_options *o = self;

    o->given_after = true;
    return parse_u64("--after", value, 0, INT64_MAX, &o->after, e);
}

static const struct cli_option options[] = {
    {"follow", 'f', NULL, "keep running and show new events", CLI_FLAG(events_options, follow)},
    {"types", 0, "LIST", "only these kinds: sandbox.*,context.ended",
     CLI_TEXT(events_options, types)},
    {"sandbox", 0, "ID", "only events of this sandbox", CLI_AT(client_id, events_options, sandbox)},
    {"conversation", 0, "ID", "only events of this conversation",
     CLI_TEXT(events_options, conversation)},
    {"after", 0, "NUMBER", "only events after the one with this number", .apply = apply_after},
    {"json", 0, NULL, "print the server's objects, one a line", CLI_FLAG(events_options, json)},
    CLIENT_OPTIONS,
};

/* ---- a line ---------------------------------------------------------------------------------- */

static const char *colour_of(const json_t *event)
{
    const char *type = jr_text(event, "type"), *reason = jr_text(event, "reason");

    if (strcmp(reason, "failed") == 0 || strcmp(reason, "died") == 0)
        return RED;
    return strcmp(type, "gap") == 0 || strcmp(type, "egress.blocked") == 0 ? YELLOW : "";
}

/* Appends the event's fields, such as "sandbox=k3j... reason=killed". Leaves out fields that have a
 * column of their own or are always the same. */
static void add_fields(const json_t *event, struct strbuf *out)
{
    static const char *const fields[][2] = {
        {"sandboxId", "sandbox"}, {"contextId", "context"}, {"conversationId", "conversation"},
        {"pathId", "path"},       {"agentId", "agent"},     {"reason", "reason"},
        {"detail", "detail"},     {"requestId", "request"},
    };

    const char *between = "";

    for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
        const char *value = jr_text(event, fields[i][0]);

        if (!*value)
            continue;
        strbuf_addf(out, "%s%s=", between, fields[i][1]);
        table_clean(out, value, strlen(value));
        between = "  ";
    }
}

static void format_event(const json_t *event, struct strbuf *out, bool colours)
{
    const char *type = jr_text(event, "type"), *colour = colours ? colour_of(event) : "";
    char time[64];
    int64_t ms = 0;

    when_parse_ms(jr_text(event, "time"), &ms);
    strbuf_addf(out, "%s  %8llu  %s", when_local(ms, time, sizeof(time)),
                (unsigned long long)jr_count(event, "id"), colour);
    size_t width = table_clean(out, type, strlen(type));
    strbuf_addstr(out, *colour ? RESET : "");
    for (; width < TYPE_WIDTH; width++)
        strbuf_addch(out, ' ');
    strbuf_addstr(out, colours ? DIM : "");
    add_fields(event, out);
    strbuf_addstr(out, colours ? RESET : "");
}

static void show(const struct events_options *o, const json_t *event)
{
    AUTO(strbuf_done) struct strbuf line = strbuf_upto(LINE_MAX_);

    if (o->json) {
        json_dumpf(event, stdout, JSON_COMPACT);
        putchar('\n');
        return;
    }
    format_event(event, &line, ui_has_colour(STDOUT_FILENO));
    puts(line.buf);
}

/* ---- pages ----------------------------------------------------------------------------------- */

static void make_path(const struct events_options *o, const uint64_t *after, struct strbuf *path)
{
    char number[32];

    strbuf_addstr(path, "/v1/events");
    url_add_query(path, "types", o->types);
    url_add_query(path, "sandboxId", o->sandbox);
    url_add_query(path, "conversationId", o->conversation);
    if (after) {
        snprintf(number, sizeof(number), "%llu", (unsigned long long)*after);
        url_add_query(path, "after", number);
    }
}

/* Shows all events so far. *ret_last: the number of the last one, from where following goes on. */
static int show_pages(struct client *c, const struct events_options *o, uint64_t *ret_last,
                      struct sg_error *e)
{
    uint64_t next = o->after;
    bool given = o->given_after, more = true;

    while (more) {
        AUTO(jr_free_p) json_t *tree = NULL;
        AUTO(strbuf_done) struct strbuf path = strbuf_upto(API_PATH_MAX);
        char number[32];

        make_path(o, given ? &next : NULL, &path);
        snprintf(number, sizeof(number), "%d", PAGE_EVENTS);
        url_add_query(&path, "limit", number);
        int r = api_get(c, &tree, e, "%s", path.buf);
        if (r < 0)
            return r;
        const json_t *events = json_object_get(tree, "events");
        if (given && jr_flag(tree, "gap"))
            ui_note("some events after %llu are no longer kept", (unsigned long long)next);
        for (size_t i = 0; i < json_array_size(events); i++)
            show(o, json_array_get(events, i));
        more = jr_flag(tree, "more") && jr_count(tree, "next") > next;
        next = jr_count(tree, "next");
        given = true;
    }
    *ret_last = next;
    return jr_flush(e);
}

/* ---- what happens ---------------------------------------------------------------------------- */

struct following {
    const struct events_options *o;
    struct client *client;
    struct mcp_events reader;
    struct web_reply refusal;
    uint64_t last;
    bool came; /* the server sent something since we connected */
};

static void on_event(void *arg, const char *data, size_t len)
{
    AUTO(jr_free_p) json_t *event = NULL;
    struct following *f = arg;

    if (jr_parse(data, len, &event, NULL) < 0)
        return;
    f->last = jr_count(event, "id");
    show(f->o, event);
}

static size_t take(char *data, size_t size, size_t n, void *arg)
{
    struct following *f = arg;
    long status = 0;

    curl_easy_getinfo(f->client->easy, CURLINFO_RESPONSE_CODE, &status);
    if (status != 200) {
        strbuf_add(&f->refusal.body, data, size * n);
        return size * n;
    }
    f->came = true;
    if (mcp_events_feed(&f->reader, data, size * n, on_event, f) < 0 || fflush(stdout) != 0)
        return 0;
    return size * n;
}

/* Follows events until the connection ends. 0: the caller may connect again. */
static int follow_once(struct following *f, struct sg_error *e)
{
    AUTO(web_headers_done) struct curl_slist *headers = NULL;
    AUTO(strbuf_done) struct strbuf url = strbuf_upto(API_PATH_MAX + 1024);
    CURL *easy = f->client->easy;

    strbuf_addstr(&url, f->client->settings.api_url);
    make_path(f->o, &f->last, &url);
    if (f->client->settings.api_key)
        web_add_header(&headers, "X-API-KEY", f->client->settings.api_key);
    web_add_header(&headers, "Accept", "text/event-stream");
    web_prepare(easy, &(struct web_request){.method = "GET", .url = url.buf, .headers = headers});
    curl_easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl_easy_setopt(easy, CURLOPT_LOW_SPEED_TIME, (long)SILENCE_S);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, f);
    int r = web_perform(easy, url.buf, e);
    if (ferror(stdout))
        return err_set(e, SG_ERR_INTERNAL, -EIO, "cannot write to standard output");
    if (r < 0)
        return r;
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &f->refusal.status);
    if (f->refusal.status == 200 || f->refusal.status >= 500)
        return 0;
    return api_refusal(&f->refusal, e);
}

/* Follows events and reconnects when the connection breaks. A restarted server goes on with the
 * same numbers, so no event is missed. */
static int follow(struct following *f, struct sg_error *e)
{
    struct timespec pause = {.tv_sec = RETRY_S};
    uint64_t lost_ns = clock_ns();

    for (;;) {
        mcp_events_init(&f->reader);
        strbuf_init(&f->refusal.body, REFUSAL_MAX);
        f->came = false;
        int r = follow_once(f, e);
        mcp_events_done(&f->reader);
        strbuf_done(&f->refusal.body);
        if (f->came)
            lost_ns = clock_ns();
        bool again = r == 0 || r == -EHOSTUNREACH || r == -ETIMEDOUT;
        if (!again || (r < 0 && clock_ns() - lost_ns > PATIENCE_NS))
            return r;
        nanosleep(&pause, NULL);
    }
}

static int events_fn(struct client *c, void *self, struct sg_error *e)
{
    const struct events_options *o = self;
    struct following f = {.o = o, .client = c};
    int r = show_pages(c, o, &f.last, e);

    return r == 0 && o->follow ? follow(&f, e) : r;
}

const struct client_verb events_verb = {
    .name = "events",
    .usage = "[OPTION]...",
    .about = "Shows what happened to your sandboxes, contexts and agents.",
    .syntax = &(const struct cli_syntax){options, ARRAY_SIZE(options), NULL, 0},
    .options_size = sizeof(struct events_options),
    .fn = events_fn,
};
