/* A file operation in the sandbox of a path, for a call.
 *
 *   file_begin: the path's sandbox --> begin: an operation of its agent --> file_done, file_fail
 *
 * A request for a sandbox cannot be taken back. If the call is abandoned meanwhile, the file_work
 * stays until the sandbox comes, and is freed then. */
#pragma once

#include "front/core/call.h"
#include "front/mcp/call.h"

#define FILE_USER "user"

struct file_work {
    struct mcp_call *c; /* NULL: abandoned */
    struct front *front;
    struct store_tenant tenant;
    struct sandbox *sandbox; /* a reference; NULL until there is one */
    struct call call;
    char path[OPS_PATH_MAX];
    /* Set by the tool. `begin` begins its operation. */
    void (*begin)(struct file_work *w);
    struct strbuf bytes; /* of the file, or of the list as text */
    struct strbuf data;  /* the list as data */
};

struct file_entry {
    const char *name, *path, *target;
    uint32_t type; /* enum entry_type */
    uint64_t size;
    int64_t mtime_ms;
};

/* Reads the argument `path` and asks for the sandbox. `w` is on the heap, and the first member of
 * the tool's own struct. If an argument is wrong, the call is answered and `w` is freed. */
void file_begin(struct mcp_call *c, struct file_work *w, const char *default_path);
/* The callbacks of w->call must be set. If the operation cannot begin, the call is answered and `w`
 * is freed. The request begins with FILE_USER and w->path: file_request. */
void file_call(struct file_work *w, enum chan_op op, const struct strbuf *request);
struct strbuf file_request(const struct file_work *w);
/* The same for what call_begin and its like return. */
void file_begun(struct file_work *w, int r, const struct sg_error *e);
void file_done(struct file_work *w, struct result *r);
/* `status` is as in front/core/call.h. */
void file_fail(struct file_work *w, int status, const char *message);
/* False: the bytes are no entry. */
bool file_entry_read(const void *p, size_t len, struct file_entry *ret);
