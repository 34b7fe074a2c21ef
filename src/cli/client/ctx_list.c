/* sandglass ctx ls, get, touch: contexts as a table, the paths of a conversation as a tree, and one
 * context in words. */
#include "lib/text/json.h"
#include "cli/client/api.h"
#include "cli/client/usage_text.h"
#include "cli/client/payload.h"
#include "cli/client/ctx.h"
#include "cli/client/jr.h"
#include "cli/client/show.h"
#include "cli/client/tree.h"
#include "cli/client/url.h"

#define LINE_MAX_ 4096
#define PAGE      "200"
#define LABEL_MAX (66u * 1024)

int ctx_list(struct client *c, const char *conversation, const char *path, const char *status,
             struct json_t **ret, struct sg_error *e)
{
    AUTO(jr_free_p) json_t *answer = NULL;
    AUTO(strbuf_done) struct strbuf query = strbuf_upto(API_PATH_MAX);

    strbuf_addstr(&query, "/v1/contexts?limit=" PAGE);
    url_add_query(&query, "conversationId", conversation);
    url_add_query(&query, "pathId", path);
    url_add_query(&query, "status", status);
    int r = api_pages(c, query.buf, "contexts", &answer, e);
    json_t *contexts = json_object_get(answer, "contexts");
    if (r == 0)
        *ret = json_is_array(contexts) ? json_incref(contexts) : json_array();
    return r;
}

static int find(struct client *c, const char *conversation, const char *path, json_t **ret,
                struct sg_error *e)
{
    AUTO(jr_free_p) json_t *list = NULL;
    int r = ctx_list(c, conversation, path, NULL, &list, e);

    if (r < 0)
        return r;
    if (json_array_size(list) == 0)
        return err_set(e, SG_ERR_NOT_FOUND, -ENOENT,
                       "path '%.64s' of conversation '%.64s' has no context", path, conversation);
    *ret = json_incref(json_array_get(list, 0));
    return 0;
}

int ctx_check_id(const char *id, struct sg_error *e)
{
    if (url_is_plain_name(id))
        return 0;
    return err_invalid(e, "'%.64s' is not the id of a context: 'sandglass ctx ls' lists them", id);
}

int ctx_id(struct client *c, const struct ctx_options *o, size_t n_args, json_t **row,
           const char **ret, struct sg_error *e)
{
    const char *const *args = o->base.args;
    int r = n_args == 2 ? find(c, args[0], args[1], row, e) : 0;

    *ret = *row ? jr_text(*row, "id") : args[0];
    return r < 0 ? r : ctx_check_id(*ret, e);
}

/* ---- ls -------------------------------------------------------------------------------------- */

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
    bool ended = *jr_text(row, "terminatedAt") != '\0';

    table_add(t, TABLE_PLAIN, jr_text(row, "id"));
    ctx_add_status(t, jr_text(row, "sandboxStatus"));
    show_time(t, row, "lastUsedAt");
    show_time(t, row, ended ? "terminatedAt" : "expiresAt");
    show_cell(t, jr_text(row, "sandboxId"));
    table_add(t, TABLE_PLAIN, jr_text(row, "conversationId"));
    table_add(t, TABLE_PLAIN, jr_text(row, "pathId"));
}

static const struct table_column columns[] = {
    {"ID", TABLE_TEXT},   {"STATUS", TABLE_TEXT},   {"USED", TABLE_TEXT},
    {"ENDS", TABLE_TEXT}, {"SANDBOX", TABLE_SPARE}, {"CONVERSATION", TABLE_NAME},
    {"PATH", TABLE_NAME},
};
static const struct show_list shown = {columns, ARRAY_SIZE(columns), add_row, "id"};

/* ---- ls CONVERSATION: the paths, each below the path that it was branched from --------------- */

struct view {
    struct table *table;
    json_t *by_context; /* maps the id of a context to its row */
    const char *arrow;
};

