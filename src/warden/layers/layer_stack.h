/* What a sandbox writes, layer by layer.
 *
 * A sandbox's disk is one tmpfs, its *scratch*. On it are directories u1, u2, ..., each the upper
 * layer of the sandbox's root overlay at one time. Freezing a sandbox's files makes the one that it
 * has a *layer*: nobody writes there again, and the sandbox goes on with an empty one above. An
 * ordered set of layers is a *stack*:
 *
 *      root overlay of A            of its branch B           of A, later
 *      u3 (written)                 u1 of B's own (written)   u5 (written)
 *      u2   layer ---------------- u2                       u4, u2, u1   gone back to, say
 *      u1   layer ---------------- u1
 *      a snapshot's layer, the template
 *
 * A new upper layer is on the sandbox's own scratch, so what it writes counts as its own; layers of
 * another's scratch are reached through a clone of that mount with the ids mapped to one's own.
 * What is on a scratch has ids 0 to 65535, which needs tmpfs to have id maps (Linux 6.3).
 *
 * Layers and scratches are counted: a layer's files go when no stack has it, the tmpfs when
 * nothing on it is used. */
#pragma once

#include <stddef.h>

#include "lib/base/err.h"

#define LAYER_NAME 16
#define STACK_MAX  48 /* layers; they are merged long before. With the layers below: 50 */

struct scratch {
    int mount;   /* detached, ids as they are on it */
    bool mapped; /* ids 0 to 65535 are on it, not the host's */
    unsigned users;
    unsigned n_uppers;      /* that were made so far */
    uint64_t bytes, inodes; /* that one upper layer may have; 0: no limit */
    /* Takes over the removal of a directory, and of the tmpfs with its last, which may take long.
     * NULL: nobody does: a directory stays. */
    void (*discard)(void *arg, int mount, const char *dir);
    void *discard_arg;
};

struct layer {
    struct scratch *scratch;
    unsigned users;
    bool written; /* a sandbox's upper layer still: its files do not go with it */
    char dir[LAYER_NAME];
};

struct stack {
    size_t n;
    struct layer *v[STACK_MAX]; /* oldest first */
};

/* A tmpfs with nothing on it. */
int scratch_make(uint64_t bytes, uint64_t inodes, struct scratch **ret, struct sg_error *e);
struct scratch *scratch_use(struct scratch *s);
void scratch_release(struct scratch *s); /* NULL is allowed */
/* An empty upper layer, with room for what the limits say beside all that is there already. like:
 * the layer whose root directory it continues, or NULL. */
int scratch_upper(struct scratch *s, const struct layer *like, char ret[LAYER_NAME],
                  struct sg_error *e);
/* Where the overlay has it, and its work directory. */
void scratch_work_name(const char upper[LAYER_NAME], char ret[LAYER_NAME]);
/* Removes an upper layer that nobody has frozen. */
void scratch_discard(struct scratch *s, const char *upper);
/* 1: nothing was written to it. */
int scratch_is_empty(const struct scratch *s, const char *upper, struct sg_error *e);

struct layer *layer_new(struct scratch *s, const char *dir); /* used once */
struct layer *layer_use(struct layer *t);
void layer_release(struct layer *t);

/* NULL stands for an empty one everywhere. */
struct stack *stack_copy(const struct stack *s);
/* A copy with one more on top, which it uses. -E2BIG. */
int stack_push(const struct stack *s, struct layer *top, struct stack **ret, struct sg_error *e);
void stack_free(struct stack *s);
size_t stack_depth(const struct stack *s);
struct layer *stack_top(const struct stack *s);
