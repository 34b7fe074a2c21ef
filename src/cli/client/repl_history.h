/* The file that keeps old cells: $XDG_STATE_HOME/sandglass/repl_history-LANGUAGE. Only its owner
 * can read it. */
#pragma once

#include <histedit.h>

#define REPL_HISTORY_MAX 1000 /* cells */

/* The path of the history; makes its directory. NULL if there is no home directory for it. */
char *repl_history_path(const char *language);
/* Writes a new file and renames it, so that the history is never half written. Failures are silent:
 * history is a convenience. */
void repl_history_save(History *h, const char *path);
