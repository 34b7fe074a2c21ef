/* The code interpreter of a sandbox (port 49999): its contexts, each of which is one kernel with a
 * state, and cells that run in them. */
#pragma once

#include <jansson.h>

#include "cli/client/sandbox.h"
#include "cli/client/repl_event.h"
#include "cli/client/repl_watch.h"

#define REPL_PORT "49999"

/* *ret_id is the new context, *ret_language what the server calls the language. */
int repl_context_create(struct sandbox *sandbox, const char *language, char **ret_id,
                        char **ret_language, struct sg_error *e);
int repl_context_restart(struct sandbox *sandbox, const char *id, struct sg_error *e);
int repl_context_remove(struct sandbox *sandbox, const char *id, struct sg_error *e);
/* An array of objects with id, language and cwd. */
int repl_context_list(struct sandbox *sandbox, json_t **ret, struct sg_error *e);

struct repl_cell {
    const char *context;
    const char *code;
    size_t len;
    repl_event_fn *event; /* takes what comes; an error ends the cell */
    void *arg;
    void (*interrupted)(void *arg); /* ^C came */
    /* Somebody is there: called about once a second while it runs. */
    void (*tick)(void *arg);
};

/* Runs a cell to its end. ^C interrupts it; a second one within two seconds leaves it: -ECANCELED.
 * -ENXIO: the sandbox has ended. -ENOENT: the context is not there. -EINTR: a signal wants us to
 * end. */
int repl_cell_run(struct repl_watch *watch, struct sandbox *sandbox, const struct repl_cell *cell,
                  struct sg_error *e);
