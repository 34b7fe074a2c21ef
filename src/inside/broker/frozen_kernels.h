/* A set of frozen kernels: copies of all kernels of a sandbox, taken at the same time. The copies
 * stand still, and kernels are made from them. Each one is a copy of a kernel's H, made while its K
 * stood still, so it has K's memory. Beside it stand K's registers and the files that K had open.
 * twin.h explains H and K.
 *
 * Nobody but the broker has the memory of a frozen kernel, so whatever was checked there stays
 * true. If K shares memory with its children, the frozen kernel gets memory of its own with the
 * same contents, and so does every copy of it. */
#pragma once

#include "lib/base/list.h"
#include "inside/stage/seccomp.h"
#include "inside/broker/look.h"
#include "inside/broker/source.h"

struct frozen_kernel {
    struct list link;
    pid_t was; /* K's pid inside its sandbox */
    struct source source;
    struct remote_calls remote_calls; /* the calls that open K's files again */
    struct look_shared *shared;       /* memory that each copy must get anew; NULL: none */
};

struct frozen_kernels {
    struct list link;
    uint64_t number, owner;
    struct list kernels; /* of struct frozen_kernel */
};

struct frozen_kernels *frozen_kernels_new(uint64_t number, uint64_t owner);
/* Kills the processes of the set. The broker reaps them like all others. */
void frozen_kernels_end(struct frozen_kernels *m);

/* The source of a frozen kernel. */
struct frozen_kernels_spec {
    pid_t h;
    const struct inspected *k;
    const struct cpu_state *state; /* of K, inside its read */
    uint64_t call_at;
    uint64_t tid; /* see struct source_thread */
    const struct open_files *open_files;
    const struct look_shared *shared;
    int door; /* door of the memory group that the copy joins; -1: it stays in that of H */
};
/* -ESRCH: H did something that it was not told to do, and was killed. Otherwise H is as before. */
int frozen_kernels_add(struct frozen_kernels *m, const struct frozen_kernels_spec *spec,
                       struct sg_error *e);
/* Installs the tables in the frozen kernel, once. Call it before a kernel is made from it. */
int frozen_kernels_prepare(struct frozen_kernel *k, uint32_t n_doors,
                           const struct seccomp_prog *filter, struct sg_error *e);

/* Gives the H for a new kernel: a copy of the frozen kernel, or with `last` the frozen kernel
 * itself. */
int frozen_kernels_copy(struct frozen_kernel *k, bool last, pid_t *ret, struct sg_error *e);

struct frozen_kernels *frozen_kernels_find(const struct list *sets, uint64_t number);
struct frozen_kernel *frozen_kernel_of(struct frozen_kernels *m, pid_t was);
/* Takes a frozen kernel out of its set: its process now belongs to somebody else, or is dead. */
void frozen_kernel_remove(struct frozen_kernel *k);
/* The set that the process belongs to, or NULL. */
struct frozen_kernels *frozen_kernels_of(const struct list *sets, pid_t pid);
