/* sandglass-client: the verbs that talk to a server, such as `sandglass ps`.
 *
 * A verb is a structure that describes its command line, with a function that does the work. The
 * options that all verbs have are CLIENT_OPTIONS. They are applied to struct client_common, which
 * is the first member of every verb's own options. */
#pragma once

#include <curl/curl.h>

#include "lib/command/options.h"
#include "lib/text/strbuf.h"
#include "cli/client/settings.h"

/* Exit statuses of sandglass itself. exec passes on any other status from its program. */
enum { CLIENT_EXIT_REFUSED = 1 }; /* more in exit_status.h; CLI_EXIT_SETUP: server not reached */

struct client {
    struct settings settings;
    CURL *easy;
};

struct client_common {
    const char *url, *key_file;
    bool help;
};

/* One action of a verb that has several, such as `sandglass ctx ls`. */
struct client_action {
    const char *name;
    const char *arguments; /* names of the arguments, for messages */
    size_t min, max;       /* how many arguments it takes */
    int (*fn)(struct client *c, void *options, struct sg_error *e); /* as a verb's */
    const char *too_many; /* NULL, or the message for an argument too many */
};

#define CLIENT_ARGS_MAX 1024

/* The options of a verb with actions begin with this. */
struct client_actions {
    struct client_common common;
    const struct client_verb *verb;
    const struct client_action *action;
    const char *args[CLIENT_ARGS_MAX + 1]; /* the arguments after the action */
    size_t n_args;
    uint64_t given; /* a bit for each row of the verb's options that was given */
    bool json, quiet;
};

struct client_verb {
    const char *name;
    const char *usage; /* the text after the verb's name, one form a line */
    const char *about; /* the help's description, a sentence or two */
    const struct cli_syntax *syntax;
    size_t options_size; /* of the verb's own structure, which starts zeroed */
    bool command;        /* a command follows the first argument, with its own options */
    /* NULL, or checks the options together. `rest` is the command. */
    int (*check)(void *options, char **rest, struct sg_error *e);
    /* Does the work. Returns the exit status, or an error that is to be printed. */
    int (*fn)(struct client *c, void *options, struct sg_error *e);
    /* Of a verb with actions: these, and NULL or what checks an argument. Its `fn` is
     * client_actions_fn, its syntax ends with CLIENT_ACTIONS_SYNTAX, and the first argument is the
     * name of an action. A row of options says which actions have it. */
    const struct client_action *actions;
    size_t n_actions;
    int (*check_argument)(const struct client_actions *o, const char *arg, struct sg_error *e);
    /* NULL, or tells whether these options need no server. `fn` then gets no client. */
    bool (*is_local)(const void *options);
    /* NULL, or called in place of `fn` if there is no key or no address. e says why, and has been
     * printed. */
    int (*unready)(const struct sg_error *e);
};

#define CLIENT_OPTIONS                                                                   \
    {"url", 0, "URL", "address of the server (default: E2B_API_URL, E2B_SANDBOX_URL)",   \
     CLI_TEXT(client_common, url)},                                                      \
        {"api-key-file", 0, "FILE", "read the API key from FILE (default: E2B_API_KEY)", \
         CLI_FILLED(client_common, key_file, "the name of the file")},                   \
    {                                                                                    \
        "help", 'h', NULL, "show this text", CLI_FLAG(client_common, help)               \
    }

extern const struct client_verb ps_verb, create_verb, exec_verb, cp_verb, logs_verb, kill_verb,
    pause_verb, resume_verb, fork_verb, top_verb, ctx_verb, usage_verb, events_verb, mcp_verb,
    repl_verb, secret_verb, agents_verb, template_verb, diff_verb, volume_verb, link_verb;
extern const struct client_verb *const client_verbs[];
extern const size_t client_n_verbs;

/* Fills the options from the command line and checks them. */
int client_parse(const struct client_verb *verb, int argc, char **argv, void *options,
                 struct sg_error *e);
/* Runs a verb: parses, shows the help, opens the client and calls the verb's function. */
int client_main(const struct client_verb *verb, int argc, char **argv);

/* Shared by the verbs with actions. */
#define CLIENT_ACTIONS_SYNTAX client_actions_positional, offsetof(struct client_actions, given)
int client_actions_positional(void *self, const char *arg, struct sg_error *e);
int client_actions_check(const struct client_actions *o, struct sg_error *e);
int client_actions_fn(struct client *c, void *options, struct sg_error *e);
bool client_given(const struct client_actions *o, const char *option);
/* Deletes what each argument names, below the path `below`; prints what fails and goes on.
 * `noun`: the server answers with the thing, and an error says of which; NULL: it does not.
 * check: NULL, or what a name must pass. */
int client_delete_each(struct client *c, const struct client_actions *o, const char *below,
                       const char *noun, int (*check)(const char *name, struct sg_error *e),
                       struct sg_error *e);

/* Prints the error and returns the exit status for it. */
int client_fail(const struct sg_error *e);

/* Checks of arguments that several verbs have. */
int client_check_id(const char *id, struct sg_error *e);
/* Checks for "K=V" with a key that is not empty. `what` opens the error message. */
int client_check_pair(const char *what, const char *pair, struct sg_error *e);
/* Values of options that several verbs have, for CLI_AT (lib/command/options.h).
 *
 *   client_user     a `const char *`: the name of a user, which may not have a colon
 *   client_id       a `const char *`: the id of a sandbox
 *   client_seconds  a uint64_t: a time of at least a second, rounded up to whole seconds
 *   client_wait     a uint64_t: how many ms to wait for a running cell to end. The call may take that
 *                   much longer. */
#define CLIENT_WAIT_MAX_MS 600000
int client_user(void *to, const struct cli_option *o, const char *value, struct sg_error *e);
int client_id(void *to, const struct cli_option *o, const char *value, struct sg_error *e);
int client_seconds(void *to, const struct cli_option *o, const char *value, struct sg_error *e);
int client_wait(void *to, const struct cli_option *o, const char *value, struct sg_error *e);
