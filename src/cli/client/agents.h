/* sandglass agents: the hosted agents of a server, through Sandglass's own API (/v1/agents).
 *
 *   agents.c  the command line     agents_start.c  start, extend, stop
 *                                  agents_list.c   ls, show, logs */
#pragma once

#include "lib/text/strbuf.h"
#include "cli/shared/env_options.h"
#include "cli/client/client.h"

struct agents_options {
    struct client_actions base;
    uint64_t timeout_s;
    const char *template, *sandbox, *conversation, *path, *source, *into, *user, *cwd, *network;
    bool serve_fs;
    struct env_list env;
    struct env_files env_files;
};

int agents_ls_fn(struct client *c, void *options, struct sg_error *e);
int agents_show_fn(struct client *c, void *options, struct sg_error *e);
int agents_logs_fn(struct client *c, void *options, struct sg_error *e);
int agents_start_fn(struct client *c, void *options, struct sg_error *e);
int agents_extend_fn(struct client *c, void *options, struct sg_error *e);
int agents_stop_fn(struct client *c, void *options, struct sg_error *e);
