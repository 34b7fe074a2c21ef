/* Explains refusals of the code interpreter, which answers in plain text where the rest of a server
 * answers in JSON. */
#pragma once

#include "cli/client/sandbox.h"
#include "cli/client/web.h"

/* -ENXIO: the sandbox has ended; -ENOENT: no such context; otherwise as api_refusal. */
int repl_refusal(const struct sandbox *sandbox, const struct web_reply *reply, struct sg_error *e);
