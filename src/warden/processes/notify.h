/* Telling the service manager how the server is (sd_notify(3)): datagrams to the socket that
 * NOTIFY_SOCKET names. Without one, nothing is told.
 *
 *   READY=1      the first front takes connections     STOPPING=1   the server finishes
 *   WATCHDOG=1   the loop turns: at least four times in the time that WATCHDOG_USEC gives it */
#pragma once

/* Once, at the start: takes the variables out of the environment. */
void notify_open(void);
/* One or more lines such as "READY=1\nSTATUS=...". */
void notify_tell(const char *lines);
/* Called each second. */
void notify_watchdog(void);
