/* sandglass secret: the secrets of a tenant, through E2B's API. */
#include "cli/client/secret.h"

#include <fcntl.h>
#include <jansson.h>
#include <sys/prctl.h>

#include "lib/text/json.h"
#include "lib/base/fd.h"
#include "lib/command/terminal.h"
#include "cli/client/api.h"
#include "cli/client/jr.h"
#include "cli/client/show.h"
#include "cli/client/url.h"
#include "cli/client/interrupt.h"

#define LINE_ENDS   2 /* bytes of a line end after the value, which do not count */
#define BODY_MAX    (SECRET_VALUE_MAX * 6 + 128 * 1024) /* with every byte of the value escaped */
#define TEXT_MAX    (64u * 1024)
#define KEY_HOSTS   "sandglass.hosts"
#define KEY_HEADERS "sandglass.headers"

/* ---- the value: from a file, standard input or a terminal, and from nowhere else ------------- */

/* Removes one line end, which an editor or a shell has added. */
static void cut_end(struct strbuf *s)
{
    if (s->len > 0 && s->buf[s->len - 1] == '\n')
        s->buf[--s->len] = '\0';
    if (s->len > 0 && s->buf[s->len - 1] == '\r')
        s->buf[--s->len] = '\0';
}

static int check_value(const struct strbuf *s, struct sg_error *e)
{
    if (s->truncated || s->len > SECRET_VALUE_MAX)
        return err_set(e, SG_ERR_INVALID, -E2BIG, "the value is larger than %u KiB",
                       SECRET_VALUE_MAX / 1024);
    if (s->len == 0)
        return err_invalid(e, "the value is empty");
    if (strlen(s->buf) != s->len || strpbrk(s->buf, "\r\n"))
        return err_invalid(
            e, "the value has several lines or a NUL byte: it is put into a header, which "
               "is one line");
    return 0;
}

/* Reads to the end of fd or, if `line`, to the end of the line. */
static int read_fd(int fd, bool line, struct strbuf *ret)
{
    char buf[4096];
    ssize_t n;

    while ((n = read(fd, buf, sizeof(buf))) > 0 && !ret->truncated) {
        strbuf_add(ret, buf, (size_t)n);
        if (line && buf[n - 1] == '\n')
            break;
    }
    int r = n < 0 ? -errno : 0;
    explicit_bzero(buf, sizeof(buf));
    return r;
}

static int ask_value(const char *name, struct strbuf *ret)
{
    struct terminal t;

    interrupt_watch();               /* so that the terminal is restored before we end */
    terminal_hide(&t, STDIN_FILENO); /* first: a quick answer would be shown, and thrown away */
    fprintf(stderr, "Value of %s (it is not shown): ", name);
    int r = read_fd(STDIN_FILENO, true, ret);
    terminal_restore(&t);
    if (r == -EINTR)
        fputc('\n', stderr);
    return r;
}

int secret_value_read(const char *from_file, const char *name, struct strbuf *ret,
                      struct sg_error *e)
{
    AUTO(close_p) int file = -1;
    int r;

    strbuf_init(ret, SECRET_VALUE_MAX + LINE_ENDS);
    strbuf_reserve(ret);
    if (from_file) {
        file = open(from_file, O_RDONLY | O_CLOEXEC);
        r = file < 0 ? -errno : read_fd(file, false, ret);
    } else {
        r = isatty(STDIN_FILENO) ? ask_value(name, ret) : read_fd(STDIN_FILENO, false, ret);
    }
    if (r < 0)
        return err_code(e, r, "read the value from %s", from_file ? from_file : "standard input");
    cut_end(ret);
    return check_value(ret, e);
}

/* ---- set ------------------------------------------------------------------------------------- */

/* Refuses a value that is not UTF-8: JSON cannot carry other bytes unchanged. */
static int check_text(const struct strbuf *value, struct sg_error *e)
{
    AUTO(jr_free_p) json_t *text = json_stringn(value->buf, value->len);

    return text ? 0
                : err_invalid(e, "the value is not UTF-8: encode it first, such as with base64");
}

static void add_list(json_t *metadata, const char *key, const struct secret_list *l)
{
    AUTO(strbuf_done) struct strbuf text = strbuf_upto(BODY_MAX);

    if (l->n == 0)
        return;
    for (size_t i = 0; i < l->n; i++)
        strbuf_addf(&text, "%s%s", i > 0 ? "," : "", l->entries[i]);
    json_object_set_new(metadata, key, json_string(text.buf));
}

static void add_metadata(struct json *j, const struct secret_options *o, json_t *metadata)
{
    add_list(metadata, KEY_HOSTS, &o->hosts);
    add_list(metadata, KEY_HEADERS, &o->headers);
    jw_object_begin(jw_key(j, "metadata"));
    for (void *at = json_object_iter(metadata); at; at = json_object_iter_next(metadata, at)) {
        jw_string(jw_key(j, json_object_iter_key(at)),
                  json_string_value(json_object_iter_value(at)));
    }
    jw_object_end(j);
}

