/* Layers: the files of a sandbox as they were at one moment, as a directory that differs from the
 * template like an overlay's upper layer does. A sandbox made from one has it between the template
 * and its own files.
 *
 *            snapshot_save                        snapshot_forget, and the last user gone
 *   absent ------------> being written -> there -----------------------------------> removed
 *
 * One is never changed once it is there. Durable ones are in STATE/layers and found again by the
 * next server; others are in STATE/work. Writing and removing are done by children. */
#pragma once

#include "lib/base/ids.h"
#include "wire/warden.h"

struct server;
struct snapshot;
struct save;
struct stack;
struct instance;

/* At start: those of an earlier server. */
int snapshots_load(struct server *s, struct sg_error *e);
void snapshots_unload(struct server *s);

struct snapshot *snapshot_find(struct server *s, const char *name);
const int *snapshot_dir(const struct snapshot *l); /* for instance_spec.layer */
struct snapshot *snapshot_use(struct snapshot *l);
/* NULL is allowed. */
void snapshot_release(struct server *s, struct snapshot *l);
/* The name is free from now on. */
void snapshot_forget(struct server *s, struct snapshot *l);

struct save_order {
    const char *name; /* NULL: the caller's own, without a name */
    bool durable;
    struct snapshot *below;      /* what the sandbox was made from, or NULL */
    const struct instance *from; /* frozen; NULL: just what is below */
    const struct stack *stack;   /* in its place: layers; NULL: none */
};
/* l is the callee's (snapshot_use), or NULL and e says why. */
typedef void (*save_done)(void *arg, struct snapshot *l, uint64_t bytes, const struct sg_error *e);
/* NULL if it could not even begin. */
struct save *snapshot_save(struct server *s, const struct save_order *o, save_done done, void *arg,
                           struct sg_error *e);
/* Nothing of it stays; done is not called. */
void snapshot_save_cancel(struct save *save);
