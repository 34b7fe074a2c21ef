/* Children of the warden, by pidfd. */
#pragma once

#include "lib/base/err.h"

void child_kill(int pidfd); /* -1 is allowed */
/* How it ended. */
struct child_exit {
    bool known;     /* false: somebody else has reaped it */
    bool signalled; /* code is the signal, else the exit status */
    int code;
};
/* Reaps it if it is dead; -EAGAIN if it is not. Closes and resets *pidfd on success. ret may be
 * NULL. */
int child_reap(int *pidfd, struct child_exit *ret);
/* SIGKILL, then wait up to timeout_ms until it is dead, then reap. 0, or -ETIMEDOUT. Closes and
 * resets *pidfd on success. ret, which may be NULL: how it ended, before the signal perhaps. */
int child_end(int *pidfd, int timeout_ms, struct child_exit *ret);
/* Its process id, or 0 when it has been reaped. */
int child_pid(int pidfd);
/* Reaps dead children of which we have no pidfd. A spawner that was killed while it cloned has left
 * one, and its pid namespace does not end before that is reaped. Only for a program whose children
 * are all started here. */
void child_reap_strays(void);
