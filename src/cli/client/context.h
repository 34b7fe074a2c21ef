/* The files of a build: a directory, without what its .dockerignore names, and what each COPY takes
 * of it, hashed and packed.
 *
 * Nothing outside of the directory is ever read: a link is packed as a link, and a source that is
 * one itself is followed within the directory. */
#pragma once

#include <sys/types.h>

#include "cli/client/ignore.h"
#include "cli/client/recipe.h"

struct context {
    int fd;
    const char *dir; /* for messages */
    struct ignore ignore;
};

/* ignore_name: a file with rules beside the Dockerfile, "" or such as "app.dockerignore", tried before
 * ".dockerignore". */
int context_open(const char *dir, const char *ignore_name, struct context *ret, struct sg_error *e);
void context_done(struct context *c);

struct context_file {
    char *name; /* in the archive */
    char *path; /* in the context */
    char *link; /* of a link, else NULL */
    mode_t mode;
    uint64_t size;
    int64_t mtime;
};

#define CONTEXT_HASH 64

/* What one COPY takes. */
struct context_files {
    const struct context *context;
    const struct recipe_copy *copy;
    struct context_file *files;
    size_t n, cap;
    size_t itself; /* how many of them are sources, not below one */
    uint64_t bytes;
    const char *source; /* as the step names it: the one file, or "." for a directory's content */
    char hash[CONTEXT_HASH + 1]; /* of names, kinds, modes, contents; not of times */
};
int context_collect(const struct context *c, const struct recipe_copy *copy,
                    struct context_files *ret, struct sg_error *e);
void context_files_done(struct context_files *f);
/* A tar.gz of them, in a file without a name. */
int context_pack(const struct context_files *f, int *ret_fd, uint64_t *ret_size,
                 struct sg_error *e);
