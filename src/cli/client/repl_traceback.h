/* Colours for tracebacks: for the place of an error and for its name. They work for the tracebacks
 * of Python, IPython, Node and the like; a line that looks different stays as it is. */
#pragma once

#include "lib/text/strbuf.h"

/* Appends `text` and a line end. `name` is the error's, such as ValueError. */
void repl_traceback(struct strbuf *out, const char *text, const char *name, bool colour);
