/* sandglass secret ls, show, rm. */
#include "lib/base/clock.h"
#include "lib/command/when.h"
#include "cli/client/api.h"
#include "cli/client/jr.h"
#include "cli/client/secret.h"
#include "cli/client/table.h"

#define TEXT_MAX (64u * 1024)

static const char *metadata_text(const json_t *row, const char *key)
{
    return jr_text(json_object_get(row, "metadata"), key);
}

/* ---- ls -------------------------------------------------------------------------------------- */

static void add_row(struct table *t, const json_t *row)
{
    char text[64];
    int64_t then;
    const char *hosts = metadata_text(row, SECRET_KEY_HOSTS);

    table_add(t, TABLE_PLAIN, jr_text(row, "name"));
    snprintf(text, sizeof(text), "%llu", (unsigned long long)jr_count(row, "currentVersion"));
    table_add(t, TABLE_PLAIN, text);
    if (when_parse_ms(jr_text(row, "updatedAt"), &then) < 0)
        table_add(t, TABLE_PLAIN, "-");
    else
        table_add(t, TABLE_PLAIN, when_relative(then, clock_wall_ms(), text, sizeof(text)));
    table_add(t, TABLE_PLAIN, jr_text(row, "secretID"));
    table_add(t, TABLE_PLAIN, *hosts ? hosts : "-");
}

static void print_table(const json_t *list)
{
    static const struct table_column columns[] = {
        {"NAME", TABLE_NAME}, {"VERSION", TABLE_NUMBER}, {"UPDATED", TABLE_TEXT},
        {"ID", TABLE_SPARE},  {"HOSTS", TABLE_NAME},
    };
    AUTO(table_done) struct table t = {0};

    table_init(&t, columns, ARRAY_SIZE(columns));
    for (size_t i = 0; i < json_array_size(list); i++)
        add_row(&t, json_array_get(list, i));
    table_print(&t, stdout);
}

/* Prints a line that contains words from outside, which are cleaned. */
static void say(const char *text)
{
    AUTO(strbuf_done) struct strbuf clean = strbuf_upto(TEXT_MAX);

    table_clean(&clean, text, strlen(text));
    puts(clean.buf);
}

int secret_ls_fn(struct client *c, void *options)
{
    const struct secret_options *o = options;
    AUTO(jr_free_p) json_t *list = NULL;
    struct sg_error e;

    if (api_list(c, "/secrets?limit=100", &list, &e) < 0)
        return client_fail(&e);
    if (o->base.json)
        return jr_print(list, &e) < 0 ? client_fail(&e) : 0;
    if (!o->base.quiet) {
        print_table(list);
        return 0;
    }
    for (size_t i = 0; i < json_array_size(list); i++)
        say(jr_text(json_array_get(list, i), "name"));
    return 0;
}

/* ---- show ------------------------------------------------------------------------------------ */

static void add_line(struct strbuf *out, const char *name, const char *value)
{
    strbuf_addf(out, "%-14s", name);
    table_clean(out, *value ? value : "-", strlen(*value ? value : "-"));
    strbuf_addch(out, '\n');
}

static void add_time(struct strbuf *out, const char *name, const char *value)
{
    char local[64] = "";
    int64_t then;

    if (when_parse_ms(value, &then) == 0)
        when_local(then, local, sizeof(local));
    add_line(out, name, local);
}

static void print_secret(const json_t *row)
{
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(TEXT_MAX);
    json_t *metadata = json_object_get(row, "metadata");
    char version[32];

    snprintf(version, sizeof(version), "%llu", (unsigned long long)jr_count(row, "currentVersion"));
    add_line(&out, "name", jr_text(row, "name"));
    add_line(&out, "id", jr_text(row, "secretID"));
    add_line(&out, "version", version);
    add_time(&out, "made", jr_text(row, "createdAt"));
    add_time(&out, "updated", jr_text(row, "updatedAt"));
    add_line(&out, "hosts", metadata_text(row, SECRET_KEY_HOSTS));
    add_line(&out, "headers", metadata_text(row, SECRET_KEY_HEADER));
    for (void *at = json_object_iter(metadata); at; at = json_object_iter_next(metadata, at)) {
        AUTO(strbuf_done) struct strbuf pair = strbuf_upto(TEXT_MAX);
        const char *key = json_object_iter_key(at), *value;

        value = json_string_value(json_object_iter_value(at));
        if (!value || strcmp(key, SECRET_KEY_HOSTS) == 0 || strcmp(key, SECRET_KEY_HEADER) == 0)
            continue;
        strbuf_addf(&pair, "%s=%s", key, value);
        add_line(&out, "metadata", pair.buf);
    }
    fputs(out.buf, stdout);
}

int secret_show_fn(struct client *c, void *options)
{
    const struct secret_options *o = options;
    AUTO(jr_free_p) json_t *row = NULL;
    AUTO(strbuf_done) struct strbuf path = {0};
    struct sg_error e;

    secret_path(&path, o->base.args[0]);
    if (api_call(c, "GET", path.buf, NULL, &row, &e) < 0)
        return client_fail(&e);
    if (o->base.json)
        return jr_print(row, &e) < 0 ? client_fail(&e) : 0;
    print_secret(row);
    return 0;
}

/* ---- rm -------------------------------------------------------------------------------------- */

static int path_of(struct strbuf *path, const char *name, struct sg_error *e)
{
    (void)e;
    secret_path(path, name);
    return 0;
}

int secret_rm_fn(struct client *c, void *options)
{
    return client_delete_each(c, options, NULL, path_of);
}
