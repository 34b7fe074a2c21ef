/* A set of frozen kernels: copies of the kernels of a sandbox, all of one moment, that stand still
 * and from which kernels are made. Each is a copy of a kernel's H, made while its K stood still, so
 * it has K's memory; K's registers and what it had open are noted beside it.
 *
 * Nobody but us has the memory of a set of frozen kernels: what was checked in it stays true.
 * Memory that K shares with its children is replaced by memory of the set of frozen kernels's own,
 * with the same contents, and so it is in each copy of the set of frozen kernels. */
#pragma once

#include "inside/stage/seccomp.h"
#include "inside/broker/look.h"
#include "inside/broker/source.h"

struct frozen_kernel {
    struct frozen_kernel *next;
    pid_t was; /* as K is called in its sandbox */
    struct source source;
    struct remote_calls remote_calls; /* opens what K had open */
    struct look_shared *shared;       /* NULL: none */
};

struct frozen_kernels {
    struct frozen_kernels *next;
    uint64_t number, owner;
    struct frozen_kernel *kernels;
};

struct frozen_kernels *frozen_kernels_new(uint64_t number, uint64_t owner);
/* Kills what is left of it; it is reaped with all that ends. */
void frozen_kernels_end(struct frozen_kernels *m);

/* What a kernel of it is made from. */
struct frozen_kernels_spec {
    pid_t h;
    const struct inspected *k;
    const struct cpu_state *state; /* of K, inside its read */
    uint64_t call_at;
    uint64_t tid; /* see struct source_thread */
    const struct open_files *open_files;
    const struct look_shared *shared;
    int door; /* of a memory group to be in, or -1: that of H */
};
/* -ESRCH: H did what it was not told to, and is dead. Else H is as before. */
int frozen_kernels_add(struct frozen_kernels *m, const struct frozen_kernels_spec *spec,
                       struct sg_error *e);
/* Before a kernel is made from it: the tables, which are there afterwards. */
int frozen_kernels_prepare(struct frozen_kernel *k, uint32_t n_doors,
                           const struct seccomp_prog *filter, struct sg_error *e);

/* A copy of it, or with `last` itself: the H of a kernel to be made. */
int frozen_kernels_copy(struct frozen_kernel *k, bool last, pid_t *ret, struct sg_error *e);

struct frozen_kernels *frozen_kernels_find(struct frozen_kernels *list, uint64_t number);
struct frozen_kernel *frozen_kernel_of(struct frozen_kernels *m, pid_t was);
/* Takes a kernel out of it, whose process is another's from now on, or dead. */
void frozen_kernels_remove(struct frozen_kernels *m, struct frozen_kernel *k);
/* The set of frozen kernels of the list that the process belongs to, or NULL. */
struct frozen_kernels *frozen_kernels_of(struct frozen_kernels *list, pid_t pid);
