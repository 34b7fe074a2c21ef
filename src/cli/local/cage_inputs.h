/* The contents of the files that the options of a sandbox name: environment files and the policy;
 * and, if the sandbox has a network, the guard's settings. */
#pragma once

#include "cli/local/cage_options.h"
#include "cli/local/policy_file.h"

struct cage_inputs {
    struct env_list env; /* from environment files; --env replaces theirs */
    struct policy_file policy;
    char *guard_settings, *guard_program, *guard_roots; /* NULL: the library's default */
};

/* Call cage_inputs_done even after an error. */
int cage_inputs_load(const struct cage_options *o, struct cage_inputs *ret, struct sg_error *e);
void cage_inputs_done(struct cage_inputs *in);

/* Translates options and inputs for the library. *ret points into both, so they must live as
 * long. */
void cage_fill_options(const struct cage_options *o, const struct cage_inputs *in,
                       struct sg_options *ret);
