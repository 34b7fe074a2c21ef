/* The guard: the process that everything goes through that leaves a sandbox (a child program), and
 * the warden's end of its messages (wire/guard.h).
 *
 * A guard that cannot be kept alive does not end the server; nothing leaves the sandboxes then.
 * Connections to the sandboxes' listeners wait there until the next guard takes them. */
#pragma once

#include "wire/guard.h"
#include "warden/processes/child_program.h"

int guard_process_init(struct server *s, const char *program, struct sg_error *e);
/* The descriptors stay the caller's. */
void guard_tell(struct server *s, struct guard_message *m, const int *fds, size_t n_fds);
/* Sends the guard its settings; called again after SIGHUP. */
void guard_tell_settings(struct server *s);
/* Gives front and guard a socket to each other, if both are there. Called whenever one of them is
 * new. */
void guard_meet_front(struct server *s);
