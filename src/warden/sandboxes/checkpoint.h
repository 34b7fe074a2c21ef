/* Moments: what a sandbox was at one time, under a name (ORDER_CHECKPOINT). Its files are a stack
 * of layers over the layer that it was made from, its kernels a set of frozen kernels of the
 * tenant's broker.
 *
 *             sandbox_checkpoint               checkpoint_forget, or its sandbox ends (without
 * keep) (nothing) ----------------> named, used ------------------------------------------------>
 * used |   the set of frozen kernels ends                                          |
 *                                  +--> the files alone          the last user lets go:  gone <+
 *
 * Users are sandboxes that are being made from it, and the name. A sandbox that is made has the
 * layers itself. */
#pragma once

#include "lib/base/ids.h"
#include "wire/warden.h"

struct server;
struct tenant_pool;
struct snapshot;
struct stack;
struct ticket;
struct fork_start;

struct checkpoint {
    struct checkpoint *next;
    struct server *server;
    char name[ID_LEN + 1]; /* "": it has none any more */
    char tenant[ORDER_TENANT_LEN + 1];
    char sandbox[ID_LEN + 1]; /* whose it is; "": that is gone */
    unsigned users;
    bool keep;                 /* also when that is gone */
    struct snapshot *snapshot; /* or NULL */
    struct stack *stack;
    struct tenant_pool *tenant_pool; /* that has the set of frozen kernels; NULL: no kernels */
    uint64_t frozen_kernels;
    int32_t kernels[ORDER_KERNELS_MAX]; /* of it, as they were called inside */
    size_t n_kernels;
    uint64_t memory_bytes; /* that they had */
    struct fork_start
        *fork_start; /* for the first sandbox that is made from it; NULL: none is ready */
    int written;     /* paths, a memfd: see instance_files_freeze; -1: none */
    int note;        /* the front's */
};

/* Used once, by the caller, and without a name yet. */
struct checkpoint *checkpoint_new(struct server *s, const char *tenant, const char *sandbox);
/* From now on it can be found. */
void checkpoint_name(struct checkpoint *m, const char *name);
struct checkpoint *checkpoint_find(struct server *s, const char *name);
struct checkpoint *checkpoint_use(struct checkpoint *m);
void checkpoint_release(struct checkpoint *m); /* NULL is allowed */
void checkpoint_forget(struct checkpoint *m);
/* Its set of frozen kernels is there, and the tenant pool keeps it. */
void checkpoint_has_frozen_kernels(struct checkpoint *m, struct tenant_pool *w,
                                   uint64_t frozen_kernels);
/* ORDER_SAVE. */
void checkpoint_save(struct checkpoint *m, const struct ticket *t);
/* It is a sandbox's own now, or has ended. */
void checkpoint_without_frozen_kernels(struct checkpoint *m);

/* A set of frozen kernels of the tenant pool has ended (0: all have). The front is told. */
void checkpoints_lost(struct server *s, struct tenant_pool *w, uint64_t frozen_kernels);
/* The zygote's home has ended, and with it the sets of frozen kernels in its group: those that were
 * to be kept. */
void checkpoints_home_gone(struct server *s, struct tenant_pool *w);
/* The oldest that has kernels, and of which nothing is being made, loses them: memory is short. The
 * front is told. False: there is none. */
bool checkpoints_let_go(struct server *s);
/* A sandbox has ended. */
void checkpoints_sandbox_gone(struct server *s, const char *sandbox);
/* For a new front. */
void checkpoints_introduce(struct server *s);
void checkpoints_close(struct server *s);
