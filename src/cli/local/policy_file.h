/* The operator's policy: what may run without --approve, as a file of lines.
 *
 *     mount-root PATH          a directory below which mounts may lie; repeatable, replaces the
 *                              built-in roots
 *     allow network            network access needs no approval
 *     allow writable-mounts    read-write mounts need no approval
 *     # ...                    a comment */
#pragma once

#include "lib/base/err.h"

#define POLICY_FILE_DEFAULT "/etc/sandglass/policy"
#define POLICY_ROOTS_MAX    64

struct policy_file {
    struct sg_policy policy; /* ready for the library */
    char *roots[POLICY_ROOTS_MAX + 1];
    size_t n_roots;
};

/* Parses the text of a policy file, and changes it on the way. `path` opens the error message. */
int policy_file_parse(struct policy_file *p, const char *path, char *text, struct sg_error *e);
/* Loads a policy. path NULL: POLICY_FILE_DEFAULT if that file exists, else the built-in defaults.
 * The file decides what runs without a question, so it is refused if anybody but its owner, root,
 * can write it. */
int policy_file_load(struct policy_file *p, const char *path, struct sg_error *e);
void policy_file_done(struct policy_file *p);
