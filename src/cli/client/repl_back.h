/* The commands of the prompt that copy a sandbox and take it back to an earlier state: :fork,
 * :back, :log. */
#pragma once

#include "cli/client/repl_session.h"

/* Called before a cell runs in the current context: adds a step that :back can return to. */
void repl_back_mark(struct repl_session *s, const char *code, size_t len);

/* Each takes its argument ("" if there is none) and prints its result, or fails. */
int repl_back(struct repl_session *s, const char *argument, struct sg_error *e);
int repl_back_log(struct repl_session *s, const char *argument, struct sg_error *e);
int repl_back_fork(struct repl_session *s, const char *argument, struct sg_error *e);
