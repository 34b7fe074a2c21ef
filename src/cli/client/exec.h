/* The command line of `sandglass exec`. */
#pragma once

#include "cli/shared/env_options.h"
#include "cli/client/client.h"

struct exec_options {
    struct client_common common;
    const char *id;
    char **command; /* NULL-terminated */
    bool interactive, tty, detach;
    const char *user, *cwd;
    struct env_list env;
    uint64_t timeout_ms; /* 0: no limit */
};
