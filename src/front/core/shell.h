/* Commands that the server itself runs in a sandbox, each by a shell: steps of a build, the start
 * and the ready command of a template. */
#pragma once

#include <jansson.h>

#include "front/core/call.h"
#include "front/core/sandbox_end.h"

struct shell {
    const char *command, *user;
    const char *cwd;     /* "": the user's home */
    json_t *envs;        /* more variables than those of the sandbox, or NULL */
    uint32_t flags;      /* PROC_... */
    uint64_t timeout_ms; /* 0: none */
};
/* Begins OP_PROCESS_START in c->sandbox. c's callbacks must be set. */
int shell_begin(struct call *c, struct sandbox *b, const struct shell *s, struct sg_error *e);

/* How a command ended: the text is "" if it exited with 0, and otherwise says how, as in "exit
 * status 1". */
struct shell_end {
    char text[MEMORY_LIMIT_TEXT];
    bool timed_out;
};
/* The result of OP_PROCESS_START. -EPROTO: malformed. */
int shell_end_read(const void *result, size_t len, struct shell_end *ret);

/* Drops output from now on, inside the sandbox. */
void shell_discard(struct call *c);
