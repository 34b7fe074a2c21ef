/* What the parts of the front that keep boxes share: boxes.c, lifecycle.c, link.c. */
#pragma once

#include "front/core/box.h"

/* boxes.c. The table holds a reference; box_new gives one to the caller and empties spec. */
struct box *box_new(struct front *f, const char *id, struct box_spec *spec);
void boxes_add(struct box *b);
void boxes_remove(struct box *b);

/* lifecycle.c. An order about a box, with what orders about it have in common. */
void box_order(const struct box *b, enum order_op op, struct order *ret);
/* One that is made: as box_create, and what sandboxes from checkpoints have besides. */
struct box_make {
    const char *layer; /* or NULL */
    uint64_t timeout_ms;
    uint32_t flags;        /* ORDER_STATE, ORDER_LAST */
    const char *came_from; /* a checkpoint; NULL: none */
    bool closed;           /* nothing goes out yet, whatever its policy says */
};
void box_make(struct front *f, struct box_spec *spec, const struct box_make *m, box_done done,
              void *arg);
/* checkpoint_use.c: box_create from a snapshot whose kernels are there. False: it is none. */
bool box_create_warm(struct front *f, struct box_spec *spec, const char *layer, uint64_t timeout_ms,
                     box_done done, void *arg);
/* A transition is over: lets those who waited look again. They may begin the next one. */
void box_settled(struct box *b);
/* What the warden tells. They take the descriptors over. */
void box_told_sandbox(struct front *f, const struct order_answer *a, int note_fd, int channel_fd);
void box_told_ended(struct front *f, const struct order_answer *a);
void box_told_paused(struct front *f, const struct order_answer *a);
