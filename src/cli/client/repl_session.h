/* A session at the prompt: a sandbox, its contexts, and the cells that the user has run. */
#pragma once

#include "cli/client/repl_input.h"
#include "cli/client/repl_kernel.h"
#include "cli/client/repl_life.h"
#include "cli/client/repl_show.h"
#include "cli/client/repl_trail.h"

#define REPL_SESSION_MAX (16u * 1024 * 1024)

struct repl_context {
    char *id, *language;
    uint64_t count; /* number of cells that ran */
    bool made;      /* this session made the context, and removes it */
    char *fresh;    /* why its kernel cannot be copied; NULL: no reason is known */
};

struct repl_session {
    struct repl_watch watch;
    struct repl_life life;
    struct repl_show show;
    struct repl_input input;
    struct repl_context contexts[REPL_CONTEXTS_MAX];
    size_t n_contexts;
    size_t current;
    struct strbuf cells; /* all cells that were run, for :save */
    struct repl_trail trail;
    bool terminal; /* a person is at the keyboard */
    bool over;     /* the user typed :quit */
};

int repl_session_open(struct repl_session *s, struct client *c, const struct repl_options *o,
                      bool terminal, struct sg_error *e);
void repl_session_close(struct repl_session *s);

/* Begins another sandbox, with a context of the current language. */
int repl_session_renew(struct repl_session *s, struct sg_error *e);
/* Switches to a language: to the session's context of that language, or to a new one. */
int repl_session_language(struct repl_session *s, const char *language, struct sg_error *e);
/* Switches to the context with this id. */
int repl_session_use(struct repl_session *s, const char *id, struct sg_error *e);

/* Forgets all but the first n contexts and switches to one of them: after a rewind the others no
 * longer exist. */
void repl_session_keep(struct repl_session *s, size_t n, size_t current);

/* Runs a cell and shows what it does. 0 if the cell came to its end, with an error or without. */
int repl_session_run(struct repl_session *s, const char *code, size_t len, struct sg_error *e);
