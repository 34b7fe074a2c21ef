/* The contents of the files that the options of `sandglass run` name, the code among them. */
#pragma once

#include "cli/local/cage_inputs.h"
#include "cli/local/run_options.h"

#define RUN_CODE_MAX (64u * 1024 * 1024)

struct run_inputs {
    struct cage_inputs cage;
    char *code; /* NULL for a command */
    size_t code_len;
    enum sg_language language;
};

/* Reads standard input only if the code comes from there. Call run_inputs_done even after an
 * error. */
int run_inputs_load(const struct run_options *o, struct run_inputs *ret, struct sg_error *e);
void run_inputs_done(struct run_inputs *in);
