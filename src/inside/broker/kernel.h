/* Making a kernel: a pair (H, K) from a held zygote or from a set of frozen kernels, as twin.h
 * tells it. */
#pragma once

#include "inside/broker/zygote.h"

struct kernel {
    pid_t h, k;     /* as seen in W; without a twin, h is k */
    pid_t k_inside; /* as seen in its sandbox */
};

/* Makes the copy for the next kernel ahead of need: most of the time that a kernel takes is for
 * copying the zygote's page tables. For one that is held, and has none. */
void kernel_copy_ahead(struct zygote *z);
/* fds as TWIN_KERNEL_FDS, then doors, then the broker's own pid namespace; they stay the caller's.
 * On failure nothing is left of it. */
int kernel_make(struct zygote *z, const struct chute *c, const struct twin_request *q,
                const int *fds, struct kernel *ret, struct sg_error *e);
/* The same from a source that has its tables. h: a copy of it, or itself; it is killed on failure.
 */
int kernel_make_from(const struct source *s, pid_t h, const struct chute *c,
                     const struct twin_request *q, const int *fds, struct kernel *ret,
                     struct sg_error *e);

/* plain.c: for a zygote that forks itself. */
int kernel_make_plain(struct zygote *z, const struct twin_request *q, const int *fds,
                      struct kernel *ret, struct sg_error *e);
