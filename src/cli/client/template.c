/* sandglass template: builds templates, and lists, tags and removes them, through E2B's API. */
#include "cli/client/template.h"

#include <inttypes.h>

#include "cli/client/api.h"
#include "cli/client/jr.h"
#include "cli/client/show.h"
#include "cli/client/url.h"
#include "lib/command/when.h"
#include "lib/text/json.h"
#include "lib/text/parse.h"

#define BODY_MAX   (64u * 1024)
#define LOG_ROUNDS 1000 /* pages of a log */

/* ---- ls -------------------------------------------------------------------------------------- */

static const char *name_of(const json_t *row)
{
    const char *alias = json_string_value(json_array_get(json_object_get(row, "aliases"), 0));

    return alias ? alias : jr_text(row, "templateID");
}

static void add_row(struct table *t, const json_t *row)
{
    table_add(t, TABLE_PLAIN, name_of(row));
    show_cell(t, jr_text(row, "buildStatus"));
    show_count(t, row, "cpuCount");
    show_count(t, row, "memoryMB");
    show_time(t, row, "updatedAt");
    table_add(t, TABLE_PLAIN, jr_text(row, "templateID"));
}

static const struct table_column columns[] = {
    {"NAME", TABLE_NAME},     {"BUILD", TABLE_TEXT},   {"CPUS", TABLE_NUMBER},
    {"MEMORY", TABLE_NUMBER}, {"UPDATED", TABLE_TEXT}, {"ID", TABLE_SPARE},
};
static const struct show_list shown = {columns, ARRAY_SIZE(columns), add_row, "templateID"};

static int ls_fn(struct client *c, void *options, struct sg_error *e)
{
    const struct client_actions *o = options;
    AUTO(jr_free_p) json_t *list = NULL;
    int r = api_list(c, "/templates", &list, e);

    if (r < 0 || !o->quiet || o->json)
        return r < 0 ? r : show_list(&shown, list, o->json, false, e);
    for (size_t i = 0; i < json_array_size(list); i++)
        show_say(stdout, "%s", name_of(json_array_get(list, i)));
    return jr_flush(e);
}

/* ---- tag, rm --------------------------------------------------------------------------------- */

/* {"<member>": name, "tags": [...]} */
static int call_tags(struct client *c, const char *method, const char *member, const char *name,
                     const char *const *tags, size_t n, json_t **ret, struct sg_error *e)
{
    AUTO(strbuf_done) struct strbuf body = strbuf_upto(BODY_MAX);
    struct json j;

    jw_init(&j, &body);
    jw_object_begin(&j);
    jw_string(jw_key(&j, member), name);
    jw_array_begin(jw_key(&j, "tags"));
    for (size_t i = 0; i < n; i++)
        jw_string(&j, tags[i]);
    jw_array_end(&j);
    jw_object_end(&j);
    return api_call(c, method, &body, ret, e, "/templates/tags");
}

static int tag_fn(struct client *c, void *options, struct sg_error *e)
{
    const struct client_actions *o = options;
    AUTO(jr_free_p) json_t *answer = NULL;
    int r = call_tags(c, "POST", "target", o->args[0], o->args + 1, o->n_args - 1, &answer, e);

    if (r == 0 && o->json)
        return jr_print(answer, e);
    for (size_t i = 1; r == 0 && i < o->n_args; i++) {
        int len = strchr(o->args[i], ':') ? 0 : (int)strcspn(o->args[0], ":");

        show_say(stdout, "%.*s%s%s", len, o->args[0], len > 0 ? ":" : "", o->args[i]);
    }
    return r;
}

/* A name with a tag: the tag is removed. */
static int remove_one(struct client *c, const char *name, struct sg_error *e)
{
    const char *colon = strchr(name, ':');
    AUTO(strbuf_done) struct strbuf path = strbuf_upto(API_PATH_MAX);

    if (colon) {
        AUTO(free_p) char *plain = strndup(name, (size_t)(colon - name));
        const char *tag = colon + 1;

        return call_tags(c, "DELETE", "name", plain ? plain : "", &tag, 1, NULL, e);
    }
    url_escape(&path, name);
    return api_call(c, "DELETE", NULL, NULL, e, "/templates/%s", path.buf);
}

