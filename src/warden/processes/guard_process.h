/* The guard: the process through which everything goes that leaves a sandbox (a child program), and
 * our end of its messages (wire/guard.h).
 *
 * One that cannot be kept alive does not end the server: nothing leaves then. What comes to the
 * sandboxes' listeners while there is none waits there for the next. */
#pragma once

#include "wire/guard.h"
#include "warden/processes/child_program.h"

int guard_process_init(struct server *s, const char *program, struct sg_error *e);
/* The descriptors stay the caller's. */
void guard_tell(struct server *s, struct guard_message *m, const int *fds, size_t n_fds);
/* Again after SIGHUP. */
void guard_tell_settings(struct server *s);
/* A socket between front and guard, if both are there: whenever one of them is new. */
void guard_meet_front(struct server *s);
