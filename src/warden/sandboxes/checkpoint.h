/* Checkpoints: files and kernels of a sandbox at one time, under a name (ORDER_CHECKPOINT). The
 * files are a layer stack over the snapshot that the sandbox was made from; the kernels are a set
 * of frozen kernels of the tenant's broker.
 *
 *             sandbox_checkpoint           checkpoint_forget, or its sandbox ends (not `keep`)
 *   (nothing) ------------------> named -------------------------------------------> nameless
 *                                   |                                                   |
 *                                   | its frozen kernels end                            | the last
 *                                   v                                                   v user goes
 *                              files only                                             gone
 *
 * The users of a checkpoint are its name, and every sandbox that is being made from it. A sandbox
 * that has been made holds the layers itself, and is a user no more. */
#pragma once

#include "lib/base/ids.h"
#include "lib/base/list.h"
#include "wire/warden.h"

struct server;
struct tenant_pool;
struct snapshot;
struct stack;
struct ticket;
struct fork_start;

struct checkpoint {
    struct list link;
    struct server *server;
    char name[ID_LEN + 1]; /* "": not named yet, or forgotten */
    char tenant[ORDER_TENANT_LEN + 1];
    char sandbox[ID_LEN + 1]; /* the sandbox it was made of; "": that has ended */
    unsigned users;
    bool keep;                 /* keep it when that sandbox ends */
    struct snapshot *snapshot; /* or NULL */
    struct stack *stack;
    struct tenant_pool *tenant_pool; /* whose broker has the frozen kernels; NULL: no kernels */
    uint64_t frozen_kernels;
    int32_t kernels[ORDER_KERNELS_MAX]; /* their pids inside the sandbox */
    size_t n_kernels;
    uint64_t memory_bytes; /* that the kernels used */
    struct fork_start
        *fork_start; /* for the first sandbox that is made from it; NULL: none is ready */
    int written;     /* memfd: paths open for writing, see instance_files_freeze; -1: none */
    int note;        /* memfd that the front keeps with it */
};

/* A new checkpoint without a name. The caller is its one user. */
struct checkpoint *checkpoint_new(struct server *s, const char *tenant, const char *sandbox);
/* Gives the checkpoint its name: from now on checkpoint_find finds it. */
void checkpoint_name(struct checkpoint *m, const char *name);
struct checkpoint *checkpoint_find(struct server *s, const char *name);
struct checkpoint *checkpoint_use(struct checkpoint *m);
void checkpoint_release(struct checkpoint *m); /* NULL is allowed */
void checkpoint_forget(struct checkpoint *m);
/* The broker of this tenant pool has made the checkpoint's frozen kernels, and keeps them. */
void checkpoint_has_frozen_kernels(struct checkpoint *m, struct tenant_pool *w,
                                   uint64_t frozen_kernels);
/* ORDER_SAVE: writes the checkpoint's files as a snapshot. */
void checkpoint_save(struct checkpoint *m, const struct ticket *t);
/* The checkpoint has no frozen kernels any more: they became a sandbox's own, or have ended. */
void checkpoint_without_frozen_kernels(struct checkpoint *m);

/* A set of frozen kernels of the tenant pool has ended (0: all have). Tells the front. */
void checkpoints_lost(struct server *s, struct tenant_pool *w, uint64_t frozen_kernels);
/* The zygote's home has ended, and with it the frozen kernels in its control group: those of
 * checkpoints that were to be kept. */
void checkpoints_home_gone(struct server *s, struct tenant_pool *w);
/* Memory is short: drops the kernels of the oldest checkpoint that has kernels and that no sandbox
 * is being made from. Tells the front. False: there is no such checkpoint. */
bool checkpoints_let_go(struct server *s);
/* A sandbox has ended: drops its checkpoints, but for those that are to be kept. */
void checkpoints_sandbox_gone(struct server *s, const char *sandbox);
/* Tells a new front of all checkpoints. */
void checkpoints_introduce(struct server *s);
void checkpoints_close(struct server *s);
