/* The verbs of the command line and what they share. */
#pragma once

#include "lib/command/exit_status.h"

/* Each runs one verb. argv[0] is the verb's name. The result is the exit status. */
int cmd_run(int argc, char **argv);
int cmd_acp(int argc, char **argv);
int cmd_doctor(int argc, char **argv);
int cmd_serve(int argc, char **argv);
int cmd_drain(int argc, char **argv);
int cmd_version(int argc, char **argv);
int cmd_help(int argc, char **argv);
