/* Signals that want us to end, for verbs that have something to put in order first: a file that is
 * half written, a terminal. Transfers look at it and stop. */
#pragma once

/* From here on SIGINT, SIGTERM, SIGHUP and SIGQUIT are only noted, and interrupt what blocks. */
void interrupt_watch(void);
/* The signal that came, or 0. */
int interrupt_signal(void);
