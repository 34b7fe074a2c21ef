/* sandglass usage: what a tenant has used, day by day. */
#include "base/parse.h"
#include "client/api.h"
#include "client/jr.h"
#include "client/table.h"
#include "client/url.h"
#include "client/usage_text.h"

struct usage_options {
    struct client_common common;
    const char *from, *to;
    bool json;
};

CLIENT_FLAG(usage_options, json)

/* Whether there is such a day is for the server to say. */
static int check_day(const char *option, const char *value, struct sg_error *e)
{
    static const char form[] = "0000-00-00";
    bool ok = strlen(value) == sizeof(form) - 1;

    for (size_t i = 0; ok && form[i]; i++)
        ok = form[i] == '-' ? value[i] == '-' : value[i] >= '0' && value[i] <= '9';
    return ok ? 0
              : err_set(e, SG_ERR_INVALID, -EINVAL, "%s '%.64s' is not a day such as 2026-03-31",
                        option, value);
}

static int apply_from(void *self, const char *value, struct sg_error *e)
{
    struct usage_options *o = self;

    o->from = value;
    return check_day("--from", value, e);
}

static int apply_to(void *self, const char *value, struct sg_error *e)
{
    struct usage_options *o = self;

    o->to = value;
    return check_day("--to", value, e);
}

static const struct cli_option options[] = {
    {"from", 0, "DAY", "the first day, such as 2026-03-01 (default: 30 days)", apply_from},
    {"to", 0, "DAY", "the last day (default: today)", apply_to},
    {"json", 0, NULL, "print the server's object", apply_json},
    CLIENT_OPTIONS,
};
static const struct cli_syntax syntax = {options, ARRAY_SIZE(options), NULL};

static void add_row(struct table *t, const char *day, const json_t *u)
{
    char text[64];

    table_add(t, TABLE_PLAIN, day);
    table_add(t, TABLE_PLAIN, usage_number(jr_number(u, "cpuSeconds"), text, sizeof(text)));
    table_add(t, TABLE_PLAIN, usage_number(jr_number(u, "memoryGibSeconds"), text, sizeof(text)));
    table_add(t, TABLE_PLAIN, format_size(jr_count(u, "bytesIn"), text, sizeof(text)));
    table_add(t, TABLE_PLAIN, format_size(jr_count(u, "bytesOut"), text, sizeof(text)));
    snprintf(text, sizeof(text), "%llu", (unsigned long long)jr_count(u, "executions"));
    table_add(t, TABLE_PLAIN, text);
    snprintf(text, sizeof(text), "%llu", (unsigned long long)jr_count(u, "sandboxes"));
    table_add(t, TABLE_PLAIN, text);
}

static void print_usage(const json_t *answer)
{
    static const struct table_column columns[] = {
        {"DAY", TABLE_TEXT},         {"CPU s", TABLE_NUMBER}, {"MEMORY GiB s", TABLE_NUMBER},
        {"IN", TABLE_NUMBER},        {"OUT", TABLE_NUMBER},   {"EXECUTIONS", TABLE_NUMBER},
        {"SANDBOXES", TABLE_NUMBER},
    };
    const json_t *days = json_object_get(answer, "days");
    const json_t *limits = json_object_get(answer, "limits");
    AUTO(table_done) struct table t = {0};

    table_init(&t, columns, ARRAY_SIZE(columns));
    for (size_t i = 0; i < json_array_size(days); i++)
        add_row(&t, jr_text(json_array_get(days, i), "day"), json_array_get(days, i));
    add_row(&t, "total", json_object_get(answer, "total"));
    table_print(&t, stdout);
    printf("\nSandboxes of contexts now: %llu, of at most %llu, and %llu of one conversation\n",
           (unsigned long long)jr_count(json_object_get(answer, "active"), "sandboxes"),
           (unsigned long long)jr_count(limits, "contexts"),
           (unsigned long long)jr_count(limits, "conversationContexts"));
}

static int usage_fn(struct client *c, void *self)
{
    const struct usage_options *o = self;
    AUTO(jr_free_p) json_t *answer = NULL;
    AUTO(strbuf_done) struct strbuf path = {0};
    struct sg_error e;

    strbuf_init(&path, API_PATH_MAX);
    strbuf_addstr(&path, "/v1/usage");
    if (o->from)
        url_add_query(&path, "from", o->from);
    if (o->to)
        url_add_query(&path, "to", o->to);
    if (api_call(c, "GET", path.buf, NULL, &answer, &e) < 0)
        return client_fail(&e);
    if (o->json)
        return jr_print(answer, &e) < 0 ? client_fail(&e) : 0;
    print_usage(answer);
    return 0;
}

const struct client_verb usage_verb = {
    .name = "usage",
    .usage = "[OPTION]...",
    .about = "Shows what your sandboxes have used, day by day: processor, memory, bytes, "
             "executions.",
    .syntax = &syntax,
    .options_size = sizeof(struct usage_options),
    .fn = usage_fn,
};
