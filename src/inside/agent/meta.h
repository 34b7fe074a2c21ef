/* Metadata that the host keeps with files, as extended attributes. Programs inside can read and set
 * these attributes too, so reading is bounded: entries beyond FILE_META_MAX, and entries that are
 * not text, are left out.
 *
 * Call these between confine_fs_begin and confine_fs_end, except meta_read. */
#pragma once

#include "inside/agent/agent.h"
#include "wire/agent.h"
#include "lib/channel/wire.h"

struct meta {
    uint32_t n;
    struct {
        const char *key, *value; /* they point into the request */
    } v[FILE_META_KEYS_MAX];
};

/* Reads metadata from a request, which must outlive *ret. */
int meta_read(struct wire_reader *r, struct meta *ret, struct sg_error *e);
/* Sets the metadata of a file that has none yet. 0, -EOPNOTSUPP if the file system cannot keep it,
 * or another -errno. */
int meta_set(int fd, const struct meta *m);
/* Removes all metadata. */
void meta_clear(int fd);
/* Appends the metadata of an open file, O_PATH included, in wire form. */
void meta_put(struct strbuf *out, int fd);
/* Copies the metadata from one file to another. Returns as meta_set does. */
int meta_copy(int from, int to);
