/* Directories that have another name while they are filled, until they are whole. For backup/
 * only. */
#pragma once

#include "lib/base/err.h"
#include "lib/base/ids.h"

/* Splits DIR/NAME, for a directory that is to be made, and opens DIR. name points into path. */
int place_parent(const char *path, int *ret_dir, const char **ret_name, struct sg_error *e);
/* Makes dir/name and opens it. */
int place_make(int dir, const char *name, mode_t mode, struct sg_error *e);
int place_open(int dir, const char *name, struct sg_error *e);
/* A name that no file has: "new-ID" for the prefix "new". */
void place_name(const char *prefix, char ret[ID_LEN + 16]);