static int rm_fn(struct client *c, void *options, struct sg_error *e)
{
    const struct client_actions *o = options;
    AUTO(jr_free_p) json_t *all = json_array();
    int status = 0;

    for (size_t i = 0; i < o->n_args; i++) {
        if (remove_one(c, o->args[i], e) < 0) {
            int failed = client_fail(e);
            status = status ? status : failed;
            continue;
        }
        json_array_append_new(all, json_string(o->args[i]));
        if (!o->quiet && !o->json)
            show_say(stdout, "%s", o->args[i]);
    }
    int r = o->json ? jr_print(all, e) : 0;
    return r < 0 ? r : status;
}

/* ---- logs ------------------------------------------------------------------------------------ */

static void print_entry(const json_t *entry)
{
    char when[64] = "-";
    int64_t ms;

    if (when_parse_ms(jr_text(entry, "timestamp"), &ms) == 0)
        when_local(ms, when, sizeof(when));
    show_say(stdout, "%s %-5s %s", when, jr_text(entry, "level"), jr_text(entry, "message"));
}

static int print_entries(const json_t *entries, bool json, struct sg_error *e)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < json_array_size(entries); i++) {
        if (json)
            r = jr_print(json_array_get(entries, i), e);
        else
            print_entry(json_array_get(entries, i));
    }
    return r < 0 ? r : jr_flush(e);
}

/* The newest build of a template is the first. */
static int find_build(struct client *c, const char *path, json_t **ret, struct sg_error *e)
{
    int r = api_get(c, ret, e, "/templates/%s", path);

    if (r == 0 && !*jr_text(json_array_get(json_object_get(*ret, "builds"), 0), "buildID"))
        return err_set(e, SG_ERR_NOT_FOUND, -ENOENT, "template '%.64s' has no build", path);
    return r;
}

static int logs_fn(struct client *c, void *options, struct sg_error *e)
{
    const struct client_actions *o = options;
    AUTO(strbuf_done)
    struct strbuf name = strbuf_upto(API_PATH_MAX), build = strbuf_upto(API_PATH_MAX);
    AUTO(jr_free_p) json_t *template = NULL;
    size_t offset = 0;

    url_escape(&name, o->args[0]);
    int r = find_build(c, name.buf, &template, e);
    if (r < 0)
        return r;
    url_escape(&build,
               o->n_args > 1
                   ? o->args[1]
                   : jr_text(json_array_get(json_object_get(template, "builds"), 0), "buildID"));
    for (unsigned i = 0; r == 0 && i < LOG_ROUNDS; i++) {
        AUTO(jr_free_p) json_t *page = NULL;

        r = api_get(c, &page, e, "/templates/%s/builds/%s/status?logsOffset=%zu",
                    jr_text(template, "templateID"), build.buf, offset);
        const json_t *entries = json_object_get(page, "logEntries");
        if (r < 0 || json_array_size(entries) == 0)
            break;
        r = print_entries(entries, o->json, e);
        offset += json_array_size(entries);
    }
    return r;
}

/* ---- the command line ------------------------------------------------------------------------ */

enum action { BUILD, IMPORT, LS, RM, TAG, LOGS };
#define OF(action) (1u << (action))

static const struct client_action actions[] = {
    [BUILD] = {"build", "DIR", 1, 1, template_build, NULL},
    [IMPORT] = {"import", "NAME [FILE]", 1, 2, template_import, NULL},
    [LS] = {"ls", "no arguments", 0, 0, ls_fn, NULL},
    [RM] = {"rm", "NAME[:TAG]...", 1, CLIENT_ARGS_MAX, rm_fn, NULL},
    [TAG] = {"tag", "NAME[:TAG] [NEWNAME:]NEWTAG...", 2, TEMPLATE_LIST_MAX + 1, tag_fn, NULL},
    [LOGS] = {"logs", "NAME [BUILD]", 1, 2, logs_fn, NULL},
};

static int check_argument(const struct client_actions *o UNUSED, const char *arg,
                          struct sg_error *e)
{
    return *arg ? 0 : err_invalid(e, "an argument is empty");
}

static int add_tag(void *to, const struct cli_option *o UNUSED, const char *value,
                   struct sg_error *e)
{
    struct template_options *t = to;

