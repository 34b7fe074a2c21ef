/* sandglass usage: shows what a tenant has used, by day or by conversation, and what it costs. */
#include "lib/text/parse.h"
#include "cli/client/api.h"
#include "cli/client/jr.h"
#include "cli/client/show.h"
#include "cli/client/url.h"
#include "cli/client/usage_text.h"

#define LATEST "10 seconds" /* a server counts what runs so often */

struct usage_options {
    struct client_common common;
    const char *from, *to, *conversation, *by;
    bool cost, json;
};

static bool by_conversation(const struct usage_options *o)
{
    return o->by && strcmp(o->by, "conversation") == 0;
}

static int take_day(void *to, const struct cli_option *o, const char *value, struct sg_error *e)
{
    static const char form[] = "0000-00-00";
    bool ok = strlen(value) == sizeof(form) - 1;

    for (size_t i = 0; ok && form[i]; i++)
        ok = form[i] == '-' ? value[i] == '-' : value[i] >= '0' && value[i] <= '9';
    return ok ? cli_text(to, o, value, e)
              : err_invalid(e, "--%s '%.64s' is not a day such as 2026-03-31", o->name, value);
}

static const struct cli_option options[] = {
    {"cost", 0, NULL, "show the cost, by the server's prices", CLI_FLAG(usage_options, cost)},
    {"by", 0, "WHAT", "a line for each day (default) or conversation",
     CLI_WORD(usage_options, by, "day|conversation")},
    {"conversation", 0, "ID", "only the usage of this conversation",
     CLI_TEXT(usage_options, conversation)},
    {"from", 0, "DAY", "the first day, such as 2026-03-01 (default: 30 days)",
     CLI_AT(take_day, usage_options, from)},
    {"to", 0, "DAY", "the last day (default: today)", CLI_AT(take_day, usage_options, to)},
    {"json", 0, NULL, "print the server's object", CLI_FLAG(usage_options, json)},
    CLIENT_OPTIONS,
};

/* ---- the table ------------------------------------------------------------------------------- */

static void add_row(struct table *t, bool cost, const char *name, const json_t *u)
{
    char text[64];

    table_add(t, TABLE_PLAIN, name);
    table_add(t, TABLE_PLAIN, usage_number(jr_number(u, "cpuSeconds"), text, sizeof(text)));
    table_add(t, TABLE_PLAIN, usage_number(jr_number(u, "memoryGibSeconds"), text, sizeof(text)));
    if (!cost) {
        table_add(t, TABLE_PLAIN, format_size(jr_count(u, "bytesIn"), text, sizeof(text)));
        table_add(t, TABLE_PLAIN, format_size(jr_count(u, "bytesOut"), text, sizeof(text)));
    }
    table_add(t, TABLE_PLAIN, format_size(jr_count(u, "egressBytes"), text, sizeof(text)));
    show_count(t, u, "executions");
    show_count(t, u, "sandboxes");
    if (cost)
        table_add(t, TABLE_PLAIN,
                  usage_cents(jr_text(json_object_get(u, "cost"), "amount"), text, sizeof(text)));
}

/* Prints the parts of the total and the price of each. */
static void print_parts(const json_t *answer)
{
    const json_t *parts =
        json_object_get(json_object_get(json_object_get(answer, "total"), "cost"), "parts");
    json_t *prices = json_object_get(answer, "prices");
    const char *currency = jr_text(prices, "currency");

    printf("\n");
    for (void *at = json_object_iter(prices); at; at = json_object_iter_next(prices, at)) {
        const char *name = json_object_iter_key(at);
        const json_t *price = json_object_iter_value(at);
        char cents[64];

        if (json_is_object(price))
            show_say(stdout, "%-10s %12s %s, at %s for each %s", name,
                     usage_cents(jr_text(parts, name), cents, sizeof(cents)), currency,
                     jr_text(price, "price"), jr_text(price, "per"));
    }
}

