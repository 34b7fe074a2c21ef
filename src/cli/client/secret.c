#include "cli/client/secret.h"

#include "cli/client/url.h"

struct secret_action {
    const char *name;
    const char *arguments; /* names of the arguments, for messages */
    size_t min, max;       /* how many arguments it takes */
    unsigned options;      /* the options it takes, SECRET_* */
    int (*fn)(struct client *c, const struct secret_options *o);
};

static const struct secret_action actions[] = {
    {"set", "NAME", 1, 1, SECRET_JSON | SECRET_HOST | SECRET_HEADER | SECRET_FILE, secret_set_fn},
    {"ls", "no arguments", 0, 0, SECRET_JSON | SECRET_QUIET, secret_ls_fn},
    {"show", "NAME", 1, 1, SECRET_JSON, secret_show_fn},
    {"rm", "NAME...", 1, SECRET_ARGS_MAX, SECRET_JSON | SECRET_QUIET, secret_rm_fn},
};

static const struct secret_action *find_action(const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(actions); i++)
        if (strcmp(actions[i].name, name) == 0)
            return &actions[i];
    return NULL;
}

/* If the user gave the secret's value as an argument, the message does not repeat it. */
static int positional(void *self, const char *arg, struct sg_error *e)
{
    struct secret_options *o = self;

    if (!o->action) {
        o->action = find_action(arg);
        return o->action
                   ? 0
                   : err_set(e, SG_ERR_INVALID, -EINVAL, "'%.64s' is not set, ls, show or rm", arg);
    }
    if (o->n_args == o->action->max && o->action->fn == secret_set_fn)
        return err_set(e, SG_ERR_INVALID, -EINVAL,
                       "the value is no argument, which others could see: it is read from standard "
                       "input, or with --from-file");
    if (o->n_args == o->action->max)
        return err_set(e, SG_ERR_INVALID, -EINVAL, "unexpected argument '%.64s': %s takes %s", arg,
                       o->action->name, o->action->arguments);
    if (!url_is_plain_name(arg))
        return err_set(e, SG_ERR_INVALID, -EINVAL,
                       "'%.64s' is not the name of a secret: letters, digits, '-' and '_'", arg);
    o->args[o->n_args++] = arg;
    return 0;
}

#define FLAG(name, bit)                                                        \
    static int apply_##name(void *self, const char *value, struct sg_error *e) \
    {                                                                          \
        struct secret_options *o = self;                                       \
                                                                               \
        (void)value, (void)e;                                                  \
        o->given |= (bit);                                                     \
        return 0;                                                              \
    }
FLAG(json, SECRET_JSON)
FLAG(quiet, SECRET_QUIET)

static int add_entry(struct secret_list *l, const char *what, const char *value, struct sg_error *e)
{
    if (!*value || strchr(value, ','))
        return err_set(e, SG_ERR_INVALID, -EINVAL,
                       "%s '%.64s' is not one name: give it again for "
                       "each",
                       what, value);
    if (l->n == SECRET_LIST_MAX)
        return err_set(e, SG_ERR_INVALID, -E2BIG, "%s: more than %d of them", what,
                       SECRET_LIST_MAX);
    l->entries[l->n++] = value;
    return 0;
}

static int apply_host(void *self, const char *value, struct sg_error *e)
{
    struct secret_options *o = self;

    o->given |= SECRET_HOST;
    return add_entry(&o->hosts, "--host", value, e);
}

static int apply_header(void *self, const char *value, struct sg_error *e)
{
    struct secret_options *o = self;

    o->given |= SECRET_HEADER;
    return add_entry(&o->headers, "--header", value, e);
}

static int apply_from_file(void *self, const char *value, struct sg_error *e)
{
    struct secret_options *o = self;

    if (!*value)
        return err_set(e, SG_ERR_INVALID, -EINVAL, "--from-file: the name of the file is empty");
    o->given |= SECRET_FILE;
    o->from_file = value;
    return 0;
}

static const struct cli_option options[] = {
    {"host", 0, "HOST", "set: where it may go: a name, or *.NAME (several times)", apply_host},
    {"header", 0, "NAME", "set: the header its placeholder is replaced in (several times)",
     apply_header},
    {"from-file", 0, "FILE", "set: read the value from FILE, not from standard input",
     apply_from_file},
    {"quiet", 'q', NULL, "ls: print the names only; rm: print nothing", apply_quiet},
    {"json", 0, NULL, "print the server's answer", apply_json},
    CLIENT_OPTIONS,
};
static const struct cli_syntax syntax = {options, ARRAY_SIZE(options), positional};

/* The first option that was given and does not belong to the action. */
static const char *foreign_option(const struct secret_options *o)
{
    static const struct {
        enum secret_option bit;
        const char *name;
    } names[] = {{SECRET_HOST, "--host"},
                 {SECRET_HEADER, "--header"},
                 {SECRET_FILE, "--from-file"},
                 {SECRET_QUIET, "--quiet"}};

    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        if (o->given & names[i].bit & ~o->action->options)
            return names[i].name;
    return NULL;
}

static int check(void *self, char **rest, struct sg_error *e)
{
    const struct secret_options *o = self;

    (void)rest;
    if (!o->action)
        return err_set(e, SG_ERR_INVALID, -EINVAL, "what to do is missing: set, ls, show or rm");
    if (o->n_args < o->action->min)
        return err_set(e, SG_ERR_INVALID, -EINVAL, "%s takes %s", o->action->name,
                       o->action->arguments);
    if (foreign_option(o))
        return err_set(e, SG_ERR_INVALID, -EINVAL, "%s is no option of %s", foreign_option(o),
                       o->action->name);
    return 0;
}

static int fn(struct client *c, void *self)
{
    const struct secret_options *o = self;

    return o->action->fn(c, o);
}

void secret_path(struct strbuf *path, const char *name)
{
    strbuf_init(path, 1024);
    strbuf_addstr(path, "/secrets/");
    url_escape(path, name);
}

const struct client_verb secret_verb = {
    .name = "secret",
    .usage = "set [OPTION]... NAME\nls [OPTION]...\nshow [OPTION]... NAME\nrm [OPTION]... NAME...",
    .about =
        "Keeps secrets for sandboxes, which never see them: a program inside has a placeholder, "
        "and the\nguard puts the value into the headers and toward the hosts that you name. "
        "No verb shows a value.",
    .syntax = &syntax,
    .options_size = sizeof(struct secret_options),
    .check = check,
    .fn = fn,
};
