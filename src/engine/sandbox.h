/* The sandbox object behind the public library. */
#pragma once

#include <sandglass.h>

#include "lib/base/ids.h"
#include "warden/providers/process/process.h"
#include "engine/session.h"

struct egress;

struct sg_engine {
    struct provider *provider;
    struct egress *egress; /* NULL until a sandbox needs one */
};

struct sg_sandbox {
    char id[ID_LEN + 1];
    struct sg_engine *engine;
    struct instance *instance;
    struct session *session;
    struct sg_limits limits;
    char **env;    /* variables of every program in it, NULL-terminated, or NULL */
    bool one_shot; /* ends with its first program */
    bool starting; /* sandbox_await has not been called */
    bool broken;   /* the channel failed: nothing but closing is possible */
};

/* sandbox.c. sg_sandbox_open in two halves: requests may be sent in between, which saves a one-shot
 * the wait. */
int sandbox_begin(struct sg_engine *engine, const struct sg_options *options,
                  struct sg_sandbox **ret, struct sg_error *e);
int sandbox_await(struct sg_sandbox *s, struct sg_error *e);
/* Frees the handle; the instance stays until it is destroyed, or its engine closed. */
struct instance *sandbox_leave(struct sg_sandbox *s);
/* Like sg_engine_close, but tells what could not be ended. */
int engine_close(struct sg_engine *engine, struct sg_error *e);

/* limits.c: fills in defaults and refuses what makes no sense. */
int limits_complete(const struct sg_limits *given, struct sg_limits *ret, struct sg_error *e);

/* policy.c: the approval guard. Says 0, or names the rule that refuses. */
int policy_check(const struct sg_options *o, struct sg_error *e);
const char *const *policy_mount_roots(const struct sg_options *o); /* NULL-terminated */

/* network.c: one of network_allow and network_deny. `what` names it in the error. */
int network_entry_check(const char *what, const char *entry, struct sg_error *e);
bool network_entry_is_name(const char *entry);

/* secrets.c: checks them; makes a placeholder for each, NULL-terminated. */
int secrets_prepare(const struct sg_options *o, char ***ret_placeholders, struct sg_error *e);
/* What programs need to use them: the guard's certificate, and s->env. */
int secrets_install(struct sg_sandbox *s, const struct sg_options *o, char *const *placeholders,
                    struct sg_error *e);
void strings_free(char **list); /* NULL is allowed */

/* languages.c: how a piece of code is run. "@" stands for the path of the code. */
struct language {
    const char *name;
    const char *short_name;
    const char *suffixes;   /* space-separated, the first names main.<suffix> */
    const char *program[6]; /* as a program of its own */
    const char *cell[6];    /* as a cell, by a kernel; none: there is no difference */
};
const struct language *language_get(enum sg_language l);
/* The one of its suffixes that the name has, or its first; the length is in *ret_len. */
const char *language_suffix(const struct language *l, const char *name, size_t *ret_len);

/* exec.c: runs one program. `pending` is a file write that was begun for it, or NULL: if that fails
 * the program is ended and the write's error is the result. `results` is where a kernel notes the
 * results of a cell, or NULL. */
int exec_run(struct sg_sandbox *s, const struct sg_exec *x, struct file_write *pending,
             const char *results, struct sg_result *ret, struct sg_error *e);

/* results.c: gives what is in that file to x->on_result, and removes it. */
void results_give(struct sg_sandbox *s, const struct sg_exec *x, const char *path);
