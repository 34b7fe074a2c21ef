/* Metadata of files: what the host keeps with them, as extended attributes that programs inside can
 * read and set too. So what is read here is bounded, whatever they made of it: what does not fit
 * into FILE_META_MAX, or is no text, is left out.
 *
 * Call these between confine_fs_begin and confine_fs_end, but for meta_read. */
#pragma once

#include "inside/agent/agent.h"
#include "wire/agent.h"
#include "lib/channel/wire.h"

struct meta {
    uint32_t n;
    struct {
        const char *key, *value; /* in the request */
    } v[FILE_META_KEYS_MAX];
};

/* From a request, which must outlive *ret. */
int meta_read(struct wire_reader *r, struct meta *ret, struct sg_error *e);
/* Of a file that has none yet. 0, -EOPNOTSUPP if the file system cannot keep them, or another
 * -errno. */
int meta_set(int fd, const struct meta *m);
/* Appends that of any open file, O_PATH included, in wire form. */
void meta_put(struct strbuf *out, int fd);
/* From one file to another. As meta_set. */
int meta_copy(int from, int to);
