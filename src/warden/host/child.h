/* Children of the warden, by pidfd. */
#pragma once

#include "lib/base/err.h"

/* Starts a child like vfork: it shares this process's memory until it execs or ends, and this waits
 * for that. So nothing is copied, however large the program is that uses the library, and fn must
 * not allocate. Signals are blocked in it, because no handler of that program may run there. flags:
 * of clone. Returns its pid or -errno. */
int child_clone(int (*fn)(void *arg), void *arg, int flags, int *ret_pidfd);
void child_kill(int pidfd); /* -1 is allowed */
/* How a child ended. */
struct child_exit {
    bool known;     /* false: somebody else has reaped it */
    bool signalled; /* code is the signal, else the exit status */
    int code;
};
/* Reaps the child if it is dead; -EAGAIN if it is not. Closes and resets *pidfd on success. ret may
 * be NULL. */
int child_reap(int *pidfd, struct child_exit *ret);
/* Sends SIGKILL, waits up to timeout_ms until the child is dead, and reaps it. 0, or -ETIMEDOUT.
 * Closes and resets *pidfd on success. ret may be NULL; it tells how the child ended, which may
 * have been before the signal. */
int child_end(int *pidfd, int timeout_ms, struct child_exit *ret);
/* The child's process id, or 0 when it has been reaped. */
int child_pid(int pidfd);
/* Reaps dead children of which the warden has no pidfd. A spawner that was killed while it cloned
 * has left such a child, and the child's pid namespace does not end before the child is reaped.
 * Only for a program that starts all its children here. */
void child_reap_strays(void);