static void print_active(const json_t *answer)
{
    const json_t *limits = json_object_get(answer, "limits");

    printf("\nSandboxes of contexts now: %llu, of at most %llu, and %llu of one conversation\n",
           (unsigned long long)jr_count(json_object_get(answer, "active"), "sandboxes"),
           (unsigned long long)jr_count(limits, "contexts"),
           (unsigned long long)jr_count(limits, "conversationContexts"));
}

static void print_usage(const struct usage_options *o, const json_t *answer)
{
    const char *first = by_conversation(o) ? "CONVERSATION" : "DAY";
    enum table_kind kind = by_conversation(o) ? TABLE_NAME : TABLE_TEXT;
    char cost[32];
    const struct table_column used[] = {
        {first, kind},
        {"CPU s", TABLE_NUMBER},
        {"MEMORY GiB s", TABLE_NUMBER},
        {"IN", TABLE_NUMBER},
        {"OUT", TABLE_NUMBER},
        {"EGRESS", TABLE_NUMBER},
        {"EXECUTIONS", TABLE_NUMBER},
        {"SANDBOXES", TABLE_NUMBER},
    };
    const struct table_column priced[] = {
        {first, kind},
        {"CPU s", TABLE_NUMBER},
        {"MEMORY GiB s", TABLE_NUMBER},
        {"EGRESS", TABLE_NUMBER},
        {"EXECUTIONS", TABLE_NUMBER},
        {"SANDBOXES", TABLE_NUMBER},
        {cost, TABLE_NUMBER},
    };
    const json_t *rows = json_object_get(answer, by_conversation(o) ? "conversations" : "days");
    AUTO(table_done) struct table t = {0};

    snprintf(cost, sizeof(cost), "COST %.15s",
             jr_text(json_object_get(answer, "prices"), "currency"));
    if (o->cost)
        table_init(&t, priced, ARRAY_SIZE(priced));
    else
        table_init(&t, used, ARRAY_SIZE(used));
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        const char *name = jr_text(row, by_conversation(o) ? "conversationId" : "day");

        add_row(&t, o->cost, *name ? name : "-", row);
    }
    add_row(&t, o->cost, "total", json_object_get(answer, "total"));
    table_print(&t, stdout);
    if (o->cost)
        print_parts(answer);
    else
        print_active(answer);
}

/* ---- asking ---------------------------------------------------------------------------------- */

static int ask(struct client *c, const struct usage_options *o, json_t **ret, struct sg_error *e)
{
    AUTO(strbuf_done) struct strbuf path = strbuf_upto(API_PATH_MAX);

    strbuf_addstr(&path, "/v1/usage");
    url_add_query(&path, "from", o->from);
    url_add_query(&path, "to", o->to);
    url_add_query(&path, "by", by_conversation(o) ? "conversation" : NULL);
    url_add_query(&path, "conversationId", o->conversation);
    return api_pages(c, path.buf, "conversations", ret, e);
}

static int usage_fn(struct client *c, void *self, struct sg_error *e)
{
    const struct usage_options *o = self;
    AUTO(jr_free_p) json_t *answer = NULL;
    int r = ask(c, o, &answer, e);

    if (r < 0)
        return r;
    if (o->cost && !json_is_object(json_object_get(answer, "prices")))
        return err_set(e, SG_ERR_NOT_FOUND, -ENOENT,
                       "this server has no prices: set them in its sandglass.conf, like prices = "
                       "cpu=0.05/h,memory=0.006/h,egress=0.09/G,currency=USD");
    if (o->json)
        return jr_print(answer, e);
    print_usage(o, answer);
    if (!o->to)
        puts("What was used in the last " LATEST " is not in it yet.");
    return 0;
}

const struct client_verb usage_verb = {
    .name = "usage",
    .usage = "[OPTION]...",
    .about = "Shows what your sandboxes have used, by day or by conversation, and what it costs.",
    .syntax = &(const struct cli_syntax){options, ARRAY_SIZE(options), NULL, 0},
    .options_size = sizeof(struct usage_options),
    .fn = usage_fn,
};
