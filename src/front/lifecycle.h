/* What the parts of the front that keep boxes share: boxes.c, lifecycle.c, link.c. */
#pragma once

#include "front/box.h"

/* boxes.c. The table holds a reference; box_new gives one to the caller and empties spec. */
struct box *box_new(struct front *f, const char *id, struct box_spec *spec);
void boxes_add(struct box *b);
void boxes_remove(struct box *b);

/* lifecycle.c. An order about a box, with what orders about it have in common. */
void box_order(const struct box *b, enum order_op op, struct order *ret);
/* A transition is over: lets those who waited look again. They may begin the next one. */
void box_settled(struct box *b);
/* What the warden tells. They take the descriptors over. */
void box_told_sandbox(struct front *f, const struct order_answer *a, int note_fd, int channel_fd);
void box_told_ended(struct front *f, const struct order_answer *a);
void box_told_paused(struct front *f, const struct order_answer *a);
