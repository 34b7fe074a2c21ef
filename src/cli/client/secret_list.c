/* sandglass secret ls, show, rm. */
#include "cli/client/api.h"
#include "cli/client/jr.h"
#include "cli/client/secret.h"
#include "cli/client/show.h"

#define TEXT_MAX (64u * 1024)

static const char *metadata_text(const json_t *row, const char *key)
{
    return jr_text(json_object_get(row, "metadata"), key);
}

/* ---- ls -------------------------------------------------------------------------------------- */

static void add_row(struct table *t, const json_t *row)
{
    table_add(t, TABLE_PLAIN, jr_text(row, "name"));
    show_count(t, row, "currentVersion");
    show_time(t, row, "updatedAt");
    table_add(t, TABLE_PLAIN, jr_text(row, "secretID"));
    show_cell(t, metadata_text(row, SECRET_KEY_HOSTS));
}

static const struct table_column columns[] = {
    {"NAME", TABLE_NAME}, {"VERSION", TABLE_NUMBER}, {"UPDATED", TABLE_TEXT},
    {"ID", TABLE_SPARE},  {"HOSTS", TABLE_NAME},
};
static const struct show_list shown = {columns, ARRAY_SIZE(columns), add_row, "name"};

int secret_ls_fn(struct client *c, void *options, struct sg_error *e)
{
    const struct secret_options *o = options;
    AUTO(jr_free_p) json_t *list = NULL;
    int r = api_list(c, "/secrets?limit=100", &list, e);

    return r < 0 ? r : show_list(&shown, list, o->base.json, o->base.quiet, e);
}

/* ---- show ------------------------------------------------------------------------------------ */

static void print_secret(const json_t *row)
{
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(TEXT_MAX);
    json_t *metadata = json_object_get(row, "metadata");
    char version[32];

    snprintf(version, sizeof(version), "%llu", (unsigned long long)jr_count(row, "currentVersion"));
    show_line(&out, "name", jr_text(row, "name"));
    show_line(&out, "id", jr_text(row, "secretID"));
    show_line(&out, "version", version);
    show_line_time(&out, "made", jr_text(row, "createdAt"));
    show_line_time(&out, "updated", jr_text(row, "updatedAt"));
    show_line(&out, "hosts", metadata_text(row, SECRET_KEY_HOSTS));
    show_line(&out, "headers", metadata_text(row, SECRET_KEY_HEADER));
    for (void *at = json_object_iter(metadata); at; at = json_object_iter_next(metadata, at)) {
        AUTO(strbuf_done) struct strbuf pair = strbuf_upto(TEXT_MAX);
        const char *key = json_object_iter_key(at), *value;

        value = json_string_value(json_object_iter_value(at));
        if (!value || strcmp(key, SECRET_KEY_HOSTS) == 0 || strcmp(key, SECRET_KEY_HEADER) == 0)
            continue;
        strbuf_addf(&pair, "%s=%s", key, value);
        show_line(&out, "metadata", pair.buf);
    }
    fputs(out.buf, stdout);
}

int secret_show_fn(struct client *c, void *options, struct sg_error *e)
{
    const struct secret_options *o = options;
    AUTO(jr_free_p) json_t *row = NULL;
    int r = api_get(c, &row, e, "/secrets/%s", o->base.args[0]);

    if (r == 0 && o->base.json)
        r = jr_print(row, e);
    else if (r == 0)
        print_secret(row);
    return r;
}

/* ---- rm -------------------------------------------------------------------------------------- */

int secret_rm_fn(struct client *c, void *options, struct sg_error *e)
{
    return client_delete_each(c, options, "/secrets/", NULL, NULL, e);
}