    if (!*value || strpbrk(value, ":/ "))
        return err_invalid(e, "--tag '%.64s' is not a tag, such as v1", value);
    if (t->n_tags == TEMPLATE_LIST_MAX)
        return err_invalid(e, "--tag: more than %d of them", TEMPLATE_LIST_MAX);
    t->tags[t->n_tags++] = value;
    return 0;
}

/* NAME alone is copied from the environment. */
static int add_build_arg(void *to, const struct cli_option *o UNUSED, const char *value,
                         struct sg_error *e)
{
    struct template_options *t = to;
    const char *from = strchr(value, '=') ? NULL : getenv(value);

    if (!*value || *value == '=')
        return err_invalid(e, "--build-arg '%.64s' is not NAME=VALUE", value);
    if (!strchr(value, '=') && !from)
        return err_invalid(e, "--build-arg %.64s: no variable of that name is set", value);
    if (t->n_build_args == TEMPLATE_ARGS_MAX)
        return err_invalid(e, "--build-arg: more than %d of them", TEMPLATE_ARGS_MAX);
    if (asprintf(&t->build_args[t->n_build_args++], "%s%s%s", value, from ? "=" : "",
                 from ? from : "") < 0)
        abort();
    return 0;
}

static int set_memory(void *to, const struct cli_option *o UNUSED, const char *value,
                      struct sg_error *e)
{
    return parse_size("--memory", value, to, e);
}

static const struct cli_option options[] = {
    {"name", 0, "NAME", "build: name of the template (default: the directory's)",
     CLI_FILLED(template_options, name, "the name of the template"), .actions = OF(BUILD)},
    {"tag", 't', "TAG", "build, import: tag of this build (repeatable; default: default)",
     .apply = add_tag, .actions = OF(BUILD) | OF(IMPORT)},
    {"file", 'f', "FILE", "build: read the steps from FILE (default: DIR/Dockerfile)",
     CLI_FILLED(template_options, file, "the name of the file"), .actions = OF(BUILD)},
    {"build-arg", 0, "NAME[=VALUE]",
     "build: value of an ARG, or copy it from the environment (repeatable)", .apply = add_build_arg,
     .actions = OF(BUILD)},
    {"start", 0, "COMMAND", "build, import: what runs in each sandbox (build: or ENTRYPOINT, CMD)",
     CLI_TEXT(template_options, start), .actions = OF(BUILD) | OF(IMPORT)},
    {"ready", 0, "COMMAND", "build, import: what must exit with 0 before a sandbox is handed out",
     CLI_FILLED(template_options, ready, "the command"), .actions = OF(BUILD) | OF(IMPORT)},
    {"no-cache", 0, NULL, "build: build every step anew", CLI_FLAG(template_options, no_cache),
     .actions = OF(BUILD)},
    {"cpus", 0, "N", "build, import: processors of its sandboxes",
     CLI_COUNT(template_options, cpus, 1, 1024), .actions = OF(BUILD) | OF(IMPORT)},
    {"memory", 'm', "SIZE", "build, import: memory of its sandboxes: 512M, 2G",
     CLI_AT(set_memory, template_options, memory), .actions = OF(BUILD) | OF(IMPORT)},
    {"quiet", 'q', NULL, "build, import: no progress; ls: names only; rm: print nothing",
     CLI_FLAG(client_actions, quiet), .actions = OF(BUILD) | OF(IMPORT) | OF(LS) | OF(RM)},
    {"json", 0, NULL, "print the server's answer", CLI_FLAG(client_actions, json)},
    CLIENT_OPTIONS,
};

const struct client_verb template_verb = {
    .name = "template",
    .usage = "build [OPTION]... DIR\nimport [OPTION]... NAME [FILE]\nls [OPTION]...\nrm "
             "[OPTION]... NAME[:TAG]...\n"
             "tag [OPTION]... NAME[:TAG] [NEWNAME:]NEWTAG...\nlogs [OPTION]... NAME [BUILD]",
    .about =
        "Builds templates from Dockerfiles, makes them of images that 'docker save' wrote, lists, "
        "tags\nand removes them. A template is what new sandboxes start with: 'sandglass create "
        "NAME'.",
    .syntax = &(const struct cli_syntax){options, ARRAY_SIZE(options), CLIENT_ACTIONS_SYNTAX},
    .options_size = sizeof(struct template_options),
    .fn = client_actions_fn,
    .actions = actions,
    .n_actions = ARRAY_SIZE(actions),
    .check_argument = check_argument,
};
