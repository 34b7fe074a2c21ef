/* Shows the answers of a server: as JSON, a list as a table, an object as lines. Words from outside
 * are cleaned of all that could drive a terminal. */
#pragma once

#include <jansson.h>

#include "lib/base/err.h"
#include "cli/client/table.h"

/* A list, as `ls` shows it. */
struct show_list {
    const struct table_column *columns;
    size_t n_columns;
    void (*add_row)(struct table *t, const json_t *row);
    const char *id; /* the member that --quiet prints, where it is a plain name */
};

/* Prints the list as its verb's --json and --quiet say. */
int show_list(const struct show_list *how, const json_t *list, bool json, bool quiet,
              struct sg_error *e);
/* Prints the table, or nothing if the list has no rows. */
void show_rows(const struct show_list *how, const json_t *list, FILE *to);

/* Cells: a text ("-" for none), a number, a time relative to now. */
void show_cell(struct table *t, const char *text);
void show_count(struct table *t, const json_t *object, const char *key);
void show_time(struct table *t, const json_t *object, const char *key);
/* The lines of an object. */
enum show_kind {
    SHOW_TEXT,
    SHOW_COUNT,
    SHOW_TIME,              /* local */
    SHOW_TIME_AWAY,         /* local, and relative to now */
    SHOW_OPTIONAL = 1 << 4, /* or-ed: left out if the object has no such member; else "-" */
};
struct show_field {
    const char *name, *key;
    unsigned kind;
    const char *unless; /* NULL, or the field is left out if the object has this text */
};
void show_object(struct strbuf *out, const struct show_field *fields, size_t n,
                 const json_t *object);
/* Shows what a call brought, if it did (r is its result): as JSON, or with `print`. */
int show_answer(int r, const json_t *answer, bool json, void (*print)(const json_t *answer),
                struct sg_error *e);
/* One line: its name, then the value ("-" for none). */
void show_line(struct strbuf *out, const char *name, const char *value);

/* Prints a line. */
void show_say(FILE *to, const char *fmt, ...) PRINTF(2, 3);
/* Asks for consent at a terminal. Without a terminal nobody can answer, which counts as yes. */
bool show_agreed(const char *fmt, ...) PRINTF(1, 2);
