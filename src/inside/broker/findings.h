/* What was found when a sandbox was looked at: the report of TWIN_HOLD (twin.h). Names of files and
 * programs are whatever somebody inside chose; the writer of JSON (lib/text/json.h) bears that.
 * What does not fit is counted. */
#pragma once

#include "lib/base/err.h"
#include "lib/text/strbuf.h"
#include "inside/broker/procfs.h"

struct findings {
    struct strbuf kernels, in_the_way; /* lists */
    struct strbuf files, dropped;      /* of the kernel that is being looked at */
    struct strbuf written;             /* paths, each with its NUL */
    size_t n_in_the_way, more;
};

void findings_init(struct findings *f);
void findings_done(struct findings *f);

/* Whom it is about. */
struct findings_who {
    int dir; /* its directory in /proc; -1: it is gone */
    pid_t inside;
};
/* Something is in the way of a copy. holds: bytes, or NULL. */
struct finding {
    const char *what, *holds, *remedy;
};
void findings_in_the_way(struct findings *f, const struct findings_who *who,
                         const struct finding *one);

/* A kernel that will be copied, and its descriptors from 4 on. */
void findings_kernel_begin(struct findings *f);
void findings_file(struct findings *f, int fd, const char *path, int64_t offset);
/* One that it may write to. */
void findings_written(struct findings *f, const char *path);
void findings_dropped(struct findings *f, int fd, const char *what);
void findings_kernel_end(struct findings *f, pid_t inside);

/* Sealed: the report, and the paths of files that kernels may write to (TWIN_HOLD). */
int findings_report(struct findings *f, int *ret_memfd, struct sg_error *e);
int findings_written_list(struct findings *f, int *ret_memfd, struct sg_error *e);
