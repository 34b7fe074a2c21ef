/* The code interpreter of a sandbox (port 49999): its contexts, each with one kernel that keeps
 * state, and the cells that run in them. */
#pragma once

#include <jansson.h>

#include "cli/client/sandbox.h"
#include "cli/client/repl_event.h"
#include "cli/client/repl_watch.h"

#define REPL_PORT "49999"

/* Makes a context. *ret_id is its id, *ret_language the server's name of the language. */
int repl_context_create(struct sandbox *sandbox, const char *language, char **ret_id,
                        char **ret_language, struct sg_error *e);
/* "POST", "/restart": a new kernel. "DELETE", "": removes the context. */
int repl_context_call(struct sandbox *sandbox, const char *method, const char *id, const char *rest,
                      struct sg_error *e);
/* Lists the contexts: an array of objects with id, language and cwd. */
int repl_context_list(struct sandbox *sandbox, json_t **ret, struct sg_error *e);

/* Explains a refusal of the code interpreter, which answers in plain text where the rest of a server
 * answers in JSON. -ENXIO: the sandbox has ended; -ENOENT: no such context; otherwise as
 * api_refusal. */
int repl_refusal(const struct sandbox *sandbox, const struct web_reply *reply, struct sg_error *e);

struct repl_cell {
    const char *context;
    const char *code;
    size_t len;
    repl_event_fn *event; /* called for each event; its error ends the cell */
    void *arg;
    void (*interrupted)(void *arg); /* called after ^C */
    /* Called about once a second while the cell runs, because somebody is still there. */
    void (*tick)(void *arg);
};

/* Runs a cell to its end. ^C interrupts the cell; a second ^C within two seconds leaves it:
 * -ECANCELED. -ENXIO: the sandbox has ended. -ENOENT: the context does not exist. -EINTR: a signal
 * asks us to end. */
int repl_cell_run(struct repl_watch *watch, struct sandbox *sandbox, const struct repl_cell *cell,
                  struct sg_error *e);
