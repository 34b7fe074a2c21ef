/* Contents that several worlds have lie on disk once: their BLOBs are one file with several names.
 *
 * The files of the worlds themselves say what is there. So nothing counts the users of a file, and
 * nothing can be wrong after a crash: a file goes with its last name. */
#pragma once

#include "lib/base/err.h"

/* Makes `name` in the directory of a world that is being made a name of a file that another world
 * has, if one has the same bytes. Both are compared; what a hash says would be the word of a process
 * that has read a stranger's layer. Never fails: without another the file stays as it is. */
void world_share(int worlds, int dir, const char *name);
