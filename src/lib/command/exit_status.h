/* The exit statuses of sandglass and of the programs that share its verbs. */
#pragma once

/* The statuses of sandglass itself; any other status is that of the program that was run. */
enum {
    CLI_EXIT_USAGE = 2,
    CLI_EXIT_CANNOT = 78, /* serve: it cannot run on this machine, and trying again is useless */
    CLI_EXIT_TIMEOUT = 124,
    CLI_EXIT_SETUP = 125,
    CLI_EXIT_SIGNAL = 128, /* + the signal's number */
};
