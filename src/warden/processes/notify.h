/* Tells the service manager how the server is (sd_notify(3)): datagrams to the socket that
 * NOTIFY_SOCKET names. Without that variable nothing is told.
 *
 *   READY=1      the first front takes connections
 *   STOPPING=1   the server finishes
 *   WATCHDOG=1   the event loop turns: sent at least four times per WATCHDOG_USEC */
#pragma once

/* Call once, at the start: removes the variables from the environment. */
void notify_open(void);
/* One or more lines such as "READY=1\nSTATUS=...". */
void notify_tell(const char *lines);
/* Call it each second. */
void notify_watchdog(void);
