/* The flags of `sandglass serve`: --config, --help, and one for each setting. */
#pragma once

#include "lib/command/options.h"

/* Made from the table of settings at the first call. */
const struct cli_syntax *serve_syntax(void);
