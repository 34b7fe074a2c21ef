/* `sandglass world`: worlds of a server (docs/internals/worlds.md). */
#pragma once

#include "lib/command/options.h"

extern const struct cli_syntax world_import_syntax, world_pull_syntax, world_ls_syntax,
    world_rm_syntax, world_gc_syntax;

/* argv[0] is "world". The result is the exit status. */
int world_main(int argc, char **argv);
