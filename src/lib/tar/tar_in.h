/* Reads a tar archive as its bytes come: POSIX ustar with pax headers, and GNU's long names. An
 * archive is hostile input: numbers, names and headers are checked here, and what names mean is the
 * caller's to decide.
 *
 *   tar_feed --> on_entry, on_data..., on_entry_end --> on_entry ... --> tar_end */
#pragma once

#include "lib/base/err.h"
#include "lib/text/strbuf.h"

#define TAR_BLOCK    512
#define TAR_PATH_MAX 4096 /* with the NUL */

enum tar_type { TAR_FILE, TAR_DIR, TAR_SYMLINK, TAR_HARDLINK };

struct tar_entry {
    enum tar_type type;
    const char *path; /* as it is written: may be absolute, or have ".." in it */
    const char *link; /* target of a link; "" otherwise */
    uint32_t mode;    /* 07777 */
    uint64_t size;    /* of a file */
    /* As the archive has them; 0 if it says nothing that can be read. */
    uint64_t uid, gid;
    int64_t mtime; /* seconds */
};

/* Each may refuse the archive: it returns -errno with e filled, and no callback follows. The texts
 * of an entry are valid until the callback returns. */
struct tar_handlers {
    int (*on_entry)(void *arg, const struct tar_entry *entry, struct sg_error *e);
    int (*on_data)(void *arg, const void *p, size_t len, struct sg_error *e); /* of a file */
    int (*on_entry_end)(void *arg, struct sg_error *e);
};

struct tar_reader {
    const struct tar_handlers *handlers;
    void *arg;
    enum { TAR_AT_HEADER, TAR_AT_BODY, TAR_AT_MORE, TAR_AT_END } at;
    unsigned char block[TAR_BLOCK]; /* a header that has not come whole */
    size_t have;
    uint64_t left;                     /* bytes of the body that have not come */
    unsigned padding;                  /* bytes after it, up to the next block */
    char more_type;                    /* TAR_AT_MORE: of a header that is about the next entry */
    struct strbuf more;                /* ... and its body */
    bool has_path, has_link, has_size; /* such a header gave these for the next entry */
    bool has_uid, has_gid, has_mtime;
    char path[TAR_PATH_MAX], link[TAR_PATH_MAX];
    uint64_t size, uid, gid;
    int64_t mtime;
};

void tar_init(struct tar_reader *t, const struct tar_handlers *handlers, void *arg);
void tar_done(struct tar_reader *t);
/* 0, or -errno: the archive is malformed, or a handler refused it. */
int tar_feed(struct tar_reader *t, const void *p, size_t len, struct sg_error *e);
/* No more bytes come. -EINVAL: the archive ends in the middle of an entry. */
int tar_end(const struct tar_reader *t, struct sg_error *e);
