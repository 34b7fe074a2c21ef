/* Lines that begin with a colon are commands for the prompt itself: ":help" lists them. */
#pragma once

#include "cli/client/repl_session.h"

/* Runs a command: a line for which repl_is_command is true. */
void repl_command(struct repl_session *s, const char *line);
/* Called before a cell runs in the current context: adds a step that :back can return to. */
void repl_back_mark(struct repl_session *s, const char *code, size_t len);
