/* The commands of the prompt that copy a sandbox and go back in it: :fork, :back, :log. */
#pragma once

#include "cli/client/repl_session.h"

/* A cell is about to run in the current context. */
void repl_back_mark(struct repl_session *s, const char *code, size_t len);

/* Each takes its argument, "" if there is none, prints what there is to say, or fails. */
int repl_back(struct repl_session *s, const char *argument, struct sg_error *e);
int repl_back_log(struct repl_session *s, const char *argument, struct sg_error *e);
int repl_back_fork(struct repl_session *s, const char *argument, struct sg_error *e);
