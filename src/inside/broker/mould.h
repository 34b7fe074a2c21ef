/* A mould: copies of the kernels of a sandbox, all of one moment, that stand still and from which
 * kernels are made. Each is a copy of a kernel's H, made while its K stood still, so it has K's
 * memory; K's registers and what it had open are noted beside it.
 *
 * Nobody but us has the memory of a mould: what was checked in it stays true. Memory that K shares
 * with its children is replaced by memory of the mould's own, with the same contents, and so it is
 * in each copy of the mould. */
#pragma once

#include "inside/stage/seccomp.h"
#include "inside/broker/look.h"
#include "inside/broker/source.h"

struct mould_kernel {
    struct mould_kernel *next;
    pid_t was; /* as K is called in its sandbox */
    struct source source;
    struct visit visit;         /* opens what K had open */
    struct look_shared *shared; /* NULL: none */
};

struct mould {
    struct mould *next;
    uint64_t number, owner;
    struct mould_kernel *kernels;
};

struct mould *mould_new(uint64_t number, uint64_t owner);
/* Kills what is left of it; it is reaped with all that ends. */
void mould_end(struct mould *m);

/* What a kernel of it is made from. */
struct mould_spec {
    pid_t h;
    const struct subject *k;
    const struct cpu_state *state; /* of K, inside its read */
    uint64_t call_at;
    uint64_t tid; /* see struct source_thread */
    const struct luggage *luggage;
    const struct look_shared *shared;
    int door; /* of a memory group to be in, or -1: that of H */
};
/* -ESRCH: H did what it was not told to, and is dead. Else H is as before. */
int mould_add(struct mould *m, const struct mould_spec *spec, struct sg_error *e);
/* Before a kernel is made from it: the tables, which are there afterwards. */
int mould_prepare(struct mould_kernel *k, uint32_t n_doors, const struct seccomp_prog *filter,
                  struct sg_error *e);

/* A copy of it, or with `last` itself: the H of a kernel to be made. */
int mould_copy(struct mould_kernel *k, bool last, pid_t *ret, struct sg_error *e);

struct mould *mould_find(struct mould *list, uint64_t number);
struct mould_kernel *mould_kernel_of(struct mould *m, pid_t was);
/* Takes a kernel out of it, whose process is another's from now on, or dead. */
void mould_remove(struct mould *m, struct mould_kernel *k);
/* The mould of the list that the process belongs to, or NULL. */
struct mould *mould_of(struct mould *list, pid_t pid);