/* Makes the body of a request. metadata NULL: left out. name NULL: the URL's path has the name. */
static void make_body(struct strbuf *body, const struct secret_options *o, const char *name,
                      const struct strbuf *value, json_t *metadata)
{
    struct json j = {.out = body};

    strbuf_init(body, BODY_MAX);
    strbuf_reserve(body);
    jw_object_begin(&j);
    if (name)
        jw_string(jw_key(&j, "name"), name);
    jw_bytes(jw_key(&j, "value"), value->buf, value->len);
    if (metadata)
        add_metadata(&j, o, metadata);
    jw_object_end(&j);
}

static int create(struct client *c, const struct secret_options *o, const struct strbuf *value,
                  json_t **ret, struct sg_error *e)
{
    AUTO(jr_free_p) json_t *metadata = json_object();
    AUTO(strbuf_wipe) struct strbuf body = {0};

    make_body(&body, o, o->base.args[0], value, metadata);
    return api_call(c, "POST", &body, ret, e, "/secrets");
}

/* Gives a secret a new value. The server replaces its metadata as a whole or not at all, so we read
 * the old metadata first and keep the rest of it. */
static int update(struct client *c, const struct secret_options *o, const struct strbuf *value,
                  json_t **ret, struct sg_error *e)
{
    AUTO(strbuf_wipe) struct strbuf body = {0};
    AUTO(jr_free_p) json_t *old = NULL;
    json_t *metadata = NULL;

    if (o->hosts.n > 0 || o->headers.n > 0) {
        int r = api_get(c, &old, e, "/secrets/%s", o->base.args[0]);

        if (r < 0)
            return r;
        metadata = json_object_get(old, "metadata");
    }
    make_body(&body, o, NULL, value, metadata);
    return api_call(c, "POST", &body, ret, e, "/secrets/%s", o->base.args[0]);
}

static int set(struct client *c, const struct secret_options *o, json_t **ret, struct sg_error *e)
{
    AUTO(strbuf_wipe) struct strbuf value = {0};
    int r = secret_value_read(o->from_file, o->base.args[0], &value, e);

    if (r == 0)
        r = check_text(&value, e);
    if (r == 0)
        r = create(c, o, &value, ret, e);
    return r == -EEXIST ? update(c, o, &value, ret, e) : r;
}

static int set_fn(struct client *c, void *options, struct sg_error *e)
{
    const struct secret_options *o = options;
    AUTO(jr_free_p) json_t *answer = NULL;

    prctl(PR_SET_DUMPABLE, 0); /* no core dump while the value is in our memory */
    int r = set(c, o, &answer, e);
    if (r == 0 && o->base.json)
        r = jr_print(answer, e);
    else if (r == 0)
        show_say(stdout, "%s: version %llu", jr_text(answer, "name"),
                 (unsigned long long)jr_count(answer, "currentVersion"));
    return r;
}

/* ---- ls -------------------------------------------------------------------------------------- */

static void add_row(struct table *t, const json_t *row)
{
    table_add(t, TABLE_PLAIN, jr_text(row, "name"));
    show_count(t, row, "currentVersion");
    show_time(t, row, "updatedAt");
    table_add(t, TABLE_PLAIN, jr_text(row, "secretID"));
    show_cell(t, jr_text(json_object_get(row, "metadata"), KEY_HOSTS));
}

static const struct table_column columns[] = {
    {"NAME", TABLE_NAME}, {"VERSION", TABLE_NUMBER}, {"UPDATED", TABLE_TEXT},
    {"ID", TABLE_SPARE},  {"HOSTS", TABLE_NAME},
};
static const struct show_list shown = {columns, ARRAY_SIZE(columns), add_row, "name"};

static int ls_fn(struct client *c, void *options, struct sg_error *e)
{
    const struct secret_options *o = options;
    AUTO(jr_free_p) json_t *list = NULL;
    int r = api_list(c, "/secrets?limit=100", &list, e);

    return r < 0 ? r : show_list(&shown, list, o->base.json, o->base.quiet, e);
}

/* ---- show ------------------------------------------------------------------------------------ */

static const struct show_field fields[] = {
    {"name", "name", SHOW_TEXT, NULL},
    {"id", "secretID", SHOW_TEXT, NULL},
    {"version", "currentVersion", SHOW_COUNT, NULL},
    {"made", "createdAt", SHOW_TIME, NULL},
    {"updated", "updatedAt", SHOW_TIME, NULL},
};
static const struct show_field uses[] = {{"hosts", KEY_HOSTS, SHOW_TEXT, NULL},
                                         {"headers", KEY_HEADERS, SHOW_TEXT, NULL}};

