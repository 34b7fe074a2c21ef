/* The operator's policy: what may run without --approve, as a file of lines.
 *
 *     mount-root PATH          a directory below which mounts may lie (repeatable; replaces the
 * defaults) allow network            network access needs no approval allow writable-mounts
 * read-write mounts need no approval # ...                    a comment */
#pragma once

#include "lib/base/err.h"

#define POLICY_FILE_DEFAULT "/etc/sandglass/policy"
#define POLICY_ROOTS_MAX    64

struct policy_file {
    struct sg_policy policy; /* ready to be given to the library */
    char *roots[POLICY_ROOTS_MAX + 1];
    size_t n_roots;
};

/* `text` is changed; `path` opens the error message. */
int policy_file_parse(struct policy_file *p, const char *path, char *text, struct sg_error *e);
/* path NULL: POLICY_FILE_DEFAULT if it is there, and the built-in defaults if not. A file that
 * others than its owner root can write is refused: it decides what runs unasked. */
int policy_file_load(struct policy_file *p, const char *path, struct sg_error *e);
void policy_file_done(struct policy_file *p);
