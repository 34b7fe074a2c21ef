/* A session at the prompt: a sandbox, contexts in it, what has been typed. */
#pragma once

#include "cli/client/repl_input.h"
#include "cli/client/repl_kernel.h"
#include "cli/client/repl_life.h"
#include "cli/client/repl_show.h"
#include "cli/client/repl_trail.h"

#define REPL_SESSION_MAX (16u * 1024 * 1024)

struct repl_context {
    char *id, *language;
    uint64_t count; /* cells that ran */
    bool made;      /* by this session, which removes it */
    char *fresh;    /* why its kernel cannot be copied, or NULL: it can, as far as we know */
};

struct repl_session {
    struct repl_watch watch;
    struct repl_life life;
    struct repl_show show;
    struct repl_input input;
    struct repl_context contexts[REPL_CONTEXTS_MAX];
    size_t n_contexts;
    size_t current;
    struct strbuf cells; /* that were run, for :save */
    struct repl_trail trail;
    bool terminal; /* a person is there */
    bool over;     /* :quit */
};

int repl_session_open(struct repl_session *s, struct client *c, const struct repl_options *o,
                      bool terminal, struct sg_error *e);
void repl_session_close(struct repl_session *s);

/* Another sandbox with a context of the current language. */
int repl_session_renew(struct repl_session *s, struct sg_error *e);
/* Goes on in this language: in the context that it has in this session, or in a new one. */
int repl_session_language(struct repl_session *s, const char *language, struct sg_error *e);
/* Goes on in the context of this id. */
int repl_session_use(struct repl_session *s, const char *id, struct sg_error *e);

/* Only the first n contexts are there any more; goes on in one of them. */
void repl_session_keep(struct repl_session *s, size_t n, size_t current);

/* Runs code and shows what it does. 0 if the cell came to its end, with an error or without. */
int repl_session_run(struct repl_session *s, const char *code, size_t len, struct sg_error *e);
