/* The environment of a program: the variables of the request, and a few defaults for those that the
 * request does not set. */
#pragma once

#include "inside/agent/agent.h"
#include "lib/channel/wire.h"

struct strings {
    const char **v; /* NULL-terminated; the strings are in the request, or in `own` */
    size_t n;
    struct strbuf own;
};

void strings_done(struct strings *s);

/* Reads n u32 and n strings. The first string is the command and must not be empty. */
int environ_read_args(struct wire_reader *r, struct strings *ret, struct sg_error *e);
/* Reads n u32 and n "K=V". */
int environ_read_variables(struct wire_reader *r, struct strings *ret, struct sg_error *e);
/* Adds the defaults for variables that are not set yet. Call it once. cpus: how many threads
 * libraries may start, which would otherwise go by the host's processors; 0: no variable for
 * that. */
int environ_add_defaults(struct strings *env, const struct agent_user *as, const char *cwd,
                         bool tty, uint32_t cpus, struct sg_error *e);