static void print_secret(const json_t *row)
{
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(TEXT_MAX);
    json_t *metadata = json_object_get(row, "metadata");

    show_object(&out, fields, ARRAY_SIZE(fields), row);
    show_object(&out, uses, ARRAY_SIZE(uses), metadata);
    for (void *at = json_object_iter(metadata); at; at = json_object_iter_next(metadata, at)) {
        AUTO(strbuf_done) struct strbuf pair = strbuf_upto(TEXT_MAX);
        const char *key = json_object_iter_key(at), *value;

        value = json_string_value(json_object_iter_value(at));
        if (!value || strcmp(key, KEY_HOSTS) == 0 || strcmp(key, KEY_HEADERS) == 0)
            continue;
        strbuf_addf(&pair, "%s=%s", key, value);
        show_line(&out, "metadata", pair.buf);
    }
    fputs(out.buf, stdout);
}

static int show_fn(struct client *c, void *options, struct sg_error *e)
{
    const struct secret_options *o = options;
    AUTO(jr_free_p) json_t *row = NULL;
    int r = api_get(c, &row, e, "/secrets/%s", o->base.args[0]);

    return show_answer(r, row, o->base.json, print_secret, e);
}

/* ---- rm -------------------------------------------------------------------------------------- */

static int rm_fn(struct client *c, void *options, struct sg_error *e)
{
    return client_delete_each(c, options, "/secrets/", NULL, NULL, e);
}

/* ---- the command line ------------------------------------------------------------------------ */

enum action { SET, LS, SHOW, RM };
#define OF(action) (1u << (action))

/* If the user gave the secret's value as an argument, the message does not repeat it. */
static const struct client_action actions[] = {
    [SET] = {"set", "NAME", 1, 1, set_fn,
             "the value cannot be an argument, which others could see: it is read from standard "
             "input, or "
             "with --from-file"},
    [LS] = {"ls", "no arguments", 0, 0, ls_fn, NULL},
    [SHOW] = {"show", "NAME", 1, 1, show_fn, NULL},
    [RM] = {"rm", "NAME...", 1, CLIENT_ARGS_MAX, rm_fn, NULL},
};

static int check_argument(const struct client_actions *o UNUSED, const char *arg,
                          struct sg_error *e)
{
    if (url_is_plain_name(arg))
        return 0;
    return err_invalid(e, "'%.64s' is not the name of a secret: letters, digits, '-' and '_'", arg);
}

static int add_entry(void *to, const struct cli_option *o, const char *value, struct sg_error *e)
{
    struct secret_list *l = to;

    if (!*value || strchr(value, ','))
        return err_invalid(e, "--%s '%.64s' is not one name: give it again for each", o->name,
                           value);
    if (l->n == SECRET_LIST_MAX)
        return err_set(e, SG_ERR_INVALID, -E2BIG, "--%s: more than %d of them", o->name,
                       SECRET_LIST_MAX);
    l->entries[l->n++] = value;
    return 0;
}

static const struct cli_option options[] = {
    {"host", 0, "HOST", "set: host that the secret may go to: NAME or *.NAME (repeatable)",
     CLI_AT(add_entry, secret_options, hosts), .actions = OF(SET)},
    {"header", 0, "NAME", "set: header in which the placeholder is replaced (repeatable)",
     CLI_AT(add_entry, secret_options, headers), .actions = OF(SET)},
    {"from-file", 0, "FILE", "set: read the value from FILE, not from standard input",
     CLI_FILLED(secret_options, from_file, "the name of the file"), .actions = OF(SET)},
    {"quiet", 'q', NULL, "ls: print the names only; rm: print nothing",
     CLI_FLAG(client_actions, quiet), .actions = OF(LS) | OF(RM)},
    {"json", 0, NULL, "print the server's answer", CLI_FLAG(client_actions, json)},
    CLIENT_OPTIONS,
};

const struct client_verb secret_verb = {
    .name = "secret",
    .usage = "set [OPTION]... NAME\nls [OPTION]...\nshow [OPTION]... NAME\nrm [OPTION]... NAME...",
    .about =
        "Keeps secrets for sandboxes, which never see them: a program inside has a placeholder, "
        "and the\nguard puts the value into requests: only into the headers and to the hosts that "
        "you name.\nNo verb shows a value.",
    .syntax = &(const struct cli_syntax){options, ARRAY_SIZE(options), CLIENT_ACTIONS_SYNTAX},
    .options_size = sizeof(struct secret_options),
    .fn = client_actions_fn,
    .actions = actions,
    .n_actions = ARRAY_SIZE(actions),
    .check_argument = check_argument,
};
