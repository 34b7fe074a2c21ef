/* Extended headers of tar in the pax form: records "LENGTH KEY=VALUE\n", of which later ones count.
 *
 * Taken: path, linkpath, size, uid, gid, mtime, and SCHILY.xattr.* as attrs.h says. GNU's keys for sparse
 * files are refused: their contents are not what the file's are. All others say nothing about a world. */
#pragma once

#include "image/attrs.h"

enum pax_field {
    PAX_PATH = 1 << 0,
    PAX_LINK = 1 << 1,
    PAX_SIZE = 1 << 2,
    PAX_UID = 1 << 3,
    PAX_GID = 1 << 4,
    PAX_MTIME = 1 << 5,
};

struct pax {
    unsigned has; /* enum pax_field */
    char path[IMAGE_PATH_MAX + 1], link[IMAGE_PATH_MAX + 1];
    uint64_t size, uid, gid;
    int64_t mtime;
    uint32_t mtime_ns;
    struct attrs attrs;
};

/* Forgets everything, or takes over what a global header said of all entries. */
void pax_begin(struct pax *p, const struct pax *global);
/* Takes an extended header's text, which is changed. `global`: it is about all entries that follow, and can name none. */
int pax_read(struct pax *p, char *text, size_t len, bool global, const struct image_limits *limits,
             struct sg_error *e);
