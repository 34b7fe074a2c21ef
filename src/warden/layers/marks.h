/* Adds the marks of overlays of one kind where saved files have those of the other
 * (inside/files/layer_file.h). Needed once, when a server takes over snapshots of a server with
 * another kind: after an update of the kernel or of an older version, or from a backup. */
#pragma once

#include <stdbool.h>

/* Marks all directories below `dir`. Runs as root, follows no link, and opens no file. What is there
 * already stays, so that it can be done again. 0 or -errno. */
int marks_convert(int dir, bool trusted);
