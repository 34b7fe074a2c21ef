/* sandglass ctx ls: contexts as a table. */
#include "lib/base/clock.h"
#include "cli/client/api.h"
#include "cli/client/ctx.h"
#include "cli/client/jr.h"
#include "cli/client/table.h"
#include "cli/client/url.h"
#include "lib/command/when.h"

#define PAGE      "200"
#define PAGES_MAX 10000

static int list_page(struct client *c, const char *query, const char *cursor, json_t **ret,
                     struct sg_error *e)
{
    AUTO(strbuf_done) struct strbuf path = strbuf_upto(API_PATH_MAX);

    strbuf_addstr(&path, query);
    if (*cursor)
        url_add_query(&path, "cursor", cursor);
    return api_call(c, "GET", path.buf, NULL, ret, e);
}

int ctx_list(struct client *c, const char *conversation, const char *path, const char *status,
             struct json_t **ret, struct sg_error *e)
{
    AUTO(jr_free_p) json_t *all = json_array(), *page = NULL;
    AUTO(strbuf_done) struct strbuf query = strbuf_upto(API_PATH_MAX);
    int r = 0;

    strbuf_addstr(&query, "/v1/contexts?limit=" PAGE);
    if (conversation)
        url_add_query(&query, "conversationId", conversation);
    if (path)
        url_add_query(&query, "pathId", path);
    if (status)
        url_add_query(&query, "status", status);
    for (unsigned n = 0; n < PAGES_MAX; n++) {
        AUTO(jr_free_p) json_t *last = steal_ptr(&page);
        const char *cursor = jr_text(last, "nextCursor");

        r = last && !*cursor ? 1 : list_page(c, query.buf, cursor, &page, e);
        if (r < 0)
            return r;
        if (r > 0) {
            *ret = steal_ptr(&all);
            return 0;
        }
        json_array_extend(all, json_object_get(page, "contexts"));
    }
    return err_set(e, SG_ERR_LIMIT, -E2BIG, "the server's list has no end");
}

void ctx_add_time(struct table *t, const json_t *object, const char *key)
{
    char text[64];
    int64_t then;

    if (when_parse_ms(jr_text(object, key), &then) < 0)
        table_add(t, TABLE_PLAIN, "-");
    else
        table_add(t, TABLE_PLAIN, when_relative(then, clock_wall_ms(), text, sizeof(text)));
}

void ctx_add_status(struct table *t, const char *status)
{
    enum table_colour colour = strcmp(status, "ready") == 0      ? TABLE_GREEN
                               : strcmp(status, "creating") == 0 ? TABLE_YELLOW
                               : strcmp(status, "error") == 0    ? TABLE_RED
                                                                 : TABLE_PLAIN;

    table_add(t, colour, status);
}

static void add_row(struct table *t, const json_t *row)
{
    const char *sandbox = jr_text(row, "sandboxId");
    bool ended = *jr_text(row, "terminatedAt") != '\0';

    table_add(t, TABLE_PLAIN, jr_text(row, "id"));
    ctx_add_status(t, jr_text(row, "sandboxStatus"));
    ctx_add_time(t, row, "lastUsedAt");
    ctx_add_time(t, row, ended ? "terminatedAt" : "expiresAt");
    table_add(t, TABLE_PLAIN, *sandbox ? sandbox : "-");
    table_add(t, TABLE_PLAIN, jr_text(row, "conversationId"));
    table_add(t, TABLE_PLAIN, jr_text(row, "pathId"));
}

static void print_table(const json_t *list)
{
    static const struct table_column columns[] = {
        {"ID", TABLE_TEXT},   {"STATUS", TABLE_TEXT},   {"USED", TABLE_TEXT},
        {"ENDS", TABLE_TEXT}, {"SANDBOX", TABLE_SPARE}, {"CONVERSATION", TABLE_NAME},
        {"PATH", TABLE_NAME},
    };
    AUTO(table_done) struct table t = {0};

    table_init(&t, columns, ARRAY_SIZE(columns));
    for (size_t i = 0; i < json_array_size(list); i++)
        add_row(&t, json_array_get(list, i));
    table_print(&t, stdout);
}

int ctx_ls(struct client *c, void *options)
{
    const struct ctx_options *o = options;
    AUTO(jr_free_p) json_t *list = NULL;
    struct sg_error e;

    /* --status and --quiet are about contexts and not about paths, so they get the list, not the
     * tree. */
    if (o->base.n_args > 0 && !o->status && !o->base.quiet)
        return ctx_tree(c, o);
    if (ctx_list(c, o->base.n_args > 0 ? o->base.args[0] : NULL, NULL, o->status, &list, &e) < 0)
        return client_fail(&e);
    if (o->base.json)
        return jr_print(list, &e) < 0 ? client_fail(&e) : 0;
    if (!o->base.quiet) {
        print_table(list);
        return 0;
    }
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *id = jr_text(json_array_get(list, i), "id");
        if (url_is_plain_name(id))
            puts(id);
    }
    return 0;
}
