/* Verbs that work on the store of a server, whether it runs or not: `sandglass key`, `sandglass
 * tenant`. A server that runs sees the change with its next request.
 *
 * Each is a table of actions: `sandglass VERB ACTION [OPTION]... [WHICH]`. */
#pragma once

#include "cli/options.h"
#include "store/store.h"

/* What the structure that an action's options fill begins with. */
struct manage_options {
    const char *state, *which;
    bool json, help;
};

struct manage_action {
    const char *name, *arguments, *summary;
    const struct cli_syntax *syntax; /* with manage_apply_which, if it needs one to work on */
    const char *missing;             /* what to say if there is none */
    int (*run)(struct store *s, const void *options, struct sg_error *e);
};

struct manage_verb {
    const char *name, *summary;
    const struct manage_action *actions;
    size_t n_actions;
    size_t options_size;
};

/* argv[0] is the verb. The result is the exit status. */
int manage_main(const struct manage_verb *verb, int argc, char **argv);

int manage_apply_state(void *self, const char *value, struct sg_error *e);
int manage_apply_json(void *self, const char *value, struct sg_error *e);
int manage_apply_help(void *self, const char *value, struct sg_error *e);
int manage_apply_which(void *self, const char *arg, struct sg_error *e);

#define MANAGE_STATE                                                          \
    {                                                                         \
        "state", 0, "DIR", "the server's state directory", manage_apply_state \
    }
#define MANAGE_JSON                                      \
    {                                                    \
        "json", 0, NULL, "print JSON", manage_apply_json \
    }
#define MANAGE_HELP                                            \
    {                                                          \
        "help", 'h', NULL, "show this text", manage_apply_help \
    }

/* A column of a table. Names are anybody's text: nothing in them may drive the terminal. */
void manage_print_cell(const char *text, int width);
