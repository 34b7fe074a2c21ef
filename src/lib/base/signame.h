/* The name of a signal: "KILL" for 9 and so on; "?" for a number without a name. (musl has no
 * sigabbrev_np.) */
#pragma once

const char *signal_name(int sig);
