/* Children of the warden, by pidfd. */
#pragma once

#include "base/err.h"

void child_kill(int pidfd); /* -1 is allowed */
/* SIGKILL, then wait up to timeout_ms until it is dead, then reap. 0, or -ETIMEDOUT. Closes and
 * resets *pidfd on success. */
int child_end(int *pidfd, int timeout_ms);
/* Reaps it if it is dead; -EAGAIN if it is not. Closes and resets *pidfd on success. */
int child_reap(int *pidfd);
/* Its process id, or 0 when it has been reaped. */
int child_pid(int pidfd);
