/* The exit statuses of sandglass and of the programs that its verbs are a part of. */
#pragma once

/* What sandglass itself answers; any other status is the one of the program that was run. */
enum {
    CLI_EXIT_USAGE = 2,
    CLI_EXIT_CANNOT = 78, /* serve: it cannot run here, and trying again does not mend that */
    CLI_EXIT_TIMEOUT = 124,
    CLI_EXIT_SETUP = 125,
    CLI_EXIT_SIGNAL = 128, /* + the signal's number */
};
