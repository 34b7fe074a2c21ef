/* The environment of a program: a small default, made here, under what the request brings. */
#pragma once

#include "inside/agent/agent.h"
#include "lib/channel/wire.h"

struct strings {
    const char **v; /* NULL-terminated; the strings belong to the request, or to `own` */
    size_t n;
    struct strbuf own;
};

void strings_done(struct strings *s);

/* Reads n u32 and n strings, of which the first is the command and not empty. */
int environ_read_args(struct wire_reader *r, struct strings *ret, struct sg_error *e);
/* Reads n u32 and n "K=V". */
int environ_read_variables(struct wire_reader *r, struct strings *ret, struct sg_error *e);
/* Adds the defaults that are not named yet. Once. cpus: how many threads libraries may start that
 * would go by the host's processors; 0: nothing is said. */
int environ_add_defaults(struct strings *env, const struct agent_user *as, const char *cwd,
                         bool tty, uint32_t cpus, struct sg_error *e);
