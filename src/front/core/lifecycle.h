/* Declarations that sandboxes.c, lifecycle.c, link.c and the files of checkpoints share. */
#pragma once

#include "front/core/sandbox.h"

/* sandboxes.c. The table holds a reference of its own; sandbox_new gives one to the caller, moves
 * the contents of spec into the sandbox and leaves spec empty. */
struct sandbox *sandbox_new(struct front *f, const char *id, struct sandbox_spec *spec);
void sandboxes_add(struct sandbox *b);
void sandboxes_remove(struct sandbox *b);

/* lifecycle.c. Begins an order about a sandbox: fills the fields that all such orders share. */
struct order sandbox_order(const struct sandbox *b, enum order_op op);
/* making.c. How a sandbox is made: the arguments of sandbox_create, and more for sandboxes from
 * checkpoints. */
struct sandbox_make {
    const char *snapshot; /* or NULL */
    uint64_t timeout_ms;
    uint32_t flags;        /* ORDER_STATE, ORDER_LAST */
    const char *came_from; /* a checkpoint; NULL: none */
    bool closed;           /* nothing goes out yet, whatever the policy says */
};
void sandbox_make(struct front *f, struct sandbox_spec *spec, const struct sandbox_make *m,
                  sandbox_done done, void *arg);
/* checkpoint_use.c: does the work of sandbox_create for a snapshot that has kernels. Returns false,
 * and does nothing, if the snapshot has none. */
bool sandbox_create_warm(struct front *f, struct sandbox_spec *spec, const char *snapshot,
                         uint64_t timeout_ms, sandbox_done done, void *arg);
/* lifecycle.c. A transition is over: calls everybody who waited for it. They may begin the next transition. */
void sandbox_settled(struct sandbox *b);
/* Messages of the warden: a sandbox exists, has ended, was paused. The descriptors are taken
 * over. */
void sandbox_told_sandbox(struct front *f, const struct order_answer *a, int note_fd,
                          int channel_fd);
void sandbox_told_ended(struct front *f, const struct order_answer *a);
void sandbox_told_paused(struct front *f, const struct order_answer *a);
