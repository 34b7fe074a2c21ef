/* sandglass-client: the verbs that talk to a server, `sandglass ps` and its like.
 *
 * A verb is a structure that says how its command line looks and a function that does it. Options
 * that all verbs have are CLIENT_OPTIONS, applied to struct client_common, which is the first
 * member of every verb's own options. */
#pragma once

#include <curl/curl.h>

#include "lib/command/options.h"
#include "cli/client/settings.h"

/* What sandglass itself answers; exec passes on any other status from its program. */
enum { CLIENT_EXIT_REFUSED = 1 }; /* and those of cli.h; CLI_EXIT_SETUP: server not reached */

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
    const char *usage; /* what follows the name, one form a line */
    const char *about; /* a sentence or two */
    const struct cli_syntax *syntax;
    size_t options_size; /* of the verb's own structure, which starts zeroed */
    bool command;        /* after the first argument a command follows, with options of its own */
    /* What single options cannot tell: NULL, or refuses the whole. `rest` is the command. */
    int (*check)(void *options, char **rest, struct sg_error *e);
    /* The exit status. */
    int (*fn)(struct client *c, void *options);
    /* NULL, or whether these options need no server: `fn` gets no client then. */
    bool (*is_local)(const void *options);
    /* NULL, or what to do instead if there is no key or no address: e, which was told, says why. */
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

/* An option without a value that sets a member. */
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

/* Fills the options and checks them. */
int client_parse(const struct client_verb *verb, int argc, char **argv, void *options,
                 struct sg_error *e);
/* All of it: parses, shows the help, opens the client and calls the verb. */
int client_main(const struct client_verb *verb, int argc, char **argv);

/* Says what went wrong, and returns the exit status for it. */
int client_fail(const struct sg_error *e);

/* Arguments that several verbs have. */
int client_check_id(const char *id, struct sg_error *e);
/* "K=V" with a key. `what` opens the error message. */
int client_check_pair(const char *what, const char *pair, struct sg_error *e);
/* The name of a user, which may not have a colon. */
int client_take_user(const char *value, const char **ret, struct sg_error *e);
/* --wait: how long for a cell to end, and how much longer a call may take for it. */
#define CLIENT_WAIT_MAX_MS 600000
int client_parse_wait(const char *value, uint64_t *ret_ms, struct sg_error *e);
/* A time of at least a second, rounded up to whole ones. */
int client_parse_seconds(const char *what, const char *value, uint64_t *ret, struct sg_error *e);
