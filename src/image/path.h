/* Names in a layer.
 *
 * A name is taken below the root, as tar does: "/usr", "./usr/" and "usr" are the same. `..` is refused, in
 * links' targets it is no matter: nobody follows them here but a tree does, and that cannot leave its root. */
#pragma once

#include "image/image.h"

/* The clean form: parts with one slash between them; "" is the root. ret has room for IMAGE_PATH_MAX + 1. */
int path_clean(const char *name, const struct image_limits *limits, char *ret, struct sg_error *e);
/* Whether a path is in this form, and no longer or deeper than anything may be. */
bool path_is_clean(const char *path, size_t len);

/* A name as people may read it, on one line, and not all of it if it is long. */
#define PATH_SHOWN 100
const char *path_show(const char *name, char buf[PATH_SHOWN]);
#define PATH_SHOW(name) path_show(name, (char[PATH_SHOWN]){0})
