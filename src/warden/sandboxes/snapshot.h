/* Snapshots: the files of a sandbox at one time, as a directory that differs from the template as
 * an overlay's upper layer does. A sandbox made from a snapshot has it between the template and its
 * own files.
 *
 * A world (warden/layers/world.h) is named like a snapshot, and is a directory of STATE/worlds. A
 * sandbox made from it has that world instead of the host's /usr, and so has each that is made from
 * its snapshots. If its name is forgotten while something stands on it, its directory is gone-ID until
 * the last that does is removed.
 *
 *            snapshot_save                        snapshot_forget, and the last user gone
 *   absent ------------> being written -> there -----------------------------------> removed
 *
 * Once written, a snapshot never changes. Files workers write and remove them (wire/files.h).
 *
 * A snapshot of a sandbox that was itself made from a snapshot shares, by hard links, all files that
 * did not change. Such snapshots are a *family*: they have one tenant, and lie in one directory, which
 * is all that the worker that writes one of them sees:
 *
 *   STATE/layers/user-FAMILY/    or trusted-FAMILY: which marks its overlays have; with .WORLD at
 *                                the end: its snapshots stand on that world
 *     NAME/                      durable: the next server finds it again
 *     work-ID/                   without a name: it ends with the server
 *     new-ID/, old-ID/           being written; being removed. The next start removes what is left
 *
 * snapshot_family.h has families, and what an older version or a backup has left at their place. */
#pragma once

#include "lib/base/ids.h"
#include "wire/warden.h"

struct server;
struct snapshot;
struct save;
struct stack;
struct instance;
struct world_source;

/* At start: finds the snapshots of an earlier server. */
int snapshots_load(struct server *s, struct sg_error *e);
/* Removes those that are not durable; files_workers_close waits for that. */
void snapshots_unload(struct server *s);

struct snapshot *snapshot_find(struct server *s, const char *name);
bool snapshot_is_world(const struct snapshot *l);
/* Its directory, by the tree that it is in. -1: it has none, as it is a world. */
int snapshot_tree(const struct snapshot *l, const char **ret_name);
/* For instance_spec.layer and .world. NULL: it has none. */
const int *snapshot_dir(const struct snapshot *l);
const struct world_source *snapshot_world(const struct snapshot *l); /* l may be NULL */
/* Whether others may be made of it: it has a name, and that was not forgotten. */
bool snapshot_is_named(const struct snapshot *l);
struct snapshot *snapshot_use(struct snapshot *l);
/* NULL is allowed. */
void snapshot_release(struct snapshot *l);
/* Frees the name for another snapshot. */
void snapshot_forget(struct snapshot *l);

struct save_order {
    const char *name; /* NULL: for the caller alone, without a name */
    bool durable;
    struct snapshot *below;      /* that the sandbox was made from, or NULL */
    const struct instance *from; /* frozen; NULL: save only the files of `below` */
    const struct stack *stack;   /* layers to save instead of `from`; NULL: none */
    struct snapshot *copy_of;    /* instead of all these, and no world: its files, of which none is
                                  * shared; NULL: no copy */
    uint64_t most;               /* of a copy: bytes that it may take */
};
/* l belongs to the callee (snapshot_use); or it is NULL, and e says why. */
typedef void (*save_done)(void *arg, struct snapshot *l, uint64_t bytes, const struct sg_error *e);
/* Begins to write a snapshot. NULL if that cannot even be begun. */
struct save *snapshot_save(struct server *s, const struct save_order *o, save_done done, void *arg,
                           struct sg_error *e);
/* Stops writing and removes what was written; done is not called. */
void snapshot_save_cancel(struct save *save);
