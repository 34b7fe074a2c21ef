/* Whether a sandbox that stands still can be copied, and which files its kernels have open.
 *
 * The sandbox's files are about to be frozen under every process that runs there. A kernel's
 * directory and its open regular files can be opened again, in the sandbox and in a copy. Any other
 * process that writes to files, by a descriptor or by a mapping, cannot be taken along and is in
 * the way. A process that only reads is not: it goes on reading the frozen files, which are what
 * the sandbox still shows.
 *
 * If this check misses a writer, Linux finds it: freezing makes the files read-only, and that fails
 * while anybody has one open for writing. */
#pragma once

#include "inside/broker/findings.h"
#include "inside/broker/open_files.h"
#include "inside/broker/mapping.h"

/* The files of a sandbox, as its processes see them. */
struct view {
    int root;
    struct procfs_process at;
    uint64_t mounts[3];   /* the ids of the mounts that show these files */
    unsigned filters;     /* system-call filters of a program that has none of its own */
    uint64_t deadline_ns; /* for looking at everybody: a process that has too much open by then is
                           * in the way */
};
int view_learn(int root, struct view *ret);

/* Memory that a kernel shares with nobody outside, but that a plain copy would share with it. */
#define LOOK_SHARED_MAX       256
#define LOOK_SHARED_BYTES_MAX (256ull << 20)
struct look_shared {
    struct {
        uint64_t start, len;
        int prot;
    } all[LOOK_SHARED_MAX];
    size_t n;
    uint64_t bytes;
};

/* Looks at an idle kernel. Adds to the findings whatever is in the way; if nothing is, *ret and
 * *ret_shared have what copies of the kernel need. 0 or -errno. */
int look_at_kernel(const struct view *s, const struct inspected *who, struct findings *f,
                   struct open_files *ret, struct look_shared *ret_shared);
/* Looks at any other process. *ret_cwd: the directory to put it into again, or NULL. */
int look_at_other(const struct view *s, const struct inspected *who, struct findings *f,
                  char **ret_cwd);
