/* Whether a sandbox that stands still can be copied, and what its kernels have with them.
 *
 * Its files are about to be frozen under everybody who runs there. A kernel's directory and the
 * regular files it has open can be opened again, in the sandbox as in a copy. All else that writes
 * to files, by a descriptor or by memory, cannot be taken along and is in the way. Whoever only
 * reads is not: in the sandbox it goes on reading what was frozen, which is what is there.
 *
 * What this does not see the kernel does: the frozen files are made read-only, and that fails while
 * anybody has one open for writing. */
#pragma once

#include "inside/broker/findings.h"
#include "inside/broker/open_files.h"
#include "inside/broker/mapping.h"

/* The sandbox's files. */
struct view {
    int root;
    struct procfs_process at;
    uint64_t mounts[3];   /* that show them */
    uint64_t deadline_ns; /* of all the looking: who has very much open is in the way then */
};
int view_learn(int root, struct view *ret);

/* A process of it, stopped. */
struct inspected {
    pid_t pid, inside;
    int dir; /* in /proc; -1: none */
    struct procfs_status status;
};

/* Memory that it shares with nobody outside, but that a copy would share with it. */
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

/* A kernel that is idle. What is in the way is added to the findings; without that, *ret is what
 * its copies need. 0 or -errno. */
int look_at_kernel(const struct view *s, const struct inspected *who, struct findings *f,
                   struct open_files *ret, struct look_shared *ret_shared);
/* Anybody else. *ret_cwd: the directory to be put into again, or NULL. */
int look_at_other(const struct view *s, const struct inspected *who, struct findings *f,
                  char **ret_cwd);
