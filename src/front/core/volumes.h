/* Volumes: made and removed by order of their tenant, mounted in sandboxes. Their contents over HTTP
 * are in front/volumes.
 *
 * What a sandbox mounts is an array in its spec, of {id, name, path, readOnly}: a fork, or a later
 * boot, mounts the same volumes. A checkpoint has nothing of their contents. */
#pragma once

#include "front/core/sandbox.h"
#include "front/store/volumes.h"

#define VOLUME_TOKEN_LEN SPEC_TOKEN_LEN

typedef void (*volume_done)(void *arg, const struct store_volume *v, int r,
                            const struct sg_error *e);
/* -EEXIST, -EDQUOT. */
void volume_create(struct front *f, const char *tenant, const char *name, volume_done done,
                   void *arg);
/* -EBUSY: sandboxes have it; the error names some of them. */
void volume_delete(struct front *f, const struct store_volume *v, volume_done done, void *arg);
/* Goes on with what an earlier front was making or removing when it was killed. */
int volumes_forget_loose(struct front *f, struct sg_error *e);

/* The token that opens the contents of a volume. It follows from the volume's id and a secret of the
 * server, so it is stored nowhere, and the same at any time. */
int volume_token(struct front *f, const char *id, char ret[VOLUME_TOKEN_LEN + 1],
                 struct sg_error *e);

/* Finds the volumes of `mounts` by their names, and adds their ids. -ENOENT; -ENOSPC: one that is to
 * be written is full. */
int volumes_resolve(struct front *f, const char *tenant, json_t *mounts, struct sg_error *e);
void volumes_fill_order(const json_t *mounts, struct order *o);
/* Whether the sandbox mounts the volume; writable: and may write to it. */
bool volume_is_mounted(const struct sandbox *b, const char *id, bool writable);

/* What is known of its size. False: nothing. UINT64_MAX bytes: it is too deep to be counted. */
bool volume_known_size(const char *id, uint64_t *ret);
void volume_note_size(const char *id, uint64_t bytes);
