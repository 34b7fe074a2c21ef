/* Moments: what a sandbox was at one time, under a name (ORDER_CHECKPOINT). Its files are a stack
 * of strata over the layer that it was made from, its kernels a mould of the tenant's broker.
 *
 *             guest_checkpoint               moment_forget, or its sandbox ends (without keep)
 *   (nothing) ----------------> named, used ------------------------------------------------> used
 *                                  |   the mould ends                                          |
 *                                  +--> the files alone          the last user lets go:  gone <+
 *
 * Users are sandboxes that are being made from it, and the name. A sandbox that is made has the
 * strata itself. */
#pragma once

#include "lib/base/ids.h"
#include "wire/warden.h"

struct server;
struct ward;
struct layer;
struct stack;
struct ticket;
struct unborn;

struct moment {
    struct moment *next;
    struct server *server;
    char name[ID_LEN + 1]; /* "": it has none any more */
    char tenant[ORDER_TENANT_LEN + 1];
    char guest[ID_LEN + 1]; /* whose it is; "": that is gone */
    unsigned users;
    bool keep;           /* also when that is gone */
    struct layer *layer; /* or NULL */
    struct stack *stack;
    struct ward *ward; /* that has the mould; NULL: no kernels */
    uint64_t mould;
    int32_t kernels[ORDER_KERNELS_MAX]; /* of it, as they were called inside */
    size_t n_kernels;
    uint64_t memory_bytes; /* that they had */
    struct unborn *unborn; /* for the first sandbox that is made from it; NULL: none is ready */
    int written;           /* paths, a memfd: see instance_files_freeze; -1: none */
    int note;              /* the front's */
};

/* Used once, by the caller, and without a name yet. */
struct moment *moment_new(struct server *s, const char *tenant, const char *guest);
/* From now on it can be found. */
void moment_name(struct moment *m, const char *name);
struct moment *moment_find(struct server *s, const char *name);
struct moment *moment_use(struct moment *m);
void moment_release(struct moment *m); /* NULL is allowed */
void moment_forget(struct moment *m);
/* Its mould is there, and the ward keeps it. */
void moment_has_mould(struct moment *m, struct ward *w, uint64_t mould);
/* ORDER_SAVE. */
void moment_save(struct moment *m, const struct ticket *t);
/* It is a sandbox's own now, or has ended. */
void moment_without_mould(struct moment *m);

/* A mould of the ward has ended (0: all have). The front is told. */
void moments_lost(struct server *s, struct ward *w, uint64_t mould);
/* The zygote's home has ended, and with it the moulds in its group: those that were to be kept. */
void moments_home_gone(struct server *s, struct ward *w);
/* The oldest that has kernels, and of which nothing is being made, loses them: memory is short. The
 * front is told. False: there is none. */
bool moments_let_go(struct server *s);
/* A sandbox has ended. */
void moments_guest_gone(struct server *s, const char *guest);
/* For a new front. */
void moments_introduce(struct server *s);
void moments_close(struct server *s);
