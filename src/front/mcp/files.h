/* A file operation in the sandbox of a path, for a call.
 *
 *   file_begin: the path's sandbox --> begin: an operation of its agent --> file_done, file_fail
 *
 * The sandbox cannot be un-asked for: a call that is abandoned meanwhile leaves its work behind,
 * which ends when the sandbox is there. */
#pragma once

#include "front/core/call.h"
#include "front/mcp/call.h"

#define FILE_USER "user"

struct file_work {
    struct mcp_call *c; /* NULL: abandoned */
    struct front *front;
    struct store_tenant tenant;
    struct sandbox *sandbox; /* held; NULL until it is there */
    struct call call;
    char path[OPS_PATH_MAX];
    /* The tool's: begins its operation with file_call; frees what is its own. */
    void (*begin)(struct file_work *w);
    void (*drop)(struct file_work *w);
};

struct file_entry {
    const char *name, *path, *target;
    uint32_t type; /* enum entry_type */
    uint64_t size;
    int64_t mtime_ms;
};

/* Reads the argument `path`; w is the first member of the tool's own, and on the heap. Frees it if
 * that fails, which was answered then. `known`: the names of all arguments. */
void file_begin(struct mcp_call *c, struct file_work *w, const char *const *known, size_t n_known,
                const char *default_path);
/* Callbacks of w->call must be set. False: it failed, which was answered, and w is gone. */
bool file_call(struct file_work *w, enum chan_op op, const struct strbuf *request);
void file_done(struct file_work *w, struct result *r);
/* status as in front/core/call.h. */
void file_fail(struct file_work *w, int status, const char *message);
/* False: it is none. */
bool file_entry_read(const void *p, size_t len, struct file_entry *ret);
