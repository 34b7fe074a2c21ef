/* What the options of a sandbox name: environment files, the policy; and if there is a network, the
 * settings of the guard. */
#pragma once

#include "cli/local/cage_options.h"
#include "cli/local/policy_file.h"

struct cage_inputs {
    struct env_list env; /* environment files first, --env over them */
    struct policy_file policy;
    char *guard_settings, *guard_program, *guard_roots; /* NULL: the library's */
};

/* On failure nothing is left to free. */
int cage_inputs_load(const struct cage_options *o, struct cage_inputs *ret, struct sg_error *e);
void cage_inputs_done(struct cage_inputs *in);

/* The library's form of both, which must live as long as it. */
void cage_fill_options(const struct cage_options *o, const struct cage_inputs *in,
                       struct sg_options *ret);
