/* The two ends of clerk.h by themselves: what runs in its process, and the front's side of it. */
#pragma once

#include "store/clerk.h"

/* Waits to be told where the database is, then serves. Ends the process when the other end of the
 * socket is closed, or says what cannot be. */
_Noreturn void clerk_process(int sock, int (*confine)(struct sg_error *e));
/* The front's side of a clerk that runs already. */
struct clerk *clerk_adopt(const struct clerk_hooks *hooks, int sock, pid_t pid);
