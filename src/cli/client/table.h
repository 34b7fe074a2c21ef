/* Tables of text for people. Cells come from outside, so characters that could drive a terminal are
 * shown as '?'. Widths are counted in columns of the terminal, so LC_CTYPE must be a UTF-8
 * locale. */
#pragma once

#include <stdio.h>

#include "lib/text/strbuf.h"

#define TABLE_COLUMNS_MAX 8

enum table_kind {
    TABLE_TEXT,
    TABLE_NUMBER, /* aligned to the right */
    TABLE_NAME,   /* of any length; cut before other columns are */
    TABLE_SPARE,  /* left out if not all columns fit */
};

struct table_column {
    const char *title;
    enum table_kind kind;
};

enum table_colour { TABLE_PLAIN, TABLE_GREEN, TABLE_YELLOW, TABLE_RED, TABLE_COLOUR_MAX_ };

struct table_cell {
    char *text;
    enum table_colour colour;
    size_t width;
};

struct table {
    const struct table_column *columns;
    size_t n_columns;
    struct table_cell *cells; /* row after row */
    size_t n_cells, cap;
};

void table_init(struct table *t, const struct table_column *columns, size_t n_columns);
void table_done(struct table *t);
/* Adds the next cell of the row; after the last column a new row begins. */
void table_add(struct table *t, enum table_colour colour, const char *text);
/* Appends the titles and the rows. width 0: no limit. */
void table_format(const struct table *t, struct strbuf *out, size_t width, bool colours);
/* Prints the table on standard output or error, no wider than the terminal if that is one. */
void table_print(const struct table *t, FILE *to);

/* Appends one line of text from outside without dangerous characters; returns its width in
 * columns. */
size_t table_clean(struct strbuf *out, const char *text, size_t len);
/* Appends as much of a clean text as fits into `room` columns, with a mark if some is cut off. */
void table_cut(struct strbuf *out, const char *text, size_t text_width, size_t room);
