/* Mounts of which clones are made.
 *
 * From Linux 6.15 on, a mount that is attached nowhere can be cloned, and all of this does nothing. Before,
 * the kernel clones only what is attached in the mount namespace of whoever asks. There a server
 * makes a mount namespace of its own when it starts, and keeps in it, below /run/sandglass,
 * the mounts that it needs clones of: worlds, the scratch store, disks in memory. They go with the
 * server, however it ends. */
#pragma once

#include <stdbool.h>

#include "lib/base/err.h"

/* Finds out whether clones need attached mounts, and if so begins to keep them; always: in any case, for tests.
 * Descriptors from before are of another mount namespace then. */
int attach_begin(bool always, struct sg_error *e);
/* Whether mounts are kept. */
bool attach_active(void);
/* Keeps a mount, the only one of its file system that is kept, so that clones of it can be made. */
int attach_keep(int mount, struct sg_error *e);
/* Before a kept mount is closed. */
void attach_let_go(int mount);
/* Opens a directory of a kept mount, of which clones can be made: a clone itself if it need not be
 * attached. -1 and errno. */
int attach_open(int at, const char *path);
/* Opens a mount for an overlay, which may use it up: a clone if mounts are kept. -1 and errno. */
int attach_copy(int mount);
