/* sandglass ctx ls CONVERSATION: shows its paths, each below the path that it was branched from. */
#include "cli/client/api.h"
#include "cli/client/ctx.h"
#include "cli/client/jr.h"
#include "cli/client/show.h"
#include "cli/client/tree.h"
#include "cli/client/url.h"

#define LABEL_MAX (66u * 1024)

struct view {
    struct table *table;
    json_t *by_context; /* maps the id of a context to its row */
    const char *arrow;
};

static void add_row(void *arg, const json_t *path, const char *lines)
{
    struct view *v = arg;
    const char *context = jr_text(path, "contextId"), *merged = jr_text(path, "mergedInto");
    const json_t *row = json_object_get(v->by_context, context);
    AUTO(strbuf_done) struct strbuf label = strbuf_upto(LABEL_MAX);

    strbuf_addf(&label, "%s%s", lines, jr_text(path, "pathId"));
    if (*merged)
        strbuf_addf(&label, "%s%s", v->arrow, merged);
    table_add(v->table, TABLE_PLAIN, label.buf);
    ctx_add_status(v->table, *context  ? jr_text(path, "sandboxStatus")
                             : *merged ? "merged"
                                       : "lazy");
    show_time(v->table, path, "createdAt");
    show_time(v->table, row, "lastUsedAt");
    show_time(v->table, row, "expiresAt");
    show_cell(v->table, context);
}

int ctx_tree_rows(const json_t *paths, const json_t *contexts, unsigned flags, struct table *ret,
                  struct sg_error *e)
{
    static const struct table_column columns[] = {
        {"PATH", TABLE_NAME}, {"STATUS", TABLE_TEXT}, {"MADE", TABLE_SPARE},
        {"USED", TABLE_TEXT}, {"ENDS", TABLE_TEXT},   {"CONTEXT", TABLE_TEXT},
    };
    AUTO(jr_free_p) json_t *by_context = json_object();
    struct view v = {.table = ret, .by_context = by_context, .arrow = tree_arrow(flags)};

    table_init(ret, columns, ARRAY_SIZE(columns));
    for (size_t i = 0; i < json_array_size(contexts); i++) {
        json_t *row = json_array_get(contexts, i);
        json_object_set(by_context, jr_text(row, "id"), row);
    }
    return tree_walk(paths, "pathId", "parentPathId", flags, add_row, &v, e);
}

static int print_tree(struct client *c, const char *conversation, const json_t *paths,
                      struct sg_error *e)
{
    AUTO(jr_free_p) json_t *contexts = NULL;
    AUTO(table_done) struct table t = {0};
    int r = ctx_list(c, conversation, NULL, NULL, &contexts, e);

    if (r == 0)
        r = ctx_tree_rows(paths, contexts, tree_flags_of_terminal(), &t, e);
    if (r == 0)
        table_print(&t, stdout);
    return r;
}

int ctx_tree(struct client *c, const struct ctx_options *o, struct sg_error *e)
{
    AUTO(jr_free_p) json_t *answer = NULL;
    AUTO(strbuf_done) struct strbuf path = strbuf_upto(API_PATH_MAX);

    strbuf_addstr(&path, "/v1/paths");
    url_add_query(&path, "conversationId", o->base.args[0]);
    int r = api_get(c, &answer, e, "%s", path.buf);
    const json_t *paths = json_object_get(answer, "paths");
    if (r == 0)
        r = o->base.json ? jr_print(paths, e) : print_tree(c, o->base.args[0], paths, e);
    return r;
}
