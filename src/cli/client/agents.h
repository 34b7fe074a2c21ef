/* sandglass agents: the hosted agents of a server, through Sandglass's own API (/v1/agents).
 *
 *   agents.c  the command line     agents_start.c  start, extend, stop
 *                                  agents_list.c   ls, show, logs */
#pragma once

#include "lib/text/strbuf.h"
#include "cli/shared/env_list.h"
#include "cli/client/client.h"

#define AGENTS_ARGS_MAX      1024
#define AGENTS_ENV_FILES_MAX 16

enum agents_option {
    AGENTS_JSON = 1u << 0,
    AGENTS_QUIET = 1u << 1,
    AGENTS_TIMEOUT = 1u << 2,
    AGENTS_START = 1u << 3, /* any option that only start has */
};

struct agents_options {
    struct client_common common;
    const struct agents_action *action;
    const char *args[AGENTS_ARGS_MAX + 1]; /* the arguments after the action */
    size_t n_args;
    unsigned given;         /* which options were given, AGENTS_* */
    const char *start_only; /* such an option, to name it in messages */
    uint64_t timeout_s;
    const char *template, *sandbox, *conversation, *path, *source, *into, *user, *cwd, *network;
    bool serve_fs;
    struct env_list env;
    const char *env_files[AGENTS_ENV_FILES_MAX];
    size_t n_env_files;
};

/* Each returns the exit status. */
int agents_ls_fn(struct client *c, struct agents_options *o);
int agents_show_fn(struct client *c, struct agents_options *o);
int agents_logs_fn(struct client *c, struct agents_options *o);
int agents_start_fn(struct client *c, struct agents_options *o);
int agents_extend_fn(struct client *c, struct agents_options *o);
int agents_stop_fn(struct client *c, struct agents_options *o);

/* Makes "/v1/agents/ID<rest>". */
void agents_path(struct strbuf *path, const char *id, const char *rest);
