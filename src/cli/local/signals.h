/* Signals that ask us to end, as a descriptor. */
#pragma once

/* From here on such a signal is no longer the end of us but an event: the library sees it on the
 * descriptor, takes the sandbox down and returns. A closed pipe is an error of write(2). -1: errno
 * says why. */
int signals_open(void);
/* The signal that arrived, or 0. */
int signals_taken(int signal_fd);
