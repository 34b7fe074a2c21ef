/* Layers: the files of a sandbox as they were at one moment, as a directory that differs from the
 * template like an overlay's upper layer does. A sandbox made from one has it between the template
 * and its own files.
 *
 *            layer_save                        layer_forget, and the last user gone
 *   absent ------------> being written -> there -----------------------------------> removed
 *
 * One is never changed once it is there. Durable ones are in STATE/layers and found again by the
 * next server; others are in STATE/work. Writing and removing are done by children. */
#pragma once

#include "lib/base/ids.h"
#include "wire/warden.h"

struct server;
struct layer;
struct save;
struct stack;
struct instance;

/* At start: those of an earlier server. */
int layers_load(struct server *s, struct sg_error *e);
void layers_unload(struct server *s);

struct layer *layer_find(struct server *s, const char *name);
const int *layer_dir(const struct layer *l); /* for instance_spec.layer */
struct layer *layer_use(struct layer *l);
/* NULL is allowed. */
void layer_release(struct server *s, struct layer *l);
/* The name is free from now on. */
void layer_forget(struct server *s, struct layer *l);

struct save_order {
    const char *name; /* NULL: the caller's own, without a name */
    bool durable;
    struct layer *below;         /* what the sandbox was made from, or NULL */
    const struct instance *from; /* frozen; NULL: just what is below */
    const struct stack *stack;   /* in its place: strata; NULL: none */
};
/* l is the callee's (layer_use), or NULL and e says why. */
typedef void (*save_done)(void *arg, struct layer *l, uint64_t bytes, const struct sg_error *e);
/* NULL if it could not even begin. */
struct save *layer_save(struct server *s, const struct save_order *o, save_done done, void *arg,
                        struct sg_error *e);
/* Nothing of it stays; done is not called. */
void layer_save_cancel(struct save *save);
