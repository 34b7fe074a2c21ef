/* The command line of `sandglass run`, as a structure. */
#pragma once

#include "cli/local/cage_options.h"

#define RUN_DEFAULT_TIMEOUT_MS 30000

enum run_source {
    RUN_SOURCE_NONE,
    RUN_SOURCE_CODE,    /* an argument */
    RUN_SOURCE_FILE,    /* -f FILE */
    RUN_SOURCE_STDIN,   /* - */
    RUN_SOURCE_COMMAND, /* -- CMD ARG... */
};

struct run_options {
    struct cage_options cage; /* must be the first member: see cage_options.h */
    enum run_source source;
    const char *source_text; /* the code, or the file's path */
    char **command;          /* NULL-terminated */
    enum sg_language language;
    bool language_given;
    uint64_t output_limit;
    bool tty, json;
};

extern const struct cli_syntax run_syntax;

/* Strings are not copied: argv must live as long as the structure. On failure nothing is left to
 * free; every error here is bad usage. */
int run_options_parse(int argc, char **argv, struct run_options *ret, struct sg_error *e);
void run_options_done(struct run_options *o);
