/* Makes a kernel, a pair (H, K), from a held zygote or from a set of frozen kernels. twin.h has the
 * steps. */
#pragma once

#include "inside/broker/zygote.h"

struct kernel {
    pid_t h, k;     /* as seen in W; a plain kernel has no H, and h is k */
    pid_t k_inside; /* as seen in its sandbox */
};

/* Copies the zygote for the next kernel ahead of need, because copying its page tables is most of
 * the time that a kernel takes. The zygote must be held and have no such copy. */
void kernel_copy_ahead(struct zygote *z);
/* fds: TWIN_KERNEL_FDS, then the doors, then the broker's own pid namespace; they stay the
 * caller's. On failure nothing is left of the kernel. */
int kernel_make(struct zygote *z, const struct chute *c, const struct twin_request *q,
                const int *fds, struct kernel *ret, struct sg_error *e);
/* The same from a source that has its tables. h is a copy of the source, or the source itself; on
 * failure it is killed. */
int kernel_make_from(const struct source *s, pid_t h, const struct chute *c,
                     const struct twin_request *q, const int *fds, struct kernel *ret,
                     struct sg_error *e);

/* fresh.c: makes a kernel in which the interpreter starts; q has TWIN_FRESH. filter: of every program inside. */
int kernel_make_fresh(const struct chute *c, const struct twin_request *q, const int *fds,
                      const struct seccomp_prog *filter, struct kernel *ret, struct sg_error *e);
/* plain.c: for a plain zygote, which forks itself. */
int kernel_make_plain(struct zygote *z, const struct twin_request *q, const int *fds,
                      struct kernel *ret, struct sg_error *e);
