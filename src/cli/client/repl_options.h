/* The command line of `sandglass repl`. */
#pragma once

#include "cli/shared/env_options.h"
#include "cli/client/client.h"

#define REPL_TEMPLATE  "code-interpreter-v1"
#define REPL_LANGUAGE  "python"
#define REPL_TIMEOUT_S 900

struct repl_options {
    struct client_common common;
    const char *id; /* NULL: a sandbox of our own */
    const char *language;
    const char *context; /* an existing context of that sandbox; NULL: a new one */
    uint64_t timeout_s;  /* 0: the default */
    struct env_list env;
    bool keep, json, no_colour, no_checkpoints;
};
