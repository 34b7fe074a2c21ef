/* The command line of `sandglass run`, as a structure. Parsing touches nothing but the arguments,
 * our environment (for --env NAME) and the working directory (for relative mounts), so that it can
 * be fuzzed; what the options name is read afterwards, see run_inputs.h. */
#pragma once

#include "cli/env_list.h"
#include "cli/network_list.h"
#include "cli/options.h"

#define RUN_MOUNTS_MAX         64
#define RUN_ENV_FILES_MAX      16
#define RUN_DEFAULT_TIMEOUT_MS 30000

enum run_source {
    RUN_SOURCE_NONE,
    RUN_SOURCE_CODE,    /* an argument */
    RUN_SOURCE_FILE,    /* -f FILE */
    RUN_SOURCE_STDIN,   /* - */
    RUN_SOURCE_COMMAND, /* -- CMD ARG... */
};

struct run_options {
    bool help;
    enum run_source source;
    const char *source_text; /* the code, or the file's path */
    char **command;          /* NULL-terminated */
    enum sg_language language;
    bool language_given;

    struct sg_limits limits; /* 0: the library's default */
    uint64_t timeout_ms, output_limit;
    struct sg_mount mounts[RUN_MOUNTS_MAX]; /* source and target are ours */
    size_t n_mounts;
    struct env_list env;
    const char *env_files[RUN_ENV_FILES_MAX];
    size_t n_env_files;
    const char *user, *cwd, *hostname, *policy;
    struct network_list network;
    bool approve, tty, json, quiet;
};

extern const struct cli_syntax run_syntax;

/* Strings are not copied: argv must live as long as the structure. On failure nothing is left to
 * free; every error here is bad usage. */
int run_options_parse(int argc, char **argv, struct run_options *ret, struct sg_error *e);
void run_options_done(struct run_options *o);
