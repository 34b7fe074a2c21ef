/* The request: which program with which arguments, environment and directory. */
#pragma once

#include "inside/sudo/options.h"

/* Appends all of it to `out` but the magic and the flags. Exits if it cannot be said. */
void request_build(const struct sudo_options *o, struct strbuf *out);
