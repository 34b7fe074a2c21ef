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
    /* Takes the value (NULL for a flag). `to` is `at` bytes into the verb's own structure: a member,
     * as the macros below say, or the structure itself. */
    int (*apply)(void *to, const struct cli_option *o, const char *value, struct sg_error *e);
    size_t at;
    uint64_t least, most; /* cli_count, cli_time */
    const char *words; /* cli_word: "a|b|c"; cli_filled: the noun of the error; cli_time: bounds */
    unsigned actions;  /* of a verb with actions: those that have this option; 0: all */
};

/* The rest of a row, by the kind of value:
 *
 *   CLI_FLAG    sets a bool
 *   CLI_TEXT    keeps a `const char *`
 *   CLI_FILLED  the same, which may not be empty: "--cwd: <noun> is empty"
 *   CLI_WORD    the same, which is one of "a|b|c"
 *   CLI_COUNT   reads a number into a uint64_t
 *   CLI_TIME    reads a time into a uint64_t, in ms: "--x '1y' is not between <bounds>" */
#define CLI_AT(fn, type, member)       .apply = fn, .at = offsetof(struct type, member)
#define CLI_FLAG(type, member)         CLI_AT(cli_flag, type, member)
#define CLI_TEXT(type, member)         CLI_AT(cli_text, type, member)
#define CLI_FILLED(type, member, noun) CLI_AT(cli_filled, type, member), .words = noun
#define CLI_WORD(type, member, list)   CLI_AT(cli_word, type, member), .words = list
#define CLI_COUNT(type, member, low, high) \
    CLI_AT(cli_count, type, member), .least = low, .most = high
#define CLI_TIME(type, member, low, high, bounds) \
    CLI_AT(cli_time, type, member), .least = low, .most = high, .words = bounds

int cli_flag(void *to, const struct cli_option *o, const char *value, struct sg_error *e);
int cli_text(void *to, const struct cli_option *o, const char *value, struct sg_error *e);
int cli_filled(void *to, const struct cli_option *o, const char *value, struct sg_error *e);
int cli_word(void *to, const struct cli_option *o, const char *value, struct sg_error *e);
int cli_count(void *to, const struct cli_option *o, const char *value, struct sg_error *e);
int cli_time(void *to, const struct cli_option *o, const char *value, struct sg_error *e);

struct cli_syntax {
    const struct cli_option *options;
    size_t n_options;
    /* Takes an argument that is no option; NULL: the verb has no such arguments. */
    int (*positional)(void *self, const char *arg, struct sg_error *e);
    /* Where in the verb's structure a uint64_t is that gets a bit for each row that was given;
     * 0: nowhere. */
    size_t given;
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
