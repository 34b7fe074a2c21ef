/* sandglass tenant: the tenants of a server, and the limits of each. */
#pragma once

#include "lib/command/options.h"

extern const struct cli_syntax tenant_list_syntax, tenant_set_syntax;

/* argv[0] is "tenant". The result is the exit status. */
int tenant_main(int argc, char **argv);
