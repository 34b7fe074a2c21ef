#include "cli/client/show.h"

#include "lib/base/clock.h"
#include "lib/command/when.h"
#include "cli/client/jr.h"
#include "cli/client/url.h"

#define LINE_ROOM  (64u * 1024)
#define ANSWER_MAX 16

static void fill(const struct show_list *how, const json_t *list, struct table *t)
{
    table_init(t, how->columns, how->n_columns);
    for (size_t i = 0; i < json_array_size(list); i++)
        how->add_row(t, json_array_get(list, i));
}

void show_rows(const struct show_list *how, const json_t *list, FILE *to)
{
    AUTO(table_done) struct table t = {0};

    fill(how, list, &t);
    if (t.n_cells > 0)
        table_print(&t, to);
}

int show_list(const struct show_list *how, const json_t *list, bool json, bool quiet,
              struct sg_error *e)
{
    AUTO(table_done) struct table t = {0};

    if (json)
        return jr_print(list, e);
    for (size_t i = 0; quiet && i < json_array_size(list); i++) {
        const char *id = jr_text(json_array_get(list, i), how->id);

        if (url_is_plain_name(id))
            puts(id);
    }
    if (!quiet) {
        fill(how, list, &t);
        table_print(&t, stdout);
    }
    return 0;
}

void show_cell(struct table *t, const char *text)
{
    table_add(t, TABLE_PLAIN, *text ? text : "-");
}

void show_count(struct table *t, const json_t *object, const char *key)
{
    char text[32];

    snprintf(text, sizeof(text), "%llu", (unsigned long long)jr_count(object, key));
    table_add(t, TABLE_PLAIN, text);
}

void show_time(struct table *t, const json_t *object, const char *key)
{
    char text[64] = "";
    int64_t then;

    if (when_parse_ms(jr_text(object, key), &then) == 0)
        when_relative(then, clock_wall_ms(), text, sizeof(text));
    show_cell(t, text);
}

void show_line(struct strbuf *out, const char *name, const char *value)
{
    if (!*value)
        value = "-";
    strbuf_addf(out, "%-14s", name);
    table_clean(out, value, strlen(value));
    strbuf_addch(out, '\n');
}

static const char *format_time(const char *value, bool away, char *buf, size_t cap)
{
    char local[64], relative[64];
    int64_t then;

    if (when_parse_ms(value, &then) < 0)
        return "";
    when_local(then, local, sizeof(local));
    when_relative(then, clock_wall_ms(), relative, sizeof(relative));
    snprintf(buf, cap, away ? "%s (%s)" : "%s", local, relative);
    return buf;
}

void show_object(struct strbuf *out, const struct show_field *fields, size_t n,
                 const json_t *object)
{
    char text[160];

    for (const struct show_field *f = fields; f < fields + n; f++) {
        unsigned kind = f->kind & ~(unsigned)SHOW_OPTIONAL;
        const char *value = jr_text(object, f->key);
        bool there = *value || (kind == SHOW_COUNT && json_object_get(object, f->key));

        if ((!there && f->kind & SHOW_OPTIONAL) || (f->unless && *jr_text(object, f->unless)))
            continue;
        if (kind == SHOW_COUNT) {
            snprintf(text, sizeof(text), "%llu", (unsigned long long)jr_count(object, f->key));
            value = text;
        } else if (kind != SHOW_TEXT) {
            value = format_time(value, kind == SHOW_TIME_AWAY, text, sizeof(text));
        }
        show_line(out, f->name, value);
    }
}

int show_answer(int r, const json_t *answer, bool json, void (*print)(const json_t *answer),
                struct sg_error *e)
{
    if (r == 0 && json)
        return jr_print(answer, e);
    if (r == 0)
        print(answer);
    return r;
}

void show_say(FILE *to, const char *fmt, ...)
{
    AUTO(strbuf_done) struct strbuf clean = strbuf_upto(LINE_ROOM);
    AUTO(free_p) char *line = NULL;
    va_list ap;

    va_start(ap, fmt);
    int len = vasprintf(&line, fmt, ap);
    va_end(ap);
    if (len < 0) {
        line = NULL;
        return;
    }
    table_clean(&clean, line, (size_t)len);
    fprintf(to, "%s\n", clean.buf);
}

bool show_agreed(const char *fmt, ...)
{
    char answer[ANSWER_MAX];
    va_list ap;

    if (!isatty(STDIN_FILENO))
        return true;
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputs(" [y/N] ", stderr);
    if (!fgets(answer, sizeof(answer), stdin))
        return false;
    return answer[0] == 'y' || answer[0] == 'Y';
}
