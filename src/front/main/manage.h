/* Verbs that work on the store of a server: `sandglass key`, `sandglass tenant`
 * (lib/command/actions.h). A server that runs sees the change with its next request. */
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
    size_t options_size; /* of a structure that begins with struct action_options */
};

/* argv[0] is the verb. The result is the exit status. */
int manage_main(const struct manage_verb *verb, int argc, char **argv);

/* A mode of the sanitiser, as the store has it: one more than its number. 0: none was set. */
int manage_sanitise(const char *value, uint8_t *ret, struct sg_error *e);
const char *manage_sanitise_name(uint8_t stored); /* NULL for 0 */

/* A column of a table. Names are anybody's text: nothing in them may drive the terminal. */
void manage_print_cell(const char *text, int width);
