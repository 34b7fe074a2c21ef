/* sudo's request to the agent: the program with its arguments, environment and directory. */
#pragma once

#include "inside/sudo/options.h"

/* Appends the request to `out`, without the magic and the flags. Exits with a message if the
 * request would be too long, or a part of it is not to be had. */
void request_build(const struct sudo_options *o, struct strbuf *out);
