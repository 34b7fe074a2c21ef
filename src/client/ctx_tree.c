/* sandglass ctx ls CONVERSATION: its paths, each below the one that it was branched from.
 *
 * What the server answers may be anything: paths whose parent is missing, or that are their own
 * ancestors. Each is shown once; what cannot be reached from a root is one. */
#include "cli/terminal.h"
#include "cli/ui.h"
#include "client/api.h"
#include "client/ctx.h"
#include "client/jr.h"
#include "client/table.h"
#include "client/url.h"

#define PATHS_MAX  2000
#define PREFIX_MAX (64u * 1024)
#define NONE       SIZE_MAX

struct lines {
    const char *fork, *last, *pass, *blank, *into;
};
static const struct lines plain_lines = {"|- ", "`- ", "|  ", "   ", " -> "};
static const struct lines fine_lines = {"\xe2\x94\x9c\xe2\x94\x80 ", "\xe2\x94\x94\xe2\x94\x80 ",
                                        "\xe2\x94\x82  ", "   ", " \xe2\x86\x92 "};

struct tree {
    const json_t *paths;
    json_t *by_name; /* path id to its number; context id to its row */
    json_t *by_context;
    const struct lines *lines;
    struct table *table;
    struct {
        size_t parent, child, sibling; /* numbers, or NONE */
        bool shown;
    } nodes[PATHS_MAX];
};

static void tree_free_p(struct tree **t)
{
    if (!*t)
        return;
    json_decref((*t)->by_name);
    json_decref((*t)->by_context);
    free(*t);
}

static size_t number_of(const struct tree *t, const char *path)
{
    const json_t *n = json_object_get(t->by_name, path);

    return n ? (size_t)json_integer_value(n) : NONE;
}

/* Children in the order of the list, which is that of their making. */
static void link_nodes(struct tree *t, size_t n)
{
    for (size_t i = n; i-- > 0;) {
        const char *parent = jr_text(json_array_get(t->paths, i), "parentPathId");
        size_t p = *parent ? number_of(t, parent) : NONE;

        t->nodes[i].parent = p == i ? NONE : p;
        if (t->nodes[i].parent == NONE)
            continue;
        t->nodes[i].sibling = t->nodes[p].child;
        t->nodes[p].child = i;
    }
}

static void index_all(struct tree *t, const json_t *contexts, size_t n)
{
    t->by_name = json_object();
    t->by_context = json_object();
    for (size_t i = 0; i < n; i++) {
        t->nodes[i].parent = t->nodes[i].child = t->nodes[i].sibling = NONE;
        json_object_set_new(t->by_name, jr_text(json_array_get(t->paths, i), "pathId"),
                            json_integer((json_int_t)i));
    }
    for (size_t i = 0; i < json_array_size(contexts); i++) {
        json_t *row = json_array_get(contexts, i);
        json_object_set(t->by_context, jr_text(row, "id"), row);
    }
    link_nodes(t, n);
}

static void add_row(struct tree *t, const json_t *path, const char *prefix, const char *branch)
{
    const char *context = jr_text(path, "contextId"), *merged = jr_text(path, "mergedInto");
    const json_t *row = json_object_get(t->by_context, context);
    AUTO(strbuf_done) struct strbuf label = {0};

    strbuf_init(&label, PREFIX_MAX + 1024);
    strbuf_addf(&label, "%s%s%s", prefix, branch, jr_text(path, "pathId"));
    if (*merged)
        strbuf_addf(&label, "%s%s", t->lines->into, merged);
    table_add(t->table, TABLE_PLAIN, label.buf);
    ctx_add_status(t->table, *context  ? jr_text(path, "sandboxStatus")
                             : *merged ? "merged"
                                       : "lazy");
    ctx_add_time(t->table, path, "createdAt");
    ctx_add_time(t->table, row, "lastUsedAt");
    ctx_add_time(t->table, row, "expiresAt");
    table_add(t->table, TABLE_PLAIN, *context ? context : "-");
}

static size_t next_unseen(const struct tree *t, size_t i)
{
    while (i != NONE && t->nodes[i].shown)
        i = t->nodes[i].sibling;
    return i;
}

