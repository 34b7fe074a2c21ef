/* The broker's findings about a sandbox that stands still: the report of TWIN_HOLD
 * (twin.h). Users inside choose the names of files and programs, so these may be any bytes; the
 * writer of JSON (lib/text/json.h) copes with them. Entries that do not fit are counted. */
#pragma once

#include "lib/base/err.h"
#include "lib/text/strbuf.h"
#include "inside/broker/procfs.h"

struct findings {
    struct strbuf kernels, in_the_way; /* JSON lists */
    struct strbuf files, dropped;      /* of the kernel that is being looked at */
    struct strbuf written;             /* paths, each ending in NUL */
    const char *first; /* `what` of the first thing that is in the way; NULL: nothing is */
    size_t n_in_the_way, more;
};

void findings_init(struct findings *f);
void findings_done(struct findings *f);

/* A stopped process of the sandbox. */
struct inspected {
    pid_t pid, inside;
    int dir; /* in /proc; -1: none */
    struct procfs_status status;
};
/* Something prevents a copy. who: the process that it is about. holds: what the process has, any
 * bytes; or NULL. */
void findings_in_the_way(struct findings *f, const struct inspected *who, const char *what,
                         const char *holds, const char *remedy);

/* A kernel that will be copied, and its descriptors from number 4 on. */
void findings_kernel_begin(struct findings *f);
void findings_file(struct findings *f, int fd, const char *path, int64_t offset);
/* A file that the kernel may write to. */
void findings_written(struct findings *f, const char *path);
void findings_dropped(struct findings *f, int fd, const char *what);
void findings_kernel_end(struct findings *f, pid_t inside);

/* The report, and the list of the files that kernels may write to (TWIN_HOLD), each as a sealed
 * memfd. */
int findings_report(struct findings *f, int *ret_memfd, struct sg_error *e);
int findings_written_list(struct findings *f, int *ret_memfd, struct sg_error *e);
