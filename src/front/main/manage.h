/* Verbs that change the store of a server: `sandglass key`, `sandglass tenant`
 * (lib/command/actions.h). A running server sees the change with its next request. */
#pragma once

#include "lib/command/actions.h"
#include "front/store/store.h"

struct manage_action {
    struct action action;
    int (*run)(struct store *s, const void *options, struct sg_error *e);
};

struct manage_verb {
    const char *name, *summary;
    const struct manage_action *actions;
    size_t n_actions;
    size_t options_size; /* of the options: a structure that begins with struct action_options */
};

/* Enters the directory of the server's database, and becomes its owner; see action_enter. */
int manage_enter(const struct action_options *o, char ret_dir[ACTION_DIR_MAX], struct sg_error *e);
/* argv[0] is the verb. The result is the exit status. */
int manage_main(const struct manage_verb *verb, int argc, char **argv);

/* Reads a mode of the sanitiser into the form that the store keeps: the mode's number plus one. 0:
 * none was set. */
int manage_sanitise(const char *value, uint8_t *ret, struct sg_error *e);
const char *manage_sanitise_name(uint8_t stored); /* NULL for 0 */

/* Prints one cell of a table. Anybody may have chosen a name, so no byte of it may control the
 * terminal. */
void manage_print_cell(const char *text, int width);
