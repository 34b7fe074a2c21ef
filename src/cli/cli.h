/* The verbs of the command line and what they share. */
#pragma once

/* What sandglass itself answers; any other status is the one of the program that was run. */
enum {
    CLI_EXIT_USAGE = 2,
    CLI_EXIT_CANNOT = 78, /* serve: it cannot run here, and trying again does not mend that */
    CLI_EXIT_TIMEOUT = 124,
    CLI_EXIT_SETUP = 125,
    CLI_EXIT_SIGNAL = 128, /* + the signal's number */
};

/* argv[0] is the name of the verb. The result is the exit status. */
int cmd_run(int argc, char **argv);
int cmd_acp(int argc, char **argv);
int cmd_doctor(int argc, char **argv);
int cmd_serve(int argc, char **argv);
int cmd_drain(int argc, char **argv);
int cmd_version(int argc, char **argv);
int cmd_help(int argc, char **argv);
