/* The flags of `sandglass serve`: --config, --help, and one for each setting. */
#pragma once

#include "lib/command/options.h"

/* The first call makes the syntax from the table of settings. */
const struct cli_syntax *serve_syntax(void);
