/* File descriptors of the warden. The kernel limits their number, and the warden may not be able to
 * raise that limit (lib/base/fds.h). So it saves them in two steps:
 *
 *   FDS_LOW      pools are not refilled; slots give up the descriptors that they keep for their
 *                next sandbox, one at a time, when there is time
 *   FDS_SCARCE   before anything new is begun, slots give up all of those at once, then tenant
 *                pools that nobody uses are closed; if that is not enough, the new thing is
 *                refused, and the caller may try again later
 *
 * The last descriptors are reserved for work that must go on: ending and pausing sandboxes,
 * figures, messages of the front. */
#pragma once

#include "lib/base/err.h"

struct server;

/* Makes sure that there are descriptors for something new that stays open, and room to watch them.
 * 0, or a negative error number with a text that says what to do. */
int descriptors_admit(struct server *s, struct sg_error *e);
