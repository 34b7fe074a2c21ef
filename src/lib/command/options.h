/* Options of a verb as a table. The table drives the parser and the help text, and tests hold the
 * manual page and the shell completion against it. */
#pragma once

#include <stdio.h>

#include "lib/base/err.h"

struct cli_option {
    const char *name;     /* without the dashes */
    char letter;          /* short form, 0: none */
    const char *argument; /* "SIZE" in the help; NULL: a flag */
    const char *help;
    /* Stores a value (NULL for a flag) in the verb's own structure. */
    int (*apply)(void *self, const char *value, struct sg_error *e);
};

struct cli_syntax {
    const struct cli_option *options;
    size_t n_options;
    /* Takes an argument that is no option; NULL: the verb has no such arguments. */
    int (*positional)(void *self, const char *arg, struct sg_error *e);
};

/* Reads argv[1] on: --name VALUE, --name=VALUE, -n VALUE, -nVALUE, joined flags (-tq), options and
 * positional arguments in any order. *ret_rest is what follows "--" (NULL if there is no "--"); it
 * ends with argv's NULL. */
int cli_parse(const struct cli_syntax *syntax, int argc, char **argv, void *self, char ***ret_rest,
              struct sg_error *e);
/* The same for a verb that ends in a command: after the first positional argument, the next one
 * that is neither an option nor "--" begins *ret_rest. */
int cli_parse_command(const struct cli_syntax *syntax, int argc, char **argv, void *self,
                      char ***ret_rest, struct sg_error *e);

/* The options of verbs that know --json and --help, and take no arguments. */
struct cli_plain {
    bool json, help;
};
extern const struct cli_syntax cli_plain_syntax;
int cli_parse_plain(int argc, char **argv, struct cli_plain *ret, struct sg_error *e);

/* Prints one line per option, aligned. */
void cli_print_options(FILE *to, const struct cli_syntax *syntax);
