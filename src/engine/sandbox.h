/* Engines and sandboxes of the public library, and what its files share. */
#pragma once

#include <sandglass.h>

#include "lib/base/ids.h"
#include "lib/base/languages.h"
#include "warden/providers/waiting.h"
#include "engine/session.h"

struct egress;

struct sg_engine {
    struct provider *provider;
    struct egress *egress; /* the guard; NULL until a sandbox needs it */
};

struct sg_sandbox {
    char id[ID_LEN + 1];
    struct sg_engine *engine;
    struct instance *instance;
    struct chan *chan;
    struct sg_limits limits;
    char **env;    /* variables of every program in the sandbox, NULL-terminated, or NULL */
    bool one_shot; /* the sandbox ends with its first program */
    bool starting; /* sandbox_await has not been called yet */
    bool broken;   /* the channel failed: the sandbox can only be closed */
};

/* sandbox.c. sg_sandbox_open in two halves. Requests may be sent between the halves, which saves a
 * one-shot run the wait for the sandbox. */
int sandbox_begin(struct sg_engine *engine, const struct sg_options *options,
                  struct sg_sandbox **ret, struct sg_error *e);
int sandbox_await(struct sg_sandbox *s, struct sg_error *e);
/* Frees the handle. The instance stays until it is destroyed or its engine closes. */
struct instance *sandbox_leave(struct sg_sandbox *s);
/* Like sg_engine_close, but reports what could not be ended. */
int engine_close(struct sg_engine *engine, struct sg_error *e);

/* policy.c: checks the options against the policy. Returns 0, or an error that names the rule that
 * refuses. */
int policy_check(const struct sg_options *o, struct sg_error *e);
const char *const *policy_mount_roots(const struct sg_options *o); /* NULL-terminated */

/* network.c: checks one entry of network_allow or network_deny. `what` names the list in the
 * error. */
int network_entry_check(const char *what, const char *entry, struct sg_error *e);
bool network_entry_is_name(const char *entry);

/* secrets.c: checks the secrets and makes a placeholder for each; the list is NULL-terminated. */
int secrets_prepare(const struct sg_options *o, char ***ret_placeholders, struct sg_error *e);
/* Whether it can be the name of a variable. */
bool secret_name_is_valid(const char *name);
/* Puts into the sandbox what programs need to use the secrets: the guard's certificate, and
 * s->env. */
int secrets_install(struct sg_sandbox *s, const struct sg_options *o, char *const *placeholders,
                    struct sg_error *e);
void strings_free(char **list); /* NULL is allowed */

/* languages.c: how code of a language is run. "@" stands for the path of the code. */
const struct language *language_get(enum sg_language l);
/* The suffix of the language that `name` ends in, or the first suffix. *ret_len is its length. */
const char *language_suffix(const struct language *l, const char *name, size_t *ret_len);

/* exec.c: runs one program. `pending` is a file write that was begun for the program, or NULL: if
 * the write fails, the program is ended and the call fails with the write's error. `results` is the
 * file where a kernel notes the results of a cell, or NULL. */
int exec_run(struct sg_sandbox *s, const struct sg_exec *x, struct file_write *pending,
             const char *results, struct sg_result *ret, struct sg_error *e);

/* results.c: gives the results in that file to x->on_result, and removes the file. */
void results_give(struct sg_sandbox *s, const struct sg_exec *x, const char *path);
