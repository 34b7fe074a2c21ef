/* What the options of `sandglass run` name: the code, environment files, the policy; and if there
 * is a network, the settings of the guard. */
#pragma once

#include "cli/policy_file.h"
#include "cli/run_options.h"

#define RUN_CODE_MAX (64u * 1024 * 1024)

struct run_inputs {
    char *code; /* NULL for a command */
    size_t code_len;
    enum sg_language language;
    struct env_list env; /* environment files first, --env over them */
    struct policy_file policy;
    char *guard_settings, *guard_program; /* NULL: the library's */
};

/* Reads standard input only if the code comes from there. On failure nothing is left to free. */
int run_inputs_load(const struct run_options *o, struct run_inputs *ret, struct sg_error *e);
void run_inputs_done(struct run_inputs *in);
