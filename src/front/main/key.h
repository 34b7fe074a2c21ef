/* sandglass key: the API keys of a server. */
#pragma once

#include "lib/command/options.h"

extern const struct cli_syntax key_create_syntax, key_list_syntax, key_revoke_syntax;

/* argv[0] is "key". The result is the exit status. */
int key_main(int argc, char **argv);
