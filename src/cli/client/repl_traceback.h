/* Colours for tracebacks: where it happened, and what. They work for what Python, IPython, Node and
 * their like print; a line that looks different stays as it is. */
#pragma once

#include "lib/text/strbuf.h"

/* Appends `text` and a line end. `name` is the error's, such as ValueError. */
void repl_traceback(struct strbuf *out, const char *text, const char *name, bool colour);
