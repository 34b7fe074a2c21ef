/* The signals that ask us to end, as a file descriptor. */
#pragma once

/* Blocks these signals, so that one of them is no longer the end of this process but an event: the
 * library sees it on the descriptor, takes the sandbox down and returns. SIGPIPE is ignored too: a
 * closed pipe becomes an error of write(2). -1: errno says why. */
int signals_open(void);
/* The number of the signal that arrived, or 0. */
int signals_taken(int signal_fd);
