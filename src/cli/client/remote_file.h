/* Files of a sandbox: lists them, and streams their bytes. */
#pragma once

#include "cli/client/sandbox.h"
#include "cli/client/progress.h"

#define REMOTE_SIZE_UNKNOWN UINT64_MAX

enum remote_type { REMOTE_OTHER, REMOTE_FILE, REMOTE_DIR };

struct remote_entry {
    enum remote_type type; /* for a link, the type of its target */
    bool is_link;
    uint64_t size;
    unsigned mode; /* permissions */
    const char *name;
};

/* Reads and writes are done as the sandbox's user `user`. */
struct remote {
    struct sandbox *sandbox;
    const char *user; /* NULL: the sandbox's default */
    struct progress *progress;
};

/* Looks at one file. -ENOENT if it does not exist. The entry's name is not filled in. */
int remote_stat(struct remote *r, const char *path, struct remote_entry *ret, struct sg_error *e);
/* Calls fn for each entry of a directory. */
int remote_list(struct remote *r, const char *path,
                int (*fn)(void *arg, const struct remote_entry *entry, struct sg_error *e),
                void *arg, struct sg_error *e);
/* Makes a directory and its parents. A directory that exists is fine. */
int remote_make_dir(struct remote *r, const char *path, struct sg_error *e);

/* Writes a file from fd: `size` bytes, or up to fd's end. Missing parents are made. */
int remote_upload(struct remote *r, const char *path, int fd, uint64_t size, struct sg_error *e);
/* Reads a file to fd. Nothing is written if the server refuses. */
int remote_download(struct remote *r, const char *path, int fd, struct sg_error *e);
