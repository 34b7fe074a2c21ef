/* What begins with a colon is for the prompt itself: ":help" lists it. */
#pragma once

#include "cli/client/repl_session.h"

/* A line for which repl_is_command is true. */
void repl_command(struct repl_session *s, const char *line);
