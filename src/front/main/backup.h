/* `sandglass backup` and `sandglass restore` (front/backup/backup.h). */
#pragma once

#include "lib/command/options.h"

extern const struct cli_syntax backup_syntax, restore_syntax;
/* argv[0] is the verb. The result is the exit status. */
int backup_main(int argc, char **argv);
int restore_main(int argc, char **argv);
