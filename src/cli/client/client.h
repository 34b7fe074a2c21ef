/* sandglass-client: the verbs that talk to a server, such as `sandglass ps`.
 *
 * A verb is a structure that describes its command line, with a function that does the work. The
 * options that all verbs have are CLIENT_OPTIONS. They are applied to struct client_common, which
 * is the first member of every verb's own options. */
#pragma once

#include <curl/curl.h>

#include "lib/command/options.h"
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

struct client_verb {
    const char *name;
    const char *usage; /* the text after the verb's name, one form a line */
    const char *about; /* the help's description, a sentence or two */
    const struct cli_syntax *syntax;
    size_t options_size; /* of the verb's own structure, which starts zeroed */
    bool command;        /* a command follows the first argument, with its own options */
    /* NULL, or checks the options together. `rest` is the command. */
    int (*check)(void *options, char **rest, struct sg_error *e);
    /* Does the work and returns the exit status. */
    int (*fn)(struct client *c, void *options);
    /* NULL, or tells whether these options need no server. `fn` then gets no client. */
    bool (*is_local)(const void *options);
    /* NULL, or called in place of `fn` if there is no key or no address. e says why, and has been
     * printed. */
    int (*unready)(const struct sg_error *e);
};

int client_apply_url(void *self, const char *value, struct sg_error *e);
int client_apply_key_file(void *self, const char *value, struct sg_error *e);
int client_apply_help(void *self, const char *value, struct sg_error *e);

#define CLIENT_OPTIONS                                                                   \
    {"url", 0, "URL", "address of the server (default: E2B_API_URL, E2B_SANDBOX_URL)",   \
     client_apply_url},                                                                  \
        {"api-key-file", 0, "FILE", "read the API key from FILE (default: E2B_API_KEY)", \
         client_apply_key_file},                                                         \
    {                                                                                    \
        "help", 'h', NULL, "show this text", client_apply_help                           \
    }

/* Defines apply_NAME for an option without a value, which sets the member NAME. */
#define CLIENT_FLAG(type, name)                                                \
    static int apply_##name(void *self, const char *value, struct sg_error *e) \
    {                                                                          \
        struct type *o = self;                                                 \
                                                                               \
        (void)value, (void)e;                                                  \
        o->name = true;                                                        \
        return 0;                                                              \
    }

extern const struct client_verb ps_verb, create_verb, exec_verb, cp_verb, logs_verb, kill_verb,
    pause_verb, resume_verb, fork_verb, top_verb, ctx_verb, usage_verb, events_verb, mcp_verb,
    repl_verb, secret_verb, agents_verb;
extern const struct client_verb *const client_verbs[];
extern const size_t client_n_verbs;

/* Fills the options from the command line and checks them. */
int client_parse(const struct client_verb *verb, int argc, char **argv, void *options,
                 struct sg_error *e);
/* Runs a verb: parses, shows the help, opens the client and calls the verb's function. */
int client_main(const struct client_verb *verb, int argc, char **argv);

/* Prints the error and returns the exit status for it. */
int client_fail(const struct sg_error *e);

/* Checks of arguments that several verbs have. */
int client_check_id(const char *id, struct sg_error *e);
/* Checks for "K=V" with a key that is not empty. `what` opens the error message. */
int client_check_pair(const char *what, const char *pair, struct sg_error *e);
/* Takes the name of a user, which may not have a colon. */
int client_take_user(const char *value, const char **ret, struct sg_error *e);
/* --wait: how long to wait for a running cell to end. The call may take that much longer. */
#define CLIENT_WAIT_MAX_MS 600000
int client_parse_wait(const char *value, uint64_t *ret_ms, struct sg_error *e);
/* Parses a time of at least a second, rounded up to whole seconds. */
int client_parse_seconds(const char *what, const char *value, uint64_t *ret, struct sg_error *e);