static void add_path(void *arg, const json_t *path, const char *lines)
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
    static const struct table_column heads[] = {
        {"PATH", TABLE_NAME}, {"STATUS", TABLE_TEXT}, {"MADE", TABLE_SPARE},
        {"USED", TABLE_TEXT}, {"ENDS", TABLE_TEXT},   {"CONTEXT", TABLE_TEXT},
    };
    AUTO(jr_free_p) json_t *by_context = json_object();
    struct view v = {.table = ret, .by_context = by_context, .arrow = tree_arrow(flags)};

    table_init(ret, heads, ARRAY_SIZE(heads));
    for (size_t i = 0; i < json_array_size(contexts); i++) {
        json_t *row = json_array_get(contexts, i);
        json_object_set(by_context, jr_text(row, "id"), row);
    }
    return tree_walk(paths, "pathId", "parentPathId", flags, add_path, &v, e);
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

static int list_tree(struct client *c, const struct ctx_options *o, struct sg_error *e)
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

int ctx_ls(struct client *c, void *options, struct sg_error *e)
{
    const struct ctx_options *o = options;
    AUTO(jr_free_p) json_t *list = NULL;

    /* --status and --quiet are about contexts and not about paths, so they get the list, not the
     * tree. */
    if (o->base.n_args > 0 && !o->status && !o->base.quiet)
        return list_tree(c, o, e);
    /* Without an argument args[0] is NULL: contexts of all conversations. */
    int r = ctx_list(c, o->base.args[0], NULL, o->status, &list, e);
    return r < 0 ? r : show_list(&shown, list, o->base.json, o->base.quiet, e);
}

/* ---- get, touch ------------------------------------------------------------------------------ */

static const struct show_field fields[] = {
    {"id", "id", SHOW_TEXT, NULL},
    {"conversation", "conversationId", SHOW_TEXT, NULL},
    {"path", "pathId", SHOW_TEXT, NULL},
    {"parent", "parentPathId", SHOW_TEXT, NULL},
    {"status", "sandboxStatus", SHOW_TEXT, NULL},
    {"sandbox", "sandboxId", SHOW_TEXT, NULL},
    {"template", "templateId", SHOW_TEXT, NULL},
    {"made", "createdAt", SHOW_TIME_AWAY, NULL},
    {"used", "lastUsedAt", SHOW_TIME_AWAY, NULL},
    {"ends", "expiresAt", SHOW_TIME_AWAY, "terminatedAt"},
    {"ended", "terminatedAt", SHOW_TIME_AWAY | SHOW_OPTIONAL, NULL},
    {"error", "errorMessage", SHOW_OPTIONAL, NULL},
};

static void print_context(const json_t *row)
{
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(64u * 1024), usage = strbuf_upto(LINE_MAX_);

    show_object(&out, fields, ARRAY_SIZE(fields), row);
    usage_sentence(&usage, json_object_get(row, "resourceUsage"));
    show_line(&out, "usage", usage.buf);
    fputs(out.buf, stdout);
}

int ctx_get(struct client *c, void *options, struct sg_error *e)
{
    const struct ctx_options *o = options;
    const char *const *args = o->base.args;
    AUTO(jr_free_p) json_t *row = NULL;
    int r = o->base.n_args == 2 ? find(c, args[0], args[1], &row, e) : ctx_check_id(args[0], e);

    if (r == 0 && !row)
        r = api_get(c, &row, e, "/v1/contexts/%s", args[0]);
    return show_answer(r, row, o->base.json, print_context, e);
}

int ctx_touch(struct client *c, void *options, struct sg_error *e)
{
    const struct ctx_options *o = options;
    AUTO(jr_free_p) json_t *found = NULL, *row = NULL;
    AUTO(strbuf_done) struct strbuf body = strbuf_upto(128);
    struct json j = {.out = &body};
    const char *id;
    int r = ctx_id(c, o, o->base.n_args, &found, &id, e);

    jw_object_begin(&j);
    payload_number(&j, "ttlSeconds", o->ttl_s);
    jw_object_end(&j);
    if (r == 0)
        r = api_call(c, "POST", &body, &row, e, "/v1/contexts/%s/touch", id);
    return show_answer(r, row, o->base.json, print_context, e);
}
