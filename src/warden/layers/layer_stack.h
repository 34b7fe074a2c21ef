/* Layers and stacks: the files that a sandbox writes, layer by layer.
 *
 * A sandbox's disk is its *scratch*: a directory of a place in the scratch store (scratch_place.h), or without a scratch
 * store a tmpfs. On it are directories u1, u2, ..., each the upper layer of the sandbox's root overlay at one time. Freezing a sandbox's files turns its present
 * upper layer into a *layer*: nobody writes there again, and the sandbox goes on with an empty
 * upper layer above it. An ordered set of layers is a *stack*:
 *
 *      root overlay of A            of its branch B             of A, after going back
 *      u3   (written)               u1   of B's own (written)   u5   (written)
 *      u2   layer  <--------------- u2                          u4, u2, u1   layers
 *      u1   layer  <--------------- u1
 *      a snapshot, the template     the same                    the same
 *
 * A new upper layer is on the sandbox's own scratch, so that the sandbox pays for what it writes.
 * It reaches layers of another sandbox's scratch through a clone of that mount, with the ids mapped
 * to its own. Files in the scratch store have the ids of the slot that wrote them, because an overlay is
 * slow to find files if its upper layer is mapped. Files on a tmpfs have ids 0 to 65535, which needs
 * a tmpfs with id maps (Linux 6.3).
 *
 * All scratches that a stack has layers on are in one place. So a sandbox that gets the files of
 * another one leaves the scratch that it had for a new one, beside those of the layers.
 *
 * Layers and scratches are counted: the files of a layer go when no stack has it, the scratch goes
 * when nothing on it is used. */
#pragma once

#include <stddef.h>

#include "lib/base/err.h"
#include "warden/layers/scratch_place.h"

#define LAYER_NAME 16
#define STACK_MAX  48 /* layers; merged long before. With those below: 50 */

struct scratch {
    int mount;                   /* without id mapping, see attach.h */
    struct scratch_place *place; /* that it is in; NULL: it is a tmpfs */
    uint32_t number;             /* of its directory there */
    uint32_t first_id;           /* its files have this id and those after it */
    bool shares;                 /* other sandboxes can have its layers */
    unsigned users;
    unsigned n_uppers;      /* made so far */
    uint64_t bytes, inodes; /* that one upper layer may have; 0: no limit */
    /* Removes a directory that is not used any more, and with the last one the tmpfs, which may
     * take long. first_id: of its files; dir NULL: the tmpfs alone. NULL: nobody removes it, and the
     * directory stays. */
    void (*discard)(void *arg, int mount, uint32_t first_id, const char *dir);
    void *discard_arg;
};

struct layer {
    struct scratch *scratch;
    unsigned users;
    bool written; /* still a sandbox's upper layer: keep its files */
    char dir[LAYER_NAME];
};

struct stack {
    size_t n;
    struct layer *v[STACK_MAX]; /* oldest first */
};

/* Makes an empty tmpfs. */
int scratch_make(uint64_t bytes, uint64_t inodes, struct scratch **ret, struct sg_error *e);
/* Makes an empty place in the scratch store and a scratch there, for files of this id and those after
 * it. */
int scratch_make_in(struct scratch_share *h, uint64_t bytes, uint32_t first_id,
                    struct scratch **ret, struct sg_error *e);
/* The scratch that a sandbox needs whose files are to be over this layer, or over none: the one that
 * it has, which the caller uses then, or a new one like it in the layer's place. */
int scratch_make_below(struct scratch *has, const struct layer *top, struct scratch **ret,
                       struct sg_error *e);
struct scratch *scratch_use(struct scratch *s);
void scratch_release(struct scratch *s); /* NULL is allowed */
/* The same, for the sandbox that writes there: others may still need the layers, but not the room. */
void scratch_leave(struct scratch *s);
/* Makes an empty upper layer. The scratch gets room for it, as the limits say, beside all that
 * is there already. like: the layer whose root directory it continues, or NULL. */
int scratch_upper(struct scratch *s, const struct layer *like, char ret[LAYER_NAME],
                  struct sg_error *e);
/* The name of the work directory that an overlay has with this upper layer. */
void scratch_work_name(const char upper[LAYER_NAME], char ret[LAYER_NAME]);
/* Removes an upper layer that was never frozen. */
void scratch_discard(struct scratch *s, const char *upper);
/* 1: nothing was written to this upper layer. */
int scratch_is_empty(const struct scratch *s, const char *upper, struct sg_error *e);

struct layer *layer_new(struct scratch *s, const char *dir); /* the caller is its one user */
struct layer *layer_use(struct layer *t);
void layer_release(struct layer *t);

/* In all of these, NULL stands for an empty stack. */
struct stack *stack_copy(const struct stack *s);
/* Copies a stack and puts one more layer on top, which the copy uses. -E2BIG. */
int stack_push(const struct stack *s, struct layer *top, struct stack **ret, struct sg_error *e);
void stack_free(struct stack *s);
size_t stack_depth(const struct stack *s);
struct layer *stack_top(const struct stack *s);
