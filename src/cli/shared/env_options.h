/* The options --env and --env-file, of every verb that starts a program in a sandbox. */
#pragma once

#include "cli/shared/env_list.h"
#include "lib/command/options.h"

#define ENV_FILES_MAX 16

struct env_files {
    const char *at[ENV_FILES_MAX];
    size_t n;
};

/* For CLI_AT. --env fills a struct env_list: NAME=VALUE, or NAME to copy it. --env-file fills a
 * struct env_files. */
int env_option(void *to, const struct cli_option *o, const char *value, struct sg_error *e);
int env_file_option(void *to, const struct cli_option *o, const char *value, struct sg_error *e);

/* Reads the files, then adds `own`, so that variables of the command line replace those of a file.
 * `hint` ends the error about a file that is too large. */
int env_load(const struct env_files *files, const struct env_list *own, const char *hint,
             struct env_list *ret, struct sg_error *e);
