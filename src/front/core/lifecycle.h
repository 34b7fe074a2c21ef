/* What the parts of the front that keep sandboxes share: sandboxes.c, lifecycle.c, link.c. */
#pragma once

#include "front/core/sandbox.h"

/* sandboxes.c. The table holds a reference; sandbox_new gives one to the caller and empties spec.
 */
struct sandbox *sandbox_new(struct front *f, const char *id, struct sandbox_spec *spec);
void sandboxes_add(struct sandbox *b);
void sandboxes_remove(struct sandbox *b);

/* lifecycle.c. An order about a sandbox, with what orders about it have in common. */
void sandbox_order(const struct sandbox *b, enum order_op op, struct order *ret);
/* One that is made: as sandbox_create, and what sandboxes from checkpoints have besides. */
struct sandbox_make {
    const char *snapshot; /* or NULL */
    uint64_t timeout_ms;
    uint32_t flags;        /* ORDER_STATE, ORDER_LAST */
    const char *came_from; /* a checkpoint; NULL: none */
    bool closed;           /* nothing goes out yet, whatever its policy says */
};
void sandbox_make(struct front *f, struct sandbox_spec *spec, const struct sandbox_make *m,
                  sandbox_done done, void *arg);
/* checkpoint_use.c: sandbox_create from a snapshot whose kernels are there. False: it is none. */
bool sandbox_create_warm(struct front *f, struct sandbox_spec *spec, const char *snapshot,
                         uint64_t timeout_ms, sandbox_done done, void *arg);
/* A transition is over: lets those who waited look again. They may begin the next one. */
void sandbox_settled(struct sandbox *b);
/* What the warden tells. They take the descriptors over. */
void sandbox_told_sandbox(struct front *f, const struct order_answer *a, int note_fd,
                          int channel_fd);
void sandbox_told_ended(struct front *f, const struct order_answer *a);
void sandbox_told_paused(struct front *f, const struct order_answer *a);