static void add_children(struct tree *t, size_t i, struct strbuf *prefix)
{
    size_t before = prefix->len, child = next_unseen(t, t->nodes[i].child);

    while (child != NONE) {
        size_t next = next_unseen(t, t->nodes[child].sibling);
        bool last = next == NONE;

        t->nodes[child].shown = true;
        add_row(t, json_array_get(t->paths, child), prefix->buf,
                last ? t->lines->last : t->lines->fork);
        strbuf_addstr(prefix, last ? t->lines->blank : t->lines->pass);
        add_children(t, child, prefix);
        prefix->len = before;
        prefix->buf[before] = '\0';
        child = next;
    }
}

static void add_root(struct tree *t, size_t i)
{
    AUTO(strbuf_done) struct strbuf prefix = {0};

    strbuf_init(&prefix, PREFIX_MAX);
    t->nodes[i].shown = true;
    add_row(t, json_array_get(t->paths, i), "", "");
    add_children(t, i, &prefix);
}

int ctx_tree_format(const json_t *paths, const json_t *contexts, bool utf8, size_t width,
                    bool colours, struct strbuf *out, struct sg_error *e)
{
    static const struct table_column columns[] = {
        {"PATH", TABLE_NAME}, {"STATUS", TABLE_TEXT}, {"MADE", TABLE_SPARE},
        {"USED", TABLE_TEXT}, {"ENDS", TABLE_TEXT},   {"CONTEXT", TABLE_TEXT},
    };
    AUTO(tree_free_p) struct tree *t = xcalloc(1, sizeof(*t));
    AUTO(table_done) struct table table = {0};
    size_t n = json_array_size(paths);

    if (n > PATHS_MAX)
        return err_set(e, SG_ERR_LIMIT, -E2BIG, "a conversation of more than %d paths: use --json",
                       PATHS_MAX);
    table_init(&table, columns, ARRAY_SIZE(columns));
    t->paths = paths;
    t->lines = utf8 ? &fine_lines : &plain_lines;
    t->table = &table;
    index_all(t, contexts, n);
    for (size_t i = 0; i < n; i++)
        if (t->nodes[i].parent == NONE)
            add_root(t, i);
    for (size_t i = 0; i < n; i++)
        if (!t->nodes[i].shown)
            add_root(t, i);
    table_format(&table, out, width, colours);
    return 0;
}

/* What the user's programs take for the character set of the terminal. */
static bool terminal_has_utf8(void)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        const char *value = getenv(names[i]);
        if (value && *value)
            return strcasestr(value, "utf-8") || strcasestr(value, "utf8");
    }
    return false;
}

static int print_tree(const json_t *paths, const json_t *contexts, struct sg_error *e)
{
    AUTO(strbuf_done) struct strbuf out = {0};
    bool terminal = isatty(STDOUT_FILENO);
    uint16_t rows, cols = 0;

    if (terminal)
        terminal_size(&rows, &cols);
    strbuf_init(&out, SIZE_MAX / 2);
    int r = ctx_tree_format(paths, contexts, terminal && terminal_has_utf8(), cols,
                            ui_has_colour(STDOUT_FILENO), &out, e);
    if (r == 0)
        fputs(out.buf, stdout);
    return r;
}

int ctx_tree(struct client *c, const struct ctx_options *o)
{
    AUTO(jr_free_p) json_t *answer = NULL, *contexts = NULL;
    AUTO(strbuf_done) struct strbuf path = {0};
    const json_t *paths;
    struct sg_error e;

    strbuf_init(&path, API_PATH_MAX);
    strbuf_addstr(&path, "/v1/paths");
    url_add_query(&path, "conversationId", o->args[0]);
    int r = api_call(c, "GET", path.buf, NULL, &answer, &e);
    paths = json_object_get(answer, "paths");
    if (r == 0 && o->given & CTX_JSON)
        r = jr_print(paths, &e);
    else if (r == 0) {
        r = ctx_list(c, o->args[0], NULL, NULL, &contexts, &e);
        if (r == 0)
            r = print_tree(paths, contexts, &e);
    }
    return r < 0 ? client_fail(&e) : 0;
}
