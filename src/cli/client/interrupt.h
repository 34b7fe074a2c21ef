/* Signals that ask us to end, for verbs that must tidy up first: a file that is half written, a
 * terminal. Transfers ask for the signal now and then, and stop. */
#pragma once

#include <stdbool.h>

/* From this call on, SIGINT, SIGTERM, SIGHUP and SIGQUIT only leave a note and interrupt blocking
 * calls. */
void interrupt_watch(void);
/* The signal that came, or 0. */
int interrupt_signal(void);
/* While it is on, no signal seems to have come: for a last word to the server. */
void interrupt_hold(bool on);
