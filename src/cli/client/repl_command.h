/* Lines that begin with a colon are commands for the prompt itself: ":help" lists them. */
#pragma once

#include "cli/client/repl_session.h"

/* Runs a command: a line for which repl_is_command is true. */
void repl_command(struct repl_session *s, const char *line);
