/* Verbs that work on the state directory of a server, whether it runs or not: `sandglass key`,
 * `sandglass tenant`, `sandglass audit`. Each is a table of actions: `sandglass VERB ACTION
 * [OPTION]... [WHICH]`. */
#pragma once

#include "lib/command/options.h"
#include "lib/settings/settings.h"

#define ACTION_DIR_MAX (SETTINGS_PATH_MAX + 32)

/* The structure that an action's options fill must begin with this. */
struct action_options {
    const char *state, *which;
    bool json, help;
};

struct action {
    const char *name, *arguments, *summary;
    const struct cli_syntax *syntax; /* with action_apply_which, if the action works on a thing */
    const char *missing;             /* error message if that thing is not named */
};

struct action_verb {
    const char *name, *summary;
    const struct action *actions;
    size_t n_actions;
    size_t options_size;
    /* Runs action number i. An error is shown, and the exit status is 1. */
    int (*run)(const void *arg, size_t i, const void *options, struct sg_error *e);
    const void *arg;
};

/* argv[0] is the verb. The result is the exit status. */
int actions_main(const struct action_verb *verb, int argc, char **argv);

/* Makes a directory of the state directory (`what` below it) the working directory, and becomes the
 * user that owns it. Files there are that user's: a process that writes them as that user, rather
 * than as root with a chown afterwards, leaves that user nothing to redirect. Other users get the
 * error that only root can manage `things`. ret_dir: the directory's path. */
int action_enter(const struct action_options *o, const char *what, const char *things,
                 char ret_dir[ACTION_DIR_MAX], struct sg_error *e);

int action_apply_which(void *self, const char *arg, struct sg_error *e);

#define ACTION_STATE                                                                       \
    {                                                                                      \
        "state", 0, "DIR", "the server's state directory", CLI_TEXT(action_options, state) \
    }
#define ACTION_JSON                                                   \
    {                                                                 \
        "json", 0, NULL, "print JSON", CLI_FLAG(action_options, json) \
    }
#define ACTION_HELP                                                         \
    {                                                                       \
        "help", 'h', NULL, "show this text", CLI_FLAG(action_options, help) \
    }
