/* The two ends of a copy, and paths. A place is ID:PATH in a sandbox, or PATH on this machine; "-"
 * is standard input or output. For a local path with a colon, write a slash before the colon:
 * ./a:b. */
#pragma once

#include "lib/base/base.h"

struct place {
    char *id; /* NULL: on this machine */
    const char *path;
};

void place_parse(struct place *p, const char *arg);
void place_done(struct place *p);
bool place_is_stream(const struct place *p);

/* The last name of a path, without slashes at its end, on the heap. "" if that name cannot be used
 * for a copy: "/", ".", "..". */
char *place_last_name(const char *path);
/* "DIR/NAME"; just NAME for an empty DIR. */
char *place_join(const char *dir, const char *name);
bool place_ends_in_slash(const char *path);
/* Whether a name from a sandbox can be the name of a file here: one component, not "." or "..". */
bool place_is_name(const char *name);
