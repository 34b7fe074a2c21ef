#include "cli/client/table.h"

#include <wchar.h>
#include <wctype.h>

#include "lib/command/terminal.h"
#include "lib/command/ui.h"

#define GAP      "   "
#define CUT_MARK "\xe2\x80\xa6" /* an ellipsis */
#define CELL_MAX (64u * 1024)
#define NAME_MIN 12 /* columns that a cut name keeps at least */
#define BOLD     "\033[1m"
#define RESET    "\033[0m"

static const char *const colour_codes[] = {
    [TABLE_PLAIN] = "",
    [TABLE_GREEN] = "\033[32m",
    [TABLE_YELLOW] = "\033[33m",
    [TABLE_RED] = "\033[31m",
};
_Static_assert(ARRAY_SIZE(colour_codes) == TABLE_COLOUR_MAX_, "a code for each colour");

void table_init(struct table *t, const struct table_column *columns, size_t n_columns)
{
    *t = (struct table){.columns = columns, .n_columns = n_columns};
}

void table_done(struct table *t)
{
    for (size_t i = 0; i < t->n_cells; i++)
        free(t->cells[i].text);
    free(t->cells);
    *t = (struct table){0};
}

/* Finds the length in bytes and the width in columns of the next character. False if it is not
 * printable, and then its width counts as 1, for the '?' in its place. */
static bool next_char(const char *s, size_t len, size_t *ret_bytes, size_t *ret_width)
{
    mbstate_t state = {0};
    wchar_t c;
    size_t n = mbrtowc(&c, s, len, &state);

    *ret_bytes = *ret_width = 1;
    if (n == 0 || n > len)
        return false;
    int width = wcwidth(c);
    *ret_bytes = n;
    if (width < 0 || !iswprint((wint_t)c))
        return false;
    *ret_width = (size_t)width;
    return true;
}

size_t table_clean(struct strbuf *out, const char *text, size_t len)
{
    size_t total = 0, bytes, width;

    for (size_t at = 0; at < len; at += bytes) {
        if (next_char(text + at, len - at, &bytes, &width))
            strbuf_add(out, text + at, bytes);
        else
            strbuf_addch(out, '?');
        total += width;
    }
    return total;
}

void table_add(struct table *t, enum table_colour colour, const char *text)
{
    struct strbuf clean;

    t->cells = xgrow(t->cells, t->n_cells, &t->cap, sizeof(t->cells[0]));
    strbuf_init(&clean, CELL_MAX);
    size_t width = table_clean(&clean, text, strlen(text));
    t->cells[t->n_cells++] =
        (struct table_cell){.text = strbuf_detach(&clean, NULL), .colour = colour, .width = width};
}

static size_t column_width(const struct table *t, size_t column)
{
    size_t width = strlen(t->columns[column].title);

    for (size_t i = column; i < t->n_cells; i += t->n_columns)
        if (t->cells[i].width > width)
            width = t->cells[i].width;
    return width;
}

void table_cut(struct strbuf *out, const char *text, size_t text_width, size_t room)
{
    size_t len = strlen(text), at = 0, used = 0, bytes, width;

    if (text_width <= room) {
        strbuf_addstr(out, text);
        return;
    }
    while (at < len) {
        next_char(text + at, len - at, &bytes, &width);
        if (used + width + 1 > room)
            break;
        used += width;
        at += bytes;
    }
    strbuf_add(out, text, at);
    if (room > 0)
        strbuf_addstr(out, CUT_MARK);
}

/* Appends one cell. `last`: the last cell of its line, so no blanks follow it. */
static void add_cell(struct strbuf *out, const char *text, size_t text_width, const char *code,
                     bool right, size_t width, bool last)
{
    size_t pad = width > text_width ? width - text_width : 0;

    if (right)
        strbuf_addf(out, "%*s", (int)pad, "");
    strbuf_addstr(out, code);
    table_cut(out, text, text_width, width);
    strbuf_addstr(out, *code ? RESET : "");
    if (!right && !last)
        strbuf_addf(out, "%*s", (int)pad, "");
    strbuf_addstr(out, last ? "\n" : GAP);
}

/* The width of all columns that are shown, with the gaps between them. */
static size_t line_width(const size_t *widths, size_t n)
{
    size_t total = 0;

    for (size_t i = 0; i < n; i++)
        if (widths[i] > 0)
            total += widths[i] + (total > 0 ? strlen(GAP) : 0);
    return total;
}

static size_t last_shown(const size_t *widths, size_t n)
{
    while (n > 1 && widths[n - 1] == 0)
        n--;
    return n - 1;
}

/* The widest column of names, which loses its end with the least harm, or NULL. */
static size_t *widest_name(const struct table *t, size_t *widths)
{
    size_t *widest = NULL;

    for (size_t i = 0; i < t->n_columns; i++)
        if (t->columns[i].kind == TABLE_NAME && widths[i] > (widest ? *widest : NAME_MIN))
            widest = &widths[i];
    return widest;
}

static void fit(const struct table *t, size_t *widths, size_t width)
{
    size_t n = t->n_columns, *name;

    for (size_t i = 0; i < n && line_width(widths, n) > width; i++)
        if (t->columns[i].kind == TABLE_SPARE)
            widths[i] = 0;
    while (line_width(widths, n) > width && (name = widest_name(t, widths)))
        (*name)--;
    size_t over = line_width(widths, n), *last = &widths[last_shown(widths, n)];
    over = over > width ? over - width : 0;
    *last -= over < *last ? over : *last;
}

void table_format(const struct table *t, struct strbuf *out, size_t width, bool colours)
{
    size_t widths[TABLE_COLUMNS_MAX];

    for (size_t i = 0; i < t->n_columns; i++)
        widths[i] = column_width(t, i);
    if (width > 0)
        fit(t, widths, width);
    size_t last = last_shown(widths, t->n_columns);
    for (size_t i = 0; i <= last; i++)
        if (widths[i] > 0)
            add_cell(out, t->columns[i].title, strlen(t->columns[i].title), colours ? BOLD : "",
                     t->columns[i].kind == TABLE_NUMBER, widths[i], i == last);
    for (size_t i = 0; i < t->n_cells; i++) {
        const struct table_cell *cell = &t->cells[i];
        size_t column = i % t->n_columns;

        if (widths[column] > 0)
            add_cell(out, cell->text, cell->width, colours ? colour_codes[cell->colour] : "",
                     t->columns[column].kind == TABLE_NUMBER, widths[column], column == last);
    }
}

void table_print(const struct table *t, FILE *to)
{
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(SIZE_MAX / 2);
    uint16_t rows, cols = 0;

    if (isatty(fileno(to)))
        terminal_size(&rows, &cols);
    table_format(t, &out, cols, ui_has_colour(fileno(to)));
    fputs(out.buf, to);
}
