#include "cli/client/tree.h"

#include "lib/text/strbuf.h"
#include "cli/client/jr.h"

#define ROWS_MAX   2000
#define PREFIX_MAX (64u * 1024)
#define NONE       SIZE_MAX

struct lines {
    const char *fork, *last, *pass, *blank, *into;
};
static const struct lines plain_lines = {"|- ", "`- ", "|  ", "   ", " -> "};
static const struct lines fine_lines = {"\xe2\x94\x9c\xe2\x94\x80 ", "\xe2\x94\x94\xe2\x94\x80 ",
                                        "\xe2\x94\x82  ", "   ", " \xe2\x86\x92 "};

struct tree {
    const json_t *rows;
    const struct lines *lines;
    bool straight;
    tree_row_fn *fn;
    void *arg;
    struct {
        size_t parent, child, sibling; /* indexes of nodes, or NONE */
        bool shown;
    } nodes[ROWS_MAX + 1]; /* the last node is the parent of all roots */
};

static const struct lines *lines_of(unsigned flags)
{
    return flags & TREE_UTF8 ? &fine_lines : &plain_lines;
}

const char *tree_arrow(unsigned flags)
{
    return lines_of(flags)->into;
}

unsigned tree_flags_of_terminal(void)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};

    for (size_t i = 0; isatty(STDOUT_FILENO) && i < ARRAY_SIZE(names); i++) {
        const char *value = getenv(names[i]);
        if (value && *value)
            return strcasestr(value, "utf-8") || strcasestr(value, "utf8") ? TREE_UTF8 : 0;
    }
    return 0;
}

/* Links the nodes. Children keep the order of the list, which is the order in which they were
 * made. */
static void link_nodes(struct tree *t, size_t n, const char *id, const char *parent)
{
    json_t *numbers = json_object();

    t->nodes[ROWS_MAX].child = NONE;
    for (size_t i = 0; i < n; i++) {
        t->nodes[i].child = NONE;
        json_object_set_new(numbers, jr_text(json_array_get(t->rows, i), id),
                            json_integer((json_int_t)i));
    }
    for (size_t i = n; i-- > 0;) {
        const char *name = jr_text(json_array_get(t->rows, i), parent);
        const json_t *number = *name ? json_object_get(numbers, name) : NULL;
        size_t p = number ? (size_t)json_integer_value(number) : ROWS_MAX;

        t->nodes[i].parent = p = p == i ? ROWS_MAX : p;
        t->nodes[i].sibling = t->nodes[p].child;
        t->nodes[p].child = i;
    }
    json_decref(numbers);
}

static void show(struct tree *t, size_t i, const char *prefix, const char *branch)
{
    AUTO(strbuf_done) struct strbuf lines = strbuf_upto(PREFIX_MAX);

    strbuf_addstr(&lines, prefix);
    strbuf_addstr(&lines, branch);
    t->nodes[i].shown = true;
    t->fn(t->arg, json_array_get(t->rows, i), lines.buf);
}

static size_t next_unseen(const struct tree *t, size_t i)
{
    while (i != NONE && t->nodes[i].shown)
        i = t->nodes[i].sibling;
    return i;
}

static void show_children(struct tree *t, size_t i, struct strbuf *prefix)
{
    size_t before = prefix->len, child = next_unseen(t, t->nodes[i].child), next;
    bool first = true;

    for (; child != NONE; child = next, first = false) {
        next = next_unseen(t, t->nodes[child].sibling);
        bool last = next == NONE, below = t->straight && first && last;

        show(t, child, prefix->buf, below ? "" : last ? t->lines->last : t->lines->fork);
        strbuf_addstr(prefix, below ? "" : last ? t->lines->blank : t->lines->pass);
        show_children(t, child, prefix);
        if (prefix->len > before) {
            prefix->len = before;
            prefix->buf[before] = '\0';
        }
    }
}

static void show_root(struct tree *t, size_t i)
{
    AUTO(strbuf_done) struct strbuf prefix = strbuf_upto(PREFIX_MAX);

    show(t, i, "", "");
    show_children(t, i, &prefix);
}

static void show_all(struct tree *t, size_t n)
{
    AUTO(strbuf_done) struct strbuf prefix = strbuf_upto(PREFIX_MAX);

    if (t->straight)
        show_children(t, ROWS_MAX, &prefix);
    for (size_t i = 0; i < n; i++)
        if (t->nodes[i].parent == ROWS_MAX && !t->nodes[i].shown)
            show_root(t, i);
    for (size_t i = 0; i < n; i++)
        if (!t->nodes[i].shown)
            show_root(t, i);
}

int tree_walk(const json_t *rows, const char *id, const char *parent, unsigned flags,
              tree_row_fn *fn, void *arg, struct sg_error *e)
{
    AUTO(free_p) struct tree *t = NULL;
    size_t n = json_array_size(rows);

    if (n > ROWS_MAX)
        return err_set(e, SG_ERR_LIMIT, -E2BIG, "a tree of more than %d: use --json", ROWS_MAX);
    t = xcalloc(1, sizeof(*t));
    t->rows = rows;
    t->lines = lines_of(flags);
    t->straight = flags & TREE_STRAIGHT;
    t->fn = fn;
    t->arg = arg;
    link_nodes(t, n, id, parent);
    show_all(t, n);
    return 0;
}
