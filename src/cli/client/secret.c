#include "cli/client/secret.h"

#include "cli/client/url.h"

enum action { SET, LS, SHOW, RM };
#define OF(action) (1u << (action))

/* If the user gave the secret's value as an argument, the message does not repeat it. */
static const struct client_action actions[] = {
    [SET] = {"set", "NAME", 1, 1, secret_set_fn,
             "the value cannot be an argument, which others could see: it is read from standard "
             "input, or "
             "with --from-file"},
    [LS] = {"ls", "no arguments", 0, 0, secret_ls_fn, NULL},
    [SHOW] = {"show", "NAME", 1, 1, secret_show_fn, NULL},
    [RM] = {"rm", "NAME...", 1, CLIENT_ARGS_MAX, secret_rm_fn, NULL},
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
static const struct cli_syntax syntax = {options, ARRAY_SIZE(options), CLIENT_ACTIONS_SYNTAX};

const struct client_verb secret_verb = {
    .name = "secret",
    .usage = "set [OPTION]... NAME\nls [OPTION]...\nshow [OPTION]... NAME\nrm [OPTION]... NAME...",
    .about =
        "Keeps secrets for sandboxes, which never see them: a program inside has a placeholder, "
        "and the\nguard puts the value into requests: only into the headers and to the hosts that "
        "you name.\nNo verb shows a value.",
    .syntax = &syntax,
    .options_size = sizeof(struct secret_options),
    .fn = client_actions_fn,
    .actions = actions,
    .n_actions = ARRAY_SIZE(actions),
    .check_argument = check_argument,
};
