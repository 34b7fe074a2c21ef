/* Directories that are being filled: under another name, until they are whole. For backup/ only. */
#pragma once

#include "lib/base/err.h"
#include "lib/base/ids.h"

/* DIR/NAME taken apart, for a directory that is to be made. name points into path. */
int place_parent(const char *path, int *ret_dir, const char **ret_name, struct sg_error *e);
/* Makes dir/name and opens it. */
int place_make(int dir, const char *name, mode_t mode, struct sg_error *e);
int place_open(int dir, const char *name, struct sg_error *e);
/* "new-ID" and so on: a name that nothing has. */
void place_name(const char *prefix, char ret[ID_LEN + 16]);
/* As many descriptors as are allowed: a tree may be deep. */
void place_raise_limit(void);
