#include "cli/client/journal.h"

#include "cli/client/jr.h"
#include "cli/client/table.h"
#include "lib/command/when.h"

#define DIM   "\033[2m"
#define RESET "\033[0m"

#define LAYER_WIDTH 16 /* the longest layer, infrastructure, and two spaces */

static const struct {
    const char *name, *shown, *colour;
} levels[] = {
    [JOURNAL_DEBUG] = {"debug", "DEBUG", DIM},
    [JOURNAL_INFO] = {"info", "INFO ", ""},
    [JOURNAL_WARN] = {"warn", "WARN ", "\033[33m"},
    [JOURNAL_ERROR] = {"error", "ERROR", "\033[31m"},
};
_Static_assert(ARRAY_SIZE(levels) == JOURNAL_MAX_, "a name for each level");

int journal_level_parse(const char *name, enum journal_level *ret)
{
    for (size_t i = 0; i < ARRAY_SIZE(levels); i++) {
        if (strcmp(name, levels[i].name) != 0)
            continue;
        *ret = (enum journal_level)i;
        return 0;
    }
    return -EINVAL;
}

int64_t journal_ms(const json_t *entry)
{
    int64_t ms;

    return when_parse_ms(jr_text(entry, "timestamp"), &ms) == 0 ? ms : 0;
}

enum journal_level journal_level(const json_t *entry)
{
    enum journal_level level;

    return journal_level_parse(jr_text(entry, "level"), &level) == 0 ? level : JOURNAL_INFO;
}

/* Appends a text without dangerous characters: programs may write anything into the log, even NUL
 * bytes. */
static void add_text(struct strbuf *out, const json_t *text)
{
    if (json_is_string(text))
        table_clean(out, json_string_value(text), json_string_length(text));
    else if (json_is_integer(text))
        strbuf_addf(out, "%lld", (long long)json_integer_value(text));
    else if (json_is_real(text))
        strbuf_addf(out, "%.3f", json_real_value(text));
    else
        strbuf_addch(out, '?');
}

/* Whether the field has a column of its own. */
static bool is_column(const char *key)
{
    static const char *const columns[] = {"time", "level", "layer", "message"};

    for (size_t i = 0; i < ARRAY_SIZE(columns); i++)
        if (strcmp(key, columns[i]) == 0)
            return true;
    return false;
}

static void add_fields(const json_t *fields, bool but_columns, struct strbuf *out)
{
    json_t *object = (json_t *)(uintptr_t)fields; /* jansson's iterators take no const */

    for (void *at = json_object_iter(object); at; at = json_object_iter_next(object, at)) {
        const char *key = json_object_iter_key(at);

        if (but_columns && is_column(key))
            continue;
        strbuf_addstr(out, "  ");
        table_clean(out, key, strlen(key));
        strbuf_addch(out, '=');
        add_text(out, json_object_iter_value(at));
    }
}

static void add_head(struct strbuf *out, int64_t ms, enum journal_level level, bool colours)
{
    const char *colour = colours ? levels[level].colour : "";
    char time[64];

    strbuf_addf(out, "%s  %s%s%s  ", when_local(ms, time, sizeof(time)), colour,
                levels[level].shown, *colour ? RESET : "");
}

void journal_format(const json_t *entry, struct strbuf *out, bool colours)
{
    const json_t *message = json_object_get(entry, "message");

    add_head(out, journal_ms(entry), journal_level(entry), colours);
    add_text(out, message ? message : json_object_get(entry, "line"));
    const json_t *fields = json_object_get(entry, "fields");
    if (json_object_size(fields) == 0)
        return;
    strbuf_addstr(out, colours ? DIM : "");
    add_fields(fields, false, out);
    strbuf_addstr(out, colours ? RESET : "");
}

void journal_format_server(const json_t *line, struct strbuf *out, bool colours)
{
    int64_t ms = 0;

    when_parse_ms(jr_text(line, "time"), &ms);
    add_head(out, ms, journal_level(line), colours);
    size_t width = table_clean(out, jr_text(line, "layer"), strlen(jr_text(line, "layer")));
    for (; width < LAYER_WIDTH; width++)
        strbuf_addch(out, ' ');
    add_text(out, json_object_get(line, "message"));
    strbuf_addstr(out, colours ? DIM : "");
    add_fields(line, true, out);
    strbuf_addstr(out, colours ? RESET : "");
}
