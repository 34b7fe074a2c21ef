/* Where old cells are kept: $XDG_STATE_HOME/sandglass/repl_history-LANGUAGE, for their owner only.
 */
#pragma once

#include <histedit.h>

#define REPL_HISTORY_MAX 1000 /* cells */

/* Makes the directory too. NULL if there is no home to keep it in. */
char *repl_history_path(const char *language);
/* Replaces the file, so that it is never half of one. What fails is not told: it is a comfort. */
void repl_history_save(History *h, const char *path);
