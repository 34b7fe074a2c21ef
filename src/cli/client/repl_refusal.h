/* What a refusal of the code interpreter means. It answers in plain text where the rest of a server
 * answers in JSON. */
#pragma once

#include "cli/client/sandbox.h"
#include "cli/client/web.h"

/* -ENXIO: the sandbox has ended; -ENOENT: no such context; and as api_refusal has it. */
int repl_refusal(const struct sandbox *sandbox, const struct web_reply *reply, struct sg_error *e);
